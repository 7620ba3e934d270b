//! What became of a URL, on its way to be settled.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use trawl_common::limit::LeftOut;
use trawl_common::message::{Malformed, Message};
use trawl_common::outcome::Outcome;
use trawl_common::ports::{NewUrl, Page, Probe, Receipt};
use trawl_common::url::CanonicalUrl;

use crate::job::Job;
use crate::remarks::Remark;
use crate::spiders::Loaded;

/// Something to settle.
pub(crate) enum Settlement {
    /// A URL, with what its page yielded if it is done.
    Url(Box<Settled>),
    /// Messages that say nothing new: their URL has ended, or is parked and has a message of its own.
    Dropped(Vec<Receipt>),
    /// A mark of the fleet's own that came back.
    Probe(Probe, Receipt),
    /// Something that is no message; without a receipt if it is acknowledged already.
    Malformed(Malformed, Vec<Receipt>),
}

/// What became of a URL.
pub(crate) struct Settled {
    pub(crate) message: Message,
    pub(crate) attempts: u32,
    pub(crate) outcome: Outcome,
    pub(crate) yielded: Option<Yield>,
    pub(crate) remark: Option<Remark>,
    /// How long it was worked on, if its fetch began.
    pub(crate) took: Option<Duration>,
    /// The slot of a job that runs alone: free for the next one when this is settled, or has
    /// waited for its sinks for long.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
}

/// What a page yielded.
pub(crate) struct Yield {
    /// The spider that it was read for.
    pub(crate) spider: Arc<Loaded>,
    /// What goes to its sinks; `None` where there is nothing, or it is stored.
    pub(crate) page: Option<Page>,
    /// What it links to that is to be followed.
    pub(crate) links: Vec<NewUrl>,
    /// How many of its links limits left out so far.
    pub(crate) left_out: LeftOut,
    /// Where redirects led to the page.
    pub(crate) landed: Option<CanonicalUrl>,
    /// The status of the response.
    pub(crate) status: u16,
    /// How many bytes its body had.
    pub(crate) bytes: u64,
    /// The required fields that it lacks.
    pub(crate) missing: Vec<String>,
}

impl Settlement {
    pub(crate) fn of(job: Job, outcome: Outcome) -> Self {
        Self::remarked(job, outcome, None)
    }

    pub(crate) fn remarked(job: Job, outcome: Outcome, remark: Option<Remark>) -> Self {
        let Job { message, attempts, .. } = job;
        Self::Url(Box::new(Settled { attempts, remark, ..Settled::untouched(message, outcome) }))
    }

    /// Of a page, which waits for its spider's sinks from now on if it has anything for them.
    pub(crate) fn done(job: Job, yielded: Yield, remark: Option<Remark>) -> Self {
        if yielded.page.is_some() {
            yielded.spider.backlog.add();
        }
        let Job { message, attempts, .. } = job;
        let settled = Settled::untouched(message, Outcome::Done);
        Self::Url(Box::new(Settled { attempts, yielded: Some(yielded), remark, ..settled }))
    }

    /// Whether its host gave an answer, whatever that was.
    pub(crate) fn is_answered(&self) -> bool {
        let Self::Url(settled) = self else { return false };
        match &settled.outcome {
            Outcome::Done | Outcome::Skipped(_) => true,
            Outcome::Retry(failure, _) | Outcome::Failed(failure, _) => failure.status.is_some(),
            _ => false,
        }
    }

    /// The same, after so long a fetch.
    pub(crate) fn after(mut self, took: Duration) -> Self {
        if let Self::Url(settled) = &mut self {
            settled.took = Some(took);
        }
        self
    }

    /// The same, with the slot of a job that runs alone: its start has an end when it is settled, not before.
    pub(crate) fn with_slot(mut self, slot: Option<OwnedSemaphorePermit>) -> Self {
        if let Self::Url(settled) = &mut self {
            settled.slot = slot;
        }
        self
    }

    /// For a message about which nothing is known but what is to become of it.
    pub(crate) fn untouched(message: Message, outcome: Outcome) -> Self {
        Self::Url(Box::new(Settled::untouched(message, outcome)))
    }
}

impl Settled {
    /// What is to go to the sinks of a spider, if that is still to come.
    pub(crate) fn take_page(&mut self) -> Option<(Arc<Loaded>, Page)> {
        let yielded = self.yielded.as_mut()?;
        Some((Arc::clone(&yielded.spider), yielded.page.take()?))
    }

    pub(crate) fn untouched(message: Message, outcome: Outcome) -> Self {
        Self { message, attempts: 0, outcome, yielded: None, remark: None, took: None, slot: None }
    }
}
