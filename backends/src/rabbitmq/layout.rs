//! The queues of URLs and tasks, of wake-ups for jobs and of events, with their arguments.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use trawl_common::frontier::ladder::RUNGS;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::Queues;

use super::arguments::Arguments;
use super::names;

/// Time that a wake-up waits for a worker: one that comes later looks for jobs by itself.
const WAKE_UP_TTL: Duration = Duration::from_secs(60);

/// Maximum number of unread events in a queue: some 100 MB.
const MAX_EVENTS: u32 = 100_000;

/// Time that the queues of a webhook outlive the last worker that knows it. Workers declare them every day.
const WEBHOOK_QUEUE_EXPIRY: Duration = Duration::from_secs(30 * 24 * 3600);

/// The queues and exchanges in the settings, and the queues that were logged.
pub(super) struct Layout {
    pub(super) queues: Queues,
    named: Mutex<BTreeSet<String>>,
}

impl Layout {
    /// Fails with `Refused` if settings make trawl listen to one of its own queues.
    pub(super) fn new(queues: &Queues) -> Result<Self> {
        if let Some(own) = queues.listen.iter().find(|queue| names::is_own(queue.as_str())) {
            let text = format!("queues.listen: {own} is a queue of trawl's own: leave it out");
            return Err(Error::new(ErrorKind::Refused, text));
        }
        Ok(Self { queues: queues.clone(), named: Mutex::default() })
    }

    /// Returns whether the queue was not logged yet; from now on it counts as logged.
    pub(super) fn is_news(&self, queue: &str) -> bool {
        self.named.lock().insert(queue.to_owned())
    }

    /// Returns every queue except the inlets, with its arguments.
    pub(super) fn all(&self) -> Vec<(String, Arguments<'static>)> {
        let rung = |rung: Duration| {
            let back = Some(("", names::DUE));
            (names::rung(rung), Arguments { ttl: Some(rung), dead_letter: back, ..self.arguments() })
        };
        let jobs = Arguments { ttl: Some(WAKE_UP_TTL), is_consumed: true, ..self.arguments() };
        let sources =
            SourceQueue::ALL.map(|source| (names::source(source).to_owned(), self.of_source(source)));
        let dead_letters =
            Arguments { ttl: Some(self.queues.failed.ttl), is_consumed: true, ..self.arguments() };
        sources
            .into_iter()
            .chain([(names::FAILED.to_owned(), dead_letters), (names::JOBS.to_owned(), jobs)])
            .chain(RUNGS.into_iter().map(rung))
            .collect()
    }

    /// Returns the queues for strangers' messages to a lane. They have no expiry and no dead-lettering.
    pub(super) fn inlets(&self) -> impl Iterator<Item = (SourceQueue, &'static str, Arguments<'static>)> {
        let arguments = Arguments { is_consumed: true, ..self.arguments() };
        SourceQueue::ALL
            .into_iter()
            .filter_map(move |source| Some((source, names::inlet(source)?, arguments)))
    }

    /// Returns the arguments of a subscriber's queue.
    pub(super) fn events(&self) -> Arguments<'static> {
        Arguments { most: Some(MAX_EVENTS), is_consumed: true, ..self.arguments() }
    }

    /// Returns the arguments of a webhook's queue.
    pub(super) fn webhook(&self) -> Arguments<'static> {
        Arguments { unused: Some(WEBHOOK_QUEUE_EXPIRY), ..self.events() }
    }

    /// Returns the arguments of the queue in which the deliveries of a webhook wait: each goes to the queue `back`
    /// when its own time is over.
    pub(super) fn webhook_waiting<'a>(&self, back: &'a str) -> Arguments<'a> {
        Arguments { dead_letter: Some(("", back)), unused: Some(WEBHOOK_QUEUE_EXPIRY), ..self.arguments() }
    }

    fn of_source(&self, source: SourceQueue) -> Arguments<'static> {
        let consumed = Arguments { is_consumed: true, ..self.arguments() };
        let expire =
            Arguments { dead_letter: Some((names::EXPIRED_EXCHANGE, names::EXPIRED_KEY)), ..consumed };
        let for_so_long = |ttl| Arguments { ttl: Some(ttl), ..expire };
        match source {
            // A program's work may be rare and expensive, so a task waits as long as necessary.
            SourceQueue::Due | SourceQueue::Task => expire,
            SourceQueue::Expired => consumed,
            SourceQueue::Priority => for_so_long(self.queues.priority.ttl),
            SourceQueue::Bulk => for_so_long(self.queues.bulk.ttl),
        }
    }

    fn arguments(&self) -> Arguments<'static> {
        Arguments {
            kind: self.queues.kind,
            ttl: None,
            dead_letter: None,
            most: None,
            unused: None,
            is_consumed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queues_of_webhooks_go_when_nobody_uses_them_for_long_and_all_others_stay() {
        let layout = Layout::new(&Queues::default()).unwrap();
        let goes = |arguments: Arguments<'_>| arguments.table().inner().contains_key("x-expires");
        assert!(goes(layout.webhook()) && goes(layout.webhook_waiting("webhooks.a")));
        assert!(!goes(layout.events()) && !layout.all().into_iter().any(|(_, arguments)| goes(arguments)));
    }
}
