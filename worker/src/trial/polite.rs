//! Asking for a page that is tried as the fleet asks for pages: as robots.txt allows, each request in its host's turn.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use trawl_common::frontier::outcome::{Failure, Skip};
use trawl_common::health::Health;
use trawl_common::politeness::addresses::AddressRate;
use trawl_common::politeness::ceiling::Ceiling;
use trawl_common::politeness::gcra::Standing;
use trawl_common::politeness::permit::HostPermit;
use trawl_common::politeness::robots::RobotsName;
use trawl_common::politeness::schedules::{Decision, HostRequest, HostSchedules};
use trawl_common::politeness::waiting::{NEAR, SOON};
use trawl_common::ports::{Error, Hosts, Response};
use trawl_common::settings::{HostPolicy, Politeness, Settings};
use trawl_common::spider::page_history::Validators;
use trawl_common::spider::{Bans, Scope, Spider, Then};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::{CanonicalUrl, Origin};
use trawl_extract::{Attempt, Extractor, NotTried, Ready, RobotsSays, Untried};
use trawl_web::{Answer, Fetcher, MAX_REDIRECTS, MemoryBudget, NoPage, NoRobots, RobotsWay, Threads, Trail};

use super::{PageReader, not_read};
use crate::fetch::backoff::is_welcome;
use crate::schedule::robots::{known_or_fetched, time_to_live};
use crate::schedule::robots_memory::{RobotsMemory, RobotsVerdict};

/// How long a trial may take.
const LONGEST: Duration = Duration::from_secs(60);

/// How many pages are tried at once.
const AT_ONCE: usize = 4;

/// An answer that keeps a thread busy keeps one of so many waiting, and nobody else.
const FETCH_THREADS: usize = 2;

/// Tries spiders on pages, by the schedules that the fleet's workers ask hosts by.
pub struct Trials {
    settings: Arc<Settings>,
    schedules: HostSchedules,
    robots: RobotsMemory,
    reader: PageReader,
    memory: MemoryBudget,
    threads: Threads,
    places: Arc<Semaphore>,
}

/// Why a trial ends before its page.
enum End {
    /// There is no page.
    Untried(Untried),
    /// Nobody knows yet.
    NotTried(NotTried),
}

impl Trials {
    /// By the schedules that `hosts` keeps.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn start(settings: Arc<Settings>, hosts: Arc<dyn Hosts>) -> io::Result<Self> {
        let schedules = HostSchedules {
            hosts,
            health: Arc::new(Health::impatient()),
            in_flight: Arc::default(),
            // No request takes longer.
            lapse: settings.fetch.timeout + NEAR,
            ceiling: Arc::new(Ceiling::of(settings.fetch.max_rate)),
            addresses: Arc::new(AddressRate::new(settings.politeness.address_rate)),
        };
        Ok(Self {
            schedules,
            robots: RobotsMemory::default(),
            reader: PageReader::start(&settings)?,
            memory: MemoryBudget::new(settings.worker.page_memory.as_u64() / 2),
            threads: Threads::start(FETCH_THREADS)?,
            places: Arc::new(Semaphore::new(AT_ONCE)),
            settings,
        })
    }

    /// Fetches `url` as `spider` says, and reads the page. What is under way ends by itself where nobody waits for it any more: others
    /// may wait for a robots.txt that is fetched for all.
    ///
    /// # Errors
    /// Why it could not be tried.
    pub async fn attempt(
        self: Arc<Self>,
        spider: Spider,
        ready: Ready,
        url: CanonicalUrl,
    ) -> Result<Attempt, NotTried> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| NotTried::Full(AT_ONCE))?;
        let trying = tokio::spawn(async move {
            let _place = place;
            let trial = Trial::of(&self, &spider, ready, url)?;
            self.schedules.freeing(trial.run()).await
        });
        match timeout(LONGEST, trying).await {
            Ok(Ok(attempt)) => attempt,
            Ok(Err(panicked)) => resume_unwind(panicked.into_panic()),
            Err(_) => Err(NotTried::Overdue(LONGEST)),
        }
    }
}

/// One trial, as far as it has come.
struct Trial<'a> {
    trials: &'a Trials,
    spider: &'a Spider,
    extractor: Arc<Extractor>,
    scope: Scope,
    bans: Bans,
    fetcher: Fetcher,
    politeness: Politeness,
    robots_name: RobotsName,
    deadline: Instant,
    trail: Trail,
    robots: Option<RobotsSays>,
    redirects: Vec<CanonicalUrl>,
    status: Option<u16>,
}

impl<'a> Trial<'a> {
    fn of(trials: &'a Trials, spider: &'a Spider, ready: Ready, url: CanonicalUrl) -> Result<Self, NotTried> {
        let (settings, Ready { extractor, scope, bans }) = (&trials.settings, ready);
        let fetcher = Fetcher::of(spider, &settings.fetch)
            .and_then(|fetcher| fetcher.within(trials.memory.clone()).on(&trials.threads))
            .map_err(|error| NotTried::Unusable(error.to_string()))?;
        let (robots, redirects, status) = Default::default();
        Ok(Self {
            trials,
            spider,
            extractor: Arc::new(extractor),
            scope,
            bans,
            fetcher,
            politeness: spider.politeness.apply(&settings.politeness),
            robots_name: spider.request.apply(&settings.fetch).robots_name().unwrap_or_default(),
            deadline: Instant::now() + LONGEST,
            trail: Trail::new(url, MAX_REDIRECTS),
            robots,
            redirects,
            status,
        })
    }

    async fn run(mut self) -> Result<Attempt, NotTried> {
        let page = match self.fetch().await {
            Ok(response) => {
                let reader = &self.trials.reader;
                reader.read(self.spider, &self.scope, &self.extractor, self.trail.last(), response).await
            }
            Err(End::Untried(untried)) => Err(untried),
            Err(End::NotTried(why)) => return Err(why),
        };
        let Self { robots, redirects, status, .. } = self;
        Ok(Attempt { robots, redirects, status, page })
    }

    /// The page, to which redirects may lead.
    async fn fetch(&mut self) -> Result<Response, End> {
        loop {
            if Instant::now() > self.deadline {
                return Err(End::NotTried(NotTried::Overdue(LONGEST)));
            }
            let policy = self.policy().await?;
            let permit = self.turn(&policy).await?;
            let answer = self.fetcher.ask(self.trail.last(), &Validators::default()).await;
            let ban = trawl_web::ban(&self.bans, &answer);
            let _held = permit.end(ban.is_none() && is_welcome(&answer));
            if let Some(ban) = ban {
                self.status = ban.status;
                return Err(match self.bans.then {
                    Then::BackOff => self.left_alone(&policy.key, ban).await,
                    Then::Retry => failed(ban),
                });
            }
            match answer {
                Ok(Answer::NotModified) => unreachable!("it was not asked whether it has changed"),
                Ok(Answer::Page(response)) => {
                    self.status = Some(response.status);
                    let redirected_to = self.redirects.last().cloned();
                    return Ok(Response { redirected_to, ..response });
                }
                Ok(Answer::Unread { status, content_type }) => {
                    self.status = Some(status);
                    return Err(End::Untried(not_read(&content_type)));
                }
                Ok(Answer::Redirect(target)) => {
                    self.redirects.push(target.target.clone());
                    self.trail.follow(target, &self.scope).map_err(|no_page| match no_page {
                        NoPage::Failed(failure) => failed(failure),
                        NoPage::OutOfScope(_) => skipped(Skip::Scope, &no_page),
                    })?;
                }
                Err(failure) => {
                    self.status = failure.status;
                    return Err(match failure.is_refusal() {
                        true => self.left_alone(&policy.key, failure).await,
                        false => failed(failure),
                    });
                }
            }
        }
    }

    /// How the host of the next URL is to be asked, if its robots.txt allows that.
    async fn policy(&mut self) -> Result<HostPolicy, End> {
        let url = self.trail.last().clone();
        let policy = self.politeness.host_policy(&url.host());
        if !policy.robots {
            self.robots = Some(RobotsSays::Ignored);
            return Ok(policy);
        }
        self.robots = None;
        loop {
            let verdict = self.trials.robots.verdict(&url, &self.politeness, &self.robots_name);
            let (says, decided) = match verdict {
                RobotsVerdict::Unknown => {
                    self.learn(&url.origin()).await?;
                    continue;
                }
                RobotsVerdict::Allowed(delay) => {
                    let most = self.trials.settings.politeness.max_crawl_delay;
                    let pace = policy.pace.slowed(delay.unwrap_or_default().min(most));
                    (RobotsSays::Allowed, Ok(HostPolicy { pace, ..policy.clone() }))
                }
                RobotsVerdict::Forbidden => {
                    let why = format_args!("{url}: robots.txt forbids it to {}", self.robots_name);
                    (RobotsSays::Forbidden, Err(skipped(Skip::Robots, why)))
                }
                RobotsVerdict::Unreadable(failure) => (RobotsSays::Unreadable, Err(failed(failure))),
            };
            self.robots = Some(says);
            return decided;
        }
    }

    /// Finds out what an origin's robots.txt says, from the fleet or from the origin.
    async fn learn(&self, origin: &Origin) -> Result<(), End> {
        let Trials { settings, schedules, robots, .. } = self.trials;
        let HostSchedules { hosts, health, .. } = schedules;
        let key = self.politeness.robots_key(origin);
        let fetching = async || {
            let mut way = RobotsWay::to(origin);
            let answer = self.fetcher.robots(schedules, &self.politeness, &mut way).await;
            answer.map(|robots| {
                let ttl = time_to_live(&robots, &settings.retry);
                (robots.file, ttl)
            })
        };
        let host = || self.politeness.host_policy(&origin.robots_txt().host()).key;
        match known_or_fetched(&**hosts, health, settings, &key, fetching).await.map_err(port)? {
            Ok(file) => {
                robots.remember(&settings.retry, key, &self.robots_name, &file);
                Ok(())
            }
            Err(NoRobots::Later(until)) => Err(End::NotTried(NotTried::Later(host(), until))),
            Err(NoRobots::Blocked) => Err(blocked(&host())),
            Err(NoRobots::Refused(_, failure, _) | NoRobots::NoProxy(failure)) => Err(failed(failure)),
            Err(NoRobots::Failed(error)) => Err(port(error)),
        }
    }

    /// Leave to send the next request. It stays out of the host's line, which is as long as a crawl.
    async fn turn(&self, policy: &HostPolicy) -> Result<HostPermit, End> {
        let addresses = self.fetcher.addresses(&self.trail.last().host()).await;
        let mut request = HostRequest { standing: Standing::Aside, ..HostRequest::new(policy) };
        loop {
            let decision = self.trials.schedules.ask(&mut request, &addresses, NEAR).await;
            let wait = match decision.map_err(port)? {
                Decision::Go(permit) => return Ok(permit),
                Decision::At { wait, .. } => wait,
                Decision::Later { wait, .. } | Decision::Crowded { wait } => wait.max(SOON),
                Decision::Blocked => return Err(blocked(&policy.key)),
                Decision::TooLate => unreachable!("it has no deadline"),
            };
            if Instant::now() + wait > self.deadline {
                let until = UnixMs::now().plus(wait);
                return Err(End::NotTried(NotTried::Later(policy.key.clone(), until)));
            }
            sleep(wait).await;
        }
    }

    /// Has everyone leave a host alone that answered so.
    async fn left_alone(&self, key: &HostKey, failure: Failure) -> End {
        match self.trials.schedules.push_back(key, &self.politeness, &failure, None).await {
            Ok(_) => failed(failure),
            Err(error) => port(error),
        }
    }
}

fn failed(failure: Failure) -> End {
    End::Untried(failure.into())
}

fn skipped(skip: Skip, why: impl ToString) -> End {
    End::Untried(Untried::Skipped(skip, why.to_string()))
}

fn blocked(key: &HostKey) -> End {
    skipped(Skip::Blocked, format_args!("{key} is blocked: `trawl hosts unblock {key}` lifts that"))
}

fn port(error: Error) -> End {
    End::NotTried(NotTried::Port(error))
}
