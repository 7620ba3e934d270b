//! The outcome of a URL on its way to be settled.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use trawl_common::frontier::limit::LeftOut;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Failure, Outcome};
use trawl_common::frontier::retry;
use trawl_common::health::Health;
use trawl_common::names::SpiderName;
use trawl_common::ports::{Claimed, Error, Memory, NewWork, Page};
use trawl_common::settings::Retry;
use trawl_common::spider::ItemCounts;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use crate::fetch::domains::UnderWay;
use crate::items_file::FileItems;
use crate::job::Job;
use crate::spiders::Loaded;

/// A page with more links takes long to be settled, and no other waits for it.
pub(crate) const MANY_LINKS: usize = 500;

/// A URL to settle.
pub(crate) struct Settlement(Box<Handled>);

/// The outcome of a URL, with the results of its page if it is done.
pub(crate) struct Handled {
    pub(crate) message: Message,
    pub(crate) attempts: u32,
    pub(crate) outcome: Outcome,
    pub(crate) yielded: Option<Yield>,
    pub(crate) memory: Option<Memory>,
    /// How long it was processed, if its fetch started.
    pub(crate) took: Option<Duration>,
    /// The slot of a job that runs alone: free for the next one when this is settled, or has waited for its sinks for
    /// long.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
    /// A page that is under way until its many links are taken in.
    pub(crate) under_way: Option<UnderWay>,
    /// How often what its program fails at is tried again; `None` for as often as the settings say.
    pub(crate) retries: Option<u32>,
}

impl Handled {
    /// Returns the number of links of its page.
    pub(crate) fn links(&self) -> usize {
        self.yielded.as_ref().map_or(0, |yielded| yielded.links.len())
    }
}

/// The items and the page that go to the sinks of a spider.
pub(crate) struct ForSinks {
    pub(crate) spider: Arc<Loaded>,
    pub(crate) page: Option<Page>,
    pub(crate) file: Option<Box<FileItems>>,
}

/// The results of a page.
pub(crate) struct Yield {
    /// The spider that read it.
    pub(crate) spider: Arc<Loaded>,
    /// The page for its sinks; `None` if there is nothing to store, or it is stored.
    pub(crate) page: Option<Page>,
    /// Further items for the sinks, in a file; `None` if there are none, or they are stored.
    pub(crate) file: Option<Box<FileItems>>,
    /// The links to follow.
    pub(crate) links: Vec<NewWork>,
    /// Requests for other spiders.
    pub(crate) elsewhere: Vec<(SpiderName, NewWork)>,
    /// The number of its links that limits left out so far.
    pub(crate) left_out: LeftOut,
    /// The final URL of the redirects to the page.
    pub(crate) landed: Option<CanonicalUrl>,
    /// The status of the response; `None` for a task.
    pub(crate) status: Option<u16>,
    /// How many items it gave.
    pub(crate) items: ItemCounts,
    /// How many bytes its body had.
    pub(crate) bytes: u64,
    /// The required fields that it lacks.
    pub(crate) missing: Vec<String>,
}

impl Yield {
    fn has_for_sinks(&self) -> bool {
        self.page.is_some() || self.file.is_some()
    }

    /// Starts the wait for the spider's sinks, if there is anything for them.
    fn awaits_sinks(&self) {
        if self.has_for_sinks() {
            self.spider.backlog.add();
        }
    }
}

/// Ends the worker by this error. Returns the outcome of the work that met it.
pub(crate) fn aborted(health: &Health, error: impl Into<Error>) -> Outcome {
    health.ends_by(error);
    Outcome::Released
}

impl Settlement {
    pub(crate) fn of(job: Job, outcome: Outcome) -> Self {
        Self::remembered(job, outcome, None)
    }

    /// Creates the settlement of a job that comes back later, and asks for another slot then.
    pub(crate) fn put_off(mut job: Job, until: UnixMs) -> Self {
        job.message.slot = None;
        Self::of(job, Outcome::Deferred { until })
    }

    /// Creates the settlement of a job with an update of the page memory.
    pub(crate) fn remembered(job: Job, outcome: Outcome, memory: Option<Memory>) -> Self {
        let Job { message, attempts, spider, .. } = job;
        let retries = spider.spider.handler.as_ref().and_then(|handler| handler.retries);
        let mut settlement = Self::untouched(message, outcome).with_retries(retries);
        settlement.0.attempts = attempts;
        settlement.0.memory = memory;
        settlement
    }

    /// Creates the settlement of a page, which from now on waits for its spider's sinks if it has anything for them.
    pub(crate) fn done(job: Job, yielded: Yield, memory: Option<Memory>) -> Self {
        yielded.awaits_sinks();
        let mut settlement = Self::remembered(job, Outcome::Done, memory);
        settlement.0.yielded = Some(yielded);
        settlement
    }

    /// Creates the settlement of a task, which from now on waits for its spider's sinks if it has anything for them.
    pub(crate) fn of_task(claimed: Claimed, outcome: Outcome, yielded: Option<Yield>) -> Self {
        if let Some(yielded) = &yielded {
            yielded.awaits_sinks();
        }
        let mut settlement = Self::untouched(claimed.message, outcome);
        settlement.0.attempts = claimed.attempts;
        settlement.0.yielded = yielded;
        settlement
    }

    /// Creates the settlement of a URL of which nothing is known but its outcome.
    pub(crate) fn untouched(message: Message, outcome: Outcome) -> Self {
        let (yielded, memory, took, slot, under_way, retries) = Default::default();
        let attempts = 0;
        Self(Box::new(Handled {
            message,
            attempts,
            outcome,
            yielded,
            memory,
            took,
            slot,
            under_way,
            retries,
        }))
    }

    /// Sets the number of retries if the spider's program fails.
    pub(crate) fn with_retries(mut self, retries: Option<u32>) -> Self {
        self.0.retries = retries;
        self
    }

    /// Returns the outcome of the URL.
    pub(crate) fn outcome(&self) -> &Outcome {
        &self.0.outcome
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

    /// Whether its page has many links.
    pub(crate) fn has_many_links(&self) -> bool {
        self.0.links() > MANY_LINKS
    }

    /// Keeps the page in flight until this is settled.
    pub(crate) fn with_under_way(mut self, under_way: Option<UnderWay>) -> Self {
        self.0.under_way = under_way;
        self
    }

    /// Takes the slot away. When it is dropped, the next job that runs alone may start.
    pub(crate) fn take_slot(&mut self) -> Option<OwnedSemaphorePermit> {
        self.0.slot.take()
    }

    /// Returns the message of the URL.
    pub(crate) fn message(&self) -> &Message {
        &self.0.message
    }

    /// Takes the page for the sinks, if it is not stored yet.
    pub(crate) fn take_for_sinks(&mut self) -> Option<ForSinks> {
        let yielded = self.0.yielded.as_mut().filter(|yielded| yielded.has_for_sinks())?;
        let (page, file) = (yielded.page.take(), yielded.file.take());
        Some(ForSinks { spider: Arc::clone(&yielded.spider), page, file })
    }

    /// Turns this into a failure, because the program's items cannot be read to their end.
    pub(crate) fn failed(mut self, settings: &Retry, failure: Failure) -> Self {
        let spider = self.0.yielded.take().map(|yielded| yielded.spider);
        let policy = spider.map_or_else(|| settings.clone(), |spider| spider.retry(settings));
        let policy = Retry { max: self.0.retries.unwrap_or(policy.max), ..policy };
        self.0.memory = None;
        self.0.outcome = retry::again(&policy, failure, self.0.attempts + 1, UnixMs::now(), rand::random());
        self
    }

    /// Turns this into the settlement of a URL that is no longer this worker's.
    pub(crate) fn lost(mut self) -> Self {
        self.0.outcome = Outcome::SentAgain;
        self
    }

    pub(crate) fn into_handled(self) -> Handled {
        *self.0
    }
}
