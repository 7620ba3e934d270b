//! Fetches a page for a trial by the fleet's rules: allowed by robots.txt, each request in a slot of its
//! host.

use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use trawl_common::frontier::outcome::{Class, Failure, Skip};
use trawl_common::ports::Hosts;
use trawl_common::settings::{HostPolicy, Settings};
use trawl_common::spider::page_history::Validators;
use trawl_common::spider::{Bans, Scope, Spider, Then};
use trawl_common::web::host::HostKey;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Attempt, Extractor, LoginPlan, NotTried, Ready, RobotsOutcome, Untried};
use trawl_web::{Answer, Fetcher, MAX_REDIRECTS, MemoryBudget, NoPage, Threads, Trail};

use super::{PageReader, TrialSession, not_read};
use crate::schedule::backoff::is_welcome;
use crate::schedule::polite::{AsSpider, NotAsked, PoliteClient, blocked};

/// Maximum time for a trial.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of trials at once.
const CONCURRENCY: usize = 4;

/// The number of threads for fetches: a response that keeps a thread busy delays only the trials on it.
const FETCH_THREADS: usize = 2;

/// Tries spiders on pages, by the schedules that the fleet's workers use.
pub struct Trials {
    asker: PoliteClient,
    reader: PageReader,
    memory: MemoryBudget,
    threads: Threads,
    permits: Arc<Semaphore>,
}

/// The reason why a trial ends without its page.
enum End {
    /// There is no page.
    Untried(Untried),
    /// The trial could not be made.
    NotTried(NotTried),
}

impl From<NotAsked> for End {
    fn from(not_asked: NotAsked) -> Self {
        match not_asked {
            NotAsked::Blocked(key) => skipped(Skip::Blocked, blocked(&key)),
            NotAsked::Forbidden(why) => skipped(Skip::Robots, why),
            NotAsked::Unreadable(failure) | NotAsked::Failed(failure) => failed(failure),
            NotAsked::Later(key, until) => Self::NotTried(NotTried::Later(key, until)),
            NotAsked::Port(error) => Self::NotTried(NotTried::Port(error)),
        }
    }
}

impl Trials {
    /// Starts with the schedules in `hosts`.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no threads.
    pub fn start(settings: Arc<Settings>, hosts: Arc<dyn Hosts>) -> io::Result<Self> {
        Ok(Self {
            reader: PageReader::start(&settings)?,
            memory: MemoryBudget::new(settings.worker.half_page_memory()),
            threads: Threads::start(FETCH_THREADS)?,
            permits: Arc::new(Semaphore::new(CONCURRENCY)),
            asker: PoliteClient::alone(settings, hosts),
        })
    }

    /// Fetches `url` by the rules of `spider`, and reads the page. If the caller stops waiting, requests in
    /// progress are completed: others may wait for a robots.txt that is fetched for all.
    ///
    /// # Errors
    ///
    /// Returns the reason why it could not be tried.
    pub async fn attempt(
        self: Arc<Self>,
        spider: Spider,
        ready: Ready,
        url: CanonicalUrl,
    ) -> Result<Attempt, NotTried> {
        let permit =
            Arc::clone(&self.permits).try_acquire_owned().map_err(|_| NotTried::Full(CONCURRENCY))?;
        let trying = tokio::spawn(async move {
            let _permit = permit;
            let trial = Trial::new(&self, &spider, ready, url)?;
            self.asker.schedules.freeing(trial.run()).await
        });
        match timeout(TRIAL_TIMEOUT, trying).await {
            Ok(Ok(attempt)) => attempt,
            Ok(Err(panicked)) => resume_unwind(panicked.into_panic()),
            Err(_) => Err(NotTried::Overdue(TRIAL_TIMEOUT)),
        }
    }
}

/// One trial in progress.
struct Trial<'a> {
    trials: &'a Trials,
    spider: &'a Spider,
    extractor: Arc<Extractor>,
    scope: Scope,
    bans: Bans,
    login: Option<LoginPlan>,
    own: AsSpider,
    deadline: Instant,
    trail: Trail,
    robots: Option<RobotsOutcome>,
    redirects: Vec<CanonicalUrl>,
    status: Option<u16>,
}

impl<'a> Trial<'a> {
    fn new(
        trials: &'a Trials,
        spider: &'a Spider,
        ready: Ready,
        url: CanonicalUrl,
    ) -> Result<Self, NotTried> {
        let (settings, Ready { extractor, scope, bans, login }) = (&trials.asker.settings, ready);
        let fetcher = Fetcher::from_spider(spider, &settings.fetch)
            .and_then(|fetcher| fetcher.within(trials.memory.clone()).on(&trials.threads))
            .map_err(|error| NotTried::Unusable(error.to_string()))?;
        let (robots, redirects, status) = Default::default();
        Ok(Self {
            trials,
            spider,
            extractor: Arc::new(extractor),
            scope,
            bans,
            login,
            own: AsSpider::new(spider, settings, fetcher),
            deadline: Instant::now() + TRIAL_TIMEOUT,
            trail: Trail::new(url, MAX_REDIRECTS),
            robots,
            redirects,
            status,
        })
    }

    async fn run(mut self) -> Result<Attempt, NotTried> {
        let session = match self.log_in().await {
            Ok(session) => session,
            Err(why) => {
                let failure = Failure::new(Class::Banned, format_args!("the log-in failed: {why}"));
                let Self { robots, redirects, status, .. } = self;
                return Ok(Attempt { robots, redirects, status, page: Err(failure.into()) });
            }
        };
        let page = match self.fetch().await {
            Ok(response) => match session.and_then(|session| session.lapse(&response, None)) {
                Some(sign) => {
                    let lapsed = format_args!("the page looks as if the session had lapsed: {sign}");
                    Err(Failure::new(Class::Banned, lapsed).into())
                }
                None => {
                    let reader = &self.trials.reader;
                    let (scope, extractor, landed) = (&self.scope, &self.extractor, self.trail.last());
                    reader.read(self.spider, scope, extractor, landed, response, None).await
                }
            },
            Err(End::Untried(untried)) => Err(untried),
            Err(End::NotTried(why)) => return Err(why),
        };
        let Self { robots, redirects, status, .. } = self;
        Ok(Attempt { robots, redirects, status, page })
    }

    /// Begins a session, if the spider keeps one, which all further requests are part of.
    async fn log_in(&mut self) -> Result<Option<Arc<TrialSession>>, String> {
        let (asker, parser) = (&self.trials.asker, &self.trials.reader.parser);
        let own = AsSpider::new(self.spider, &asker.settings, self.own.fetcher.clone());
        let spider = (self.spider, self.login.take(), &self.bans);
        let session = TrialSession::log_in(asker, parser, spider, own).await?;
        if let Some(session) = &session {
            self.own.fetcher = self.own.fetcher.in_session(Arc::clone(session) as _);
        }
        Ok(session)
    }

    /// Fetches the page, following redirects.
    async fn fetch(&mut self) -> Result<Response, End> {
        loop {
            if Instant::now() > self.deadline {
                return Err(End::NotTried(NotTried::Overdue(TRIAL_TIMEOUT)));
            }
            let policy = self.policy().await?;
            let host = self.trail.last().host();
            let permit = self.trials.asker.permit(&self.own, &policy, &host, self.deadline).await?;
            let answer = self.own.fetcher.ask(self.trail.last(), &Validators::default()).await;
            let ban = trawl_web::ban(&self.bans, &answer);
            let _held = permit.end(is_welcome(&answer, ban.as_ref()));
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
                    return Err(End::Untried(not_read(NoPage::Unread(content_type))));
                }
                Ok(Answer::Redirect(target)) => {
                    self.redirects.push(target.target.clone());
                    self.trail.follow(target, &self.scope).map_err(|no_page| match no_page {
                        NoPage::Failed(failure) => failed(failure),
                        NoPage::OutOfScope(_) | NoPage::Unread(_) => skipped(Skip::Scope, &no_page),
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

    /// Returns the policy of the next URL's host, if its robots.txt allows the request.
    async fn policy(&mut self) -> Result<HostPolicy, End> {
        let (asker, url) = (&self.trials.asker, self.trail.last());
        self.robots = None;
        let decided = loop {
            match asker.policy(&self.own, url) {
                Some(decided) => break decided,
                None => asker.learn(&self.own, &url.origin()).await?,
            }
        };
        self.robots = match &decided {
            Ok(policy) if policy.robots => Some(RobotsOutcome::Allowed),
            Ok(_) => Some(RobotsOutcome::Ignored),
            Err(NotAsked::Forbidden(_)) => Some(RobotsOutcome::Forbidden),
            Err(NotAsked::Unreadable(_)) => Some(RobotsOutcome::Unreadable),
            Err(_) => None,
        };
        Ok(decided?)
    }

    /// Makes the fleet leave a host alone that answered with this failure.
    async fn left_alone(&self, key: &HostKey, failure: Failure) -> End {
        match self.trials.asker.back_off(key, &self.own.politeness, &failure, None).await {
            Ok(_) => failed(failure),
            Err(error) => NotAsked::Port(error).into(),
        }
    }
}

fn failed(failure: Failure) -> End {
    End::Untried(failure.into())
}

fn skipped(skip: Skip, why: impl ToString) -> End {
    End::Untried(Untried::Skipped(skip, why.to_string()))
}
