//! Fetches the robots.txt of an origin.

use bytes::Bytes;
use trawl_common::frontier::outcome::{Class, Failure, is_refusal, is_welcoming};
use trawl_common::host_schedules::{HostSchedules, NotNow, WaitlistPlace};
use trawl_common::politeness::robots::{MAX_BYTES, RobotsFile};
use trawl_common::ports::Error;
use trawl_common::settings::Politeness;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Origin;

use super::answer::{BodyStart, Hop};
use super::fetcher::Fetcher;
use super::redirect::Trail;

/// Maximum number of redirects followed (RFC 9309 2.3.1.2).
const MAX_REDIRECTS: u8 = 5;

/// An origin's response to a request for its robots.txt, and how long it is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Robots {
    /// The status and the body. For a server error or a failed request (status 0) the body holds the reason.
    pub file: RobotsFile,
    /// Whether the response is valid for a day; otherwise it must be requested again soon.
    pub is_lasting: bool,
}

/// A fetch of an origin's robots.txt that can be continued without repeating a request: the URLs that redirects led to
/// so far, and the waitlist position at the next URL's host.
#[derive(Clone, Debug)]
pub struct RobotsWay {
    trail: Trail,
    waiting: Option<WaitlistPlace>,
}

/// The reason why a robots.txt is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRobots {
    /// The next request may not be sent before this time.
    Later(UnixMs),
    /// An operator has blocked a host on the way.
    Blocked,
    /// The host asked for a back-off until this time (429, 503).
    Refused(HostKey, Failure, UnixMs),
    /// This side lacks something; no host is to blame ([`Class::is_blameless`]).
    Blameless(Failure),
    /// The store of the host schedules failed permanently.
    Failed(Error),
}

impl RobotsWay {
    /// Creates a fetch of the robots.txt of `origin` that has not started.
    pub fn to(origin: &Origin) -> Self {
        Self { trail: Trail::new(origin.robots_txt(), MAX_REDIRECTS), waiting: None }
    }

    /// Returns the approximate memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.trail.bytes()
    }
}

impl Fetcher {
    /// Fetches a robots.txt; each request waits for a slot of its host under `politeness`. Every response of the origin
    /// decides what may be crawled, except one that asks for a back-off.
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
            let permit = match schedules.wait(&policy, &addresses, way.waiting.take()).await {
                Ok(permit) => permit,
                Err(NotNow::Blocked) => return Err(NoRobots::Blocked),
                Err(NotNow::Later(until, waiting)) => {
                    way.waiting = waiting;
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
                // Requests for pages fail in the same way, each by itself.
                Err(failure) if matches!(failure.class, Class::Forbidden | Class::Redirect) => {
                    return Ok(none());
                }
                Err(failure) if failure.class.is_blameless() => return Err(NoRobots::Blameless(failure)),
                Err(failure) => return Ok(unanswered(failure)),
            }
        }
    }
}

/// Whether the response shows that the host is well.
fn is_welcome(answer: &Result<Hop, Failure>) -> bool {
    match answer {
        Ok(Hop::Redirect(_)) => true,
        Ok(Hop::Start(answer)) => is_welcoming(answer.status),
        Err(_) => false,
    }
}

/// Returns the failure for a response that asks for a back-off.
fn refusal(answer: &BodyStart) -> Option<Failure> {
    let failure = || {
        let failure = Failure::new(Class::Robots, format_args!("robots.txt: status {}", answer.status));
        Failure { status: Some(answer.status), retry_after: answer.retry_after, ..failure }
    };
    is_refusal(answer.status).then(failure)
}

fn robots(BodyStart { status, body, .. }: BodyStart) -> Robots {
    match status {
        500.. => passing(status, format!("status {status}")),
        _ => Robots { file: RobotsFile { status, body, failure: None }, is_lasting: true },
    }
}

/// The result for redirects that lead to no file: as if it were missing.
fn none() -> Robots {
    passing(404, String::new())
}

/// The result without any answer.
fn unanswered(Failure { class, detail, .. }: Failure) -> Robots {
    let file = RobotsFile { status: 0, body: Bytes::from(detail), failure: Some(class) };
    Robots { file, is_lasting: false }
}

fn passing(status: u16, why: String) -> Robots {
    Robots { file: RobotsFile { status, body: Bytes::from(why), failure: None }, is_lasting: false }
}
