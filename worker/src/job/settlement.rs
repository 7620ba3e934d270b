//! The outcome of a URL or a task on its way to be settled.

use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use trawl_common::frontier::Start;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Reason, Skip};
use trawl_common::frontier::retry;
use trawl_common::health::Health;
use trawl_common::ports::{Claimed, Error, PageVisit};
use trawl_common::settings::Retry;
use trawl_common::time::UnixMs;

use super::ClaimedUrl;
use super::page_output::{ForSinks, PageOutput};

/// A page with more links takes long to be settled, and no other waits for it.
pub(crate) const MANY_LINKS: usize = 500;

/// The place of a page in flight, which is freed when this is dropped.
pub(crate) type Place = Box<dyn Send + Sync>;

/// A URL or a task to settle.
pub(crate) struct Settlement(Box<Handled>);

/// A URL or a task, and what becomes of it.
pub(crate) struct Handled {
    pub(crate) message: Message,
    pub(crate) attempts: u32,
    pub(crate) disposition: Disposition,
    /// How long it was processed, if its fetch started.
    pub(crate) took: Option<Duration>,
    /// The slot of a job that runs alone: free for the next one when this is settled, or has waited for its sinks for
    /// long.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
    /// The place of a page in flight, which is freed when its many links are admitted.
    pub(crate) place: Option<Place>,
    /// Maximum number of retries if its program fails; `None` for that of the settings.
    pub(crate) retries: Option<u32>,
    /// Maximum number of retries by its spider's file; `None` for that of the settings.
    pub(crate) spider_retries: Option<u32>,
}

/// The disposition of a URL or a task. Only its ends have an update of the page history, and only `Done` has results.
#[expect(clippy::large_enum_variant, reason = "a settlement is boxed as a whole")]
pub(crate) enum Disposition {
    /// It is done: its items are stored before it is settled.
    Done { output: PageOutput, memory: Option<PageVisit> },
    /// It is left out on purpose.
    Skipped { skip: Skip, memory: Option<PageVisit> },
    /// It failed for good.
    Failed { failure: Failure, reason: Reason, memory: Option<PageVisit> },
    /// Its deadline passed before it could be fetched.
    Expired,
    /// It failed, and is tried again at this instant.
    Retry { failure: Failure, until: UnixMs },
    /// It comes back at this instant.
    Snooze { until: UnixMs },
    /// It comes back at about this instant, for a worker that has its spider.
    Requeue { until: UnixMs },
    /// It is no longer this worker's, and is sent again.
    Republish,
    /// It is given back untouched, for any worker to take.
    Release,
}

impl From<Outcome> for Disposition {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Skipped(skip) => Self::Skipped { skip, memory: None },
            Outcome::Failed(failure, reason) => Self::Failed { failure, reason, memory: None },
            Outcome::Expired => Self::Expired,
            Outcome::Retry(failure, until) => Self::Retry { failure, until },
            Outcome::Snooze { until } => Self::Snooze { until },
            Outcome::Requeue { until } => Self::Requeue { until },
            Outcome::Republish => Self::Republish,
            Outcome::Release => Self::Release,
        }
    }
}

impl Handled {
    /// Returns the results of its page or task, if it is done.
    pub(crate) fn output(&self) -> Option<&PageOutput> {
        match &self.disposition {
            Disposition::Done { output, .. } => Some(output),
            _ => None,
        }
    }

    /// Returns the number of links of its page.
    pub(crate) fn links(&self) -> usize {
        self.output().map_or(0, |output| output.links.len())
    }
}

/// Ends the worker by this error. Returns the outcome of the work that met it.
pub(crate) fn aborted(health: &Health, error: impl Into<Error>) -> Outcome {
    health.ends_by(error);
    Outcome::Release
}

/// Approximate wait of a URL or a task whose crawl has as many in flight as its limit still allows.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Returns the outcome of a URL or a task that may not start; `None` if it may.
pub(crate) fn not_started(start: Start) -> Option<Outcome> {
    match start {
        Start::Go => None,
        Start::Awaited => {
            let until = UnixMs::now().plus(RETRY_DELAY.mul_f64(rand::random_range(1.0..2.0)));
            Some(Outcome::Snooze { until })
        }
        Start::Poison => {
            let failure = Failure::new(Class::Crash, "started several times and never finished");
            Some(Outcome::Failed(failure, Reason::Poison))
        }
        Start::Full => Some(Outcome::Skipped(Skip::Limit)),
        Start::Lost => Some(Outcome::Republish),
    }
}

/// Returns the outcome of a URL or a task that made this worker panic. It is not retried: it would do the same to
/// others.
pub(crate) fn panicked() -> Outcome {
    Outcome::Failed(Failure::new(Class::Crash, "handling it made the worker panic"), Reason::Final)
}

impl Settlement {
    /// Creates the settlement of a URL or a task of which nothing more is known.
    pub(crate) fn new(message: Message, disposition: impl Into<Disposition>) -> Self {
        let (attempts, took, slot, place, spider_retries) = Default::default();
        let (retries, disposition) = (message.work.retries(), disposition.into());
        let handled = Handled { message, attempts, disposition, took, slot, place, retries, spider_retries };
        Self(Box::new(handled))
    }

    /// Creates the settlement of a job.
    pub(crate) fn from_job(job: ClaimedUrl, disposition: impl Into<Disposition>) -> Self {
        let ClaimedUrl { message, attempts, spider, .. } = job;
        let mut settlement = Self::new(message, disposition);
        settlement.0.attempts = attempts;
        let of_program = spider.spider.handler.as_ref().and_then(|handler| handler.retries);
        settlement.0.retries = settlement.0.retries.or(of_program).or(spider.spider.retry.max);
        settlement.0.spider_retries = spider.spider.retry.max;
        settlement
    }

    /// Creates the settlement of a job that comes back later, and asks for another slot then.
    pub(crate) fn snooze(mut job: ClaimedUrl, until: UnixMs) -> Self {
        job.message.slot = None;
        Self::from_job(job, Disposition::Snooze { until })
    }

    /// Creates the settlement of a page, which from now on waits for its spider's sinks if it has anything for them.
    pub(crate) fn done(job: ClaimedUrl, output: PageOutput, memory: Option<PageVisit>) -> Self {
        output.await_sinks();
        Self::from_job(job, Disposition::Done { output, memory })
    }

    /// Creates the settlement of a task.
    pub(crate) fn of_task(claimed: Claimed, disposition: impl Into<Disposition>) -> Self {
        let mut settlement = Self::new(claimed.message, disposition);
        settlement.0.attempts = claimed.attempts;
        settlement
    }

    /// Creates the settlement of a task that is done, which from now on waits for its spider's sinks if it has
    /// anything for them.
    pub(crate) fn of_done_task(claimed: Claimed, output: PageOutput) -> Self {
        output.await_sinks();
        Self::of_task(claimed, Disposition::Done { output, memory: None })
    }

    /// Sets the number of retries if the spider's program fails.
    pub(crate) fn with_retries(mut self, retries: Option<u32>) -> Self {
        self.0.retries = retries;
        self
    }

    /// Sets the duration of the fetch.
    pub(crate) fn after(mut self, took: Duration) -> Self {
        self.0.took = Some(took);
        self
    }

    /// Sets the slot of a job that runs alone: its start ends when it is settled, not before.
    pub(crate) fn with_slot(mut self, slot: Option<OwnedSemaphorePermit>) -> Self {
        self.0.slot = slot;
        self
    }

    /// Keeps the page in its place until this is settled.
    pub(crate) fn with_place(mut self, place: Option<Place>) -> Self {
        self.0.place = place;
        self
    }

    /// Returns the message of the URL.
    pub(crate) fn message(&self) -> &Message {
        &self.0.message
    }

    /// Returns what becomes of the URL.
    pub(crate) fn disposition(&self) -> &Disposition {
        &self.0.disposition
    }

    /// Whether its page has many links.
    pub(crate) fn has_many_links(&self) -> bool {
        self.0.links() > MANY_LINKS
    }

    /// Takes the slot away. When it is dropped, the next job that runs alone may start.
    pub(crate) fn take_slot(&mut self) -> Option<OwnedSemaphorePermit> {
        self.0.slot.take()
    }

    /// Takes the page for the sinks, if it is not stored yet.
    pub(crate) fn take_for_sinks(&mut self) -> Option<ForSinks> {
        match &mut self.0.disposition {
            Disposition::Done { output, .. } => output.take_for_sinks(),
            _ => None,
        }
    }

    /// Turns this into a failure, because the program's items cannot be read to their end.
    pub(crate) fn failed(mut self, policy: Retry, failure: Failure) -> Self {
        let policy = policy.with_max(self.0.retries);
        let (attempts, now) = (self.0.attempts + 1, UnixMs::now());
        self.0.disposition = retry::again(&policy, failure, attempts, now, rand::random()).into();
        self
    }

    /// Turns this into the settlement of a URL that is no longer this worker's.
    pub(crate) fn lost(mut self) -> Self {
        self.0.disposition = Disposition::Republish;
        self
    }

    pub(crate) fn into_handled(self) -> Handled {
        *self.0
    }
}
