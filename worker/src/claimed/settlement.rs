//! The outcome of a URL or a task on its way to be settled.

use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Reason};
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
pub(crate) type InFlightGuard = Box<dyn Send + Sync>;

/// A URL or a task to settle.
pub(crate) struct Settlement(Box<Handled>);

/// A URL or a task, and what becomes of it.
pub(crate) struct Handled {
    pub(crate) message: Message,
    pub(crate) attempts: u32,
    /// Its results if it is done, otherwise its outcome.
    pub(crate) result: Result<PageOutput, Outcome>,
    /// The update of the page history, if it ends.
    pub(crate) memory: Option<PageVisit>,
    /// How long it was processed, if its fetch started.
    pub(crate) took: Option<Duration>,
    /// The permit of a URL that runs alone, which frees it for the next one when this is settled, or has waited for its
    /// sinks for long.
    pub(crate) alone: Option<OwnedSemaphorePermit>,
    /// The place of a page in flight, which is freed when its many links are admitted.
    pub(crate) place: Option<InFlightGuard>,
}

impl Handled {
    /// Returns the results of its page or task, if it is done.
    pub(crate) fn output(&self) -> Option<&PageOutput> {
        self.result.as_ref().ok()
    }

    /// Returns the number of links of its page.
    pub(crate) fn links(&self) -> usize {
        self.output().map_or(0, |output| output.links.len())
    }
}

/// Ends the worker by this error. Returns the outcome of the work that met it.
pub(crate) fn aborted(health: &Health, error: impl Into<Error>) -> Outcome {
    health.abort(error);
    Outcome::Release
}

/// Returns the outcome of a URL or a task that made this worker panic. It is not retried: it would do the same to
/// others.
pub(crate) fn panicked() -> Outcome {
    Outcome::Failed(Failure::new(Class::Crash, "handling it made the worker panic"), Reason::Final)
}

impl Settlement {
    fn with_result(message: Message, attempts: u32, result: Result<PageOutput, Outcome>) -> Self {
        let (memory, took, alone, place) = Default::default();
        Self(Box::new(Handled { message, attempts, result, memory, took, alone, place }))
    }

    /// Creates the settlement of a URL or a task whose spider was not looked for.
    pub(crate) fn new(message: Message, outcome: Outcome) -> Self {
        Self::with_result(message, 0, Err(outcome))
    }

    /// Creates the settlement of a URL.
    pub(crate) fn from_url(claimed: ClaimedUrl, outcome: Outcome) -> Self {
        Self::with_result(claimed.message, claimed.attempts, Err(outcome))
    }

    /// Creates the settlement of a URL that comes back later, and asks for another slot then.
    pub(crate) fn snooze(mut claimed: ClaimedUrl, until: UnixMs) -> Self {
        claimed.message.slot = None;
        Self::from_url(claimed, Outcome::Snooze { until })
    }

    /// Creates the settlement of a page, which from now on waits for its spider's sinks if it has anything for them.
    pub(crate) fn done(claimed: ClaimedUrl, output: PageOutput, memory: Option<PageVisit>) -> Self {
        output.await_sinks();
        Self::with_result(claimed.message, claimed.attempts, Ok(output)).remembering(memory)
    }

    /// Creates the settlement of a task, which from now on waits for its spider's sinks if it has anything for them.
    pub(crate) fn of_task(claimed: Claimed, result: Result<PageOutput, Outcome>) -> Self {
        if let Ok(output) = &result {
            output.await_sinks();
        }
        Self::with_result(claimed.message, claimed.attempts, result)
    }

    /// Sets the update of the page history.
    pub(crate) fn remembering(mut self, memory: Option<PageVisit>) -> Self {
        self.0.memory = memory;
        self
    }

    /// Sets the duration of the fetch.
    pub(crate) fn after(mut self, took: Duration) -> Self {
        self.0.took = Some(took);
        self
    }

    /// Sets the permit of a URL that runs alone: its start ends when it is settled, not before.
    pub(crate) fn with_alone(mut self, alone: Option<OwnedSemaphorePermit>) -> Self {
        self.0.alone = alone;
        self
    }

    /// Keeps the page in its place until this is settled.
    pub(crate) fn with_place(mut self, place: Option<InFlightGuard>) -> Self {
        self.0.place = place;
        self
    }

    /// Returns the message of the URL.
    pub(crate) fn message(&self) -> &Message {
        &self.0.message
    }

    /// Returns the outcome of the URL; `None` if it is done.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.0.result.as_ref().err()
    }

    /// Whether its page has many links.
    pub(crate) fn has_many_links(&self) -> bool {
        self.0.links() > MANY_LINKS
    }

    /// Takes that permit away. When it is dropped, the next URL that runs alone may start.
    pub(crate) fn take_alone(&mut self) -> Option<OwnedSemaphorePermit> {
        self.0.alone.take()
    }

    /// Takes the page for the sinks, if it is not stored yet.
    pub(crate) fn take_for_sinks(&mut self) -> Option<ForSinks> {
        self.0.result.as_mut().ok()?.take_for_sinks()
    }

    /// Turns this into a failure, because the program's items cannot be read to their end.
    pub(crate) fn failed(self, policy: Retry, failure: Failure) -> Self {
        let policy = policy.with_max(self.0.message.work.retries());
        let (attempts, now) = (self.0.attempts + 1, UnixMs::now());
        self.not_done(retry::again(&policy, failure, attempts, now, rand::random()))
    }

    /// Turns this into the settlement of a URL that is no longer this worker's.
    pub(crate) fn lost(self) -> Self {
        self.not_done(Outcome::Republish)
    }

    fn not_done(mut self, outcome: Outcome) -> Self {
        (self.0.result, self.0.memory) = (Err(outcome), None);
        self
    }

    pub(crate) fn into_handled(self) -> Handled {
        *self.0
    }
}
