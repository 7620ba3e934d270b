//! Asking an origin for its robots.txt.

use bytes::Bytes;
use trawl_common::frontier::outcome::{Class, Failure, is_refusal};
use trawl_common::politeness::robots::MAX_BYTES;
use trawl_common::politeness::schedules::{HostSchedules, InLine, NotNow};
use trawl_common::ports::{Error, RobotsFile};
use trawl_common::settings::Politeness;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Origin;

use super::answer::{Hop, Start};
use super::fetcher::Fetcher;
use super::redirect::Trail;

/// How many redirects are followed (RFC 9309 2.3.1.2).
const REDIRECTS: u8 = 5;

/// A robots.txt as an origin answered, and whether that says something for longer than a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Robots {
    /// What it answered.
    pub file: RobotsFile,
    /// Whether the answer is good for a day, or is to be asked for again soon.
    pub is_lasting: bool,
}

/// The way to an origin's robots.txt, as far as it is known: the URLs asked, and the turn with the host of the next. Whoever goes
/// on from there asks for nothing twice.
#[derive(Clone, Debug)]
pub struct RobotsWay {
    trail: Trail,
    turn: Option<InLine>,
}

/// Why a robots.txt is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRobots {
    /// It is not the turn of the next request before then.
    Later(UnixMs),
    /// A person forbade to ask a host on the way.
    Blocked,
    /// This host wants to be left alone until then (429, 503).
    Refused(HostKey, Failure, UnixMs),
    /// The proxy is away.
    NoProxy(Failure),
    /// Whoever keeps the schedules failed for good.
    Failed(Error),
}

impl RobotsWay {
    /// The way to the robots.txt of `origin`, from its beginning.
    pub fn to(origin: &Origin) -> Self {
        Self { trail: Trail::new(origin.robots_txt(), REDIRECTS), turn: None }
    }

    /// How much memory it takes, about.
    pub fn bytes(&self) -> usize {
        self.trail.bytes()
    }
}

impl Fetcher {
    /// Asks for a robots.txt, each request of its host in that one's turn, as `politeness` says. Whatever an origin answers says
    /// something of what may be asked for, unless it wants to be left alone.
    pub async fn robots(
        &self,
        schedules: &HostSchedules,
        politeness: &Politeness,
        way: &mut RobotsWay,
    ) -> Result<Robots, NoRobots> {
        loop {
            let url = way.trail.last();
            let policy = politeness.host_policy(&url.host());
            let addresses = self.addresses(&url.host()).await;
            let permit = match schedules.wait(&policy, &addresses, way.turn.take()).await {
                Ok(permit) => permit,
                Err(NotNow::Blocked) => return Err(NoRobots::Blocked),
                Err(NotNow::Later(until, turn)) => {
                    way.turn = turn;
                    return Err(NoRobots::Later(until));
                }
                Err(NotNow::Failed(error)) => return Err(NoRobots::Failed(error)),
            };
            let answer = self.start(url, MAX_BYTES).await;
            let _held = permit.end(is_welcome(&answer));
            match answer {
                Ok(Hop::Redirect(target)) => {
                    if way.trail.go(target).is_err() {
                        return Ok(none());
                    }
                }
                Ok(Hop::Start(answer)) => match refusal(&answer) {
                    None => return Ok(robots(answer)),
                    Some(failure) => {
                        return Err(
                            match schedules.push_back(&policy.key, politeness, &failure, None).await {
                                Ok(until) => NoRobots::Refused(policy.key, failure, until),
                                Err(error) => NoRobots::Failed(error),
                            },
                        );
                    }
                },
                // What the pages meet as well, each with its own failure.
                Err(failure) if matches!(failure.class, Class::Forbidden | Class::Redirect) => {
                    return Ok(none());
                }
                Err(failure) if failure.class == Class::Proxy => return Err(NoRobots::NoProxy(failure)),
                Err(failure) => return Ok(passing(0, failure.to_string())),
            }
        }
    }
}

/// Whether the host goes on as if nothing were.
fn is_welcome(answer: &Result<Hop, Failure>) -> bool {
    match answer {
        Ok(Hop::Redirect(_)) => true,
        Ok(Hop::Start(answer)) => answer.status < 500 && refusal(answer).is_none(),
        Err(_) => false,
    }
}

/// The answer of a host that wants to be left alone, as a failure.
fn refusal(answer: &Start) -> Option<Failure> {
    let failure = || {
        let failure = Failure::new(Class::Robots, format_args!("robots.txt: status {}", answer.status));
        Failure { status: Some(answer.status), retry_after: answer.retry_after, ..failure }
    };
    is_refusal(answer.status).then(failure)
}

fn robots(Start { status, body, .. }: Start) -> Robots {
    match status {
        500.. => passing(status, format!("status {status}")),
        _ => Robots { file: RobotsFile { status, body }, is_lasting: true },
    }
}

/// As if there were none: redirects lead to no file.
fn none() -> Robots {
    passing(404, String::new())
}

fn passing(status: u16, why: String) -> Robots {
    Robots { file: RobotsFile { status, body: Bytes::from(why) }, is_lasting: false }
}
