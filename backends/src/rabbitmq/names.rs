//! The names of queues and exchanges.

use std::time::Duration;

use trawl_common::frontier::ladder::RUNGS;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::SubscriberName;

/// Parked URLs that are due; consumed first.
pub(super) const DUE: &str = "due_queue";
/// The exchange for dead letters.
pub(super) const FAILED_EXCHANGE: &str = "failed_exchange";
/// Routing key of dead letters on [`FAILED_EXCHANGE`].
pub(super) const FAILED_KEY: &str = "failed";
/// The queue of dead letters.
pub(super) const FAILED: &str = "failed_urls";
/// The exchange for messages that outlive a lane's time to live.
pub(super) const EXPIRED_EXCHANGE: &str = "expired_exchange";
/// Routing key of expired messages on [`EXPIRED_EXCHANGE`].
pub(super) const EXPIRED_KEY: &str = "expired";
/// The queue of expired messages.
pub(super) const EXPIRED: &str = "expired_urls";

/// Items: the exchange that they are published to, by the spider's name, and the stream that keeps them.
pub(super) const ITEMS: &str = "items";

/// The stream of orders about crawls and hosts.
pub(super) const CONTROL: &str = "control";

/// The stream of submitted jobs, deployed spiders and cron schedules.
pub(super) const JOURNAL: &str = "journal";
/// The stream of page counts of crawls that have a page limit.
pub(super) const COUNTS: &str = "control.counts";

/// Wake-ups for workers: there may be a job to take.
pub(super) const JOBS: &str = "crawl_jobs";

/// The exchange for the events of crawls.
pub(super) const EVENTS: &str = "events";

/// Prefix of the names of webhook queues.
const WEBHOOKS: &str = "webhooks";

/// The exchange for external publishers that may write to nothing else. They address the lanes by their queues' names.
pub(super) const URLS: &str = "urls";

/// The priority lane.
pub(super) const PRIORITY: &str = "priority_queue";
/// The bulk lane.
pub(super) const BULK: &str = "url_queue_ttl";
/// The lane of tasks.
pub(super) const TASKS: &str = "task_queue";

/// Returns the queue that receives a lane's messages from the exchange [`URLS`]. It is separate from the lane's own
/// queue, which dead-letters: RabbitMQ before 4.0 stops dead-lettering for good, in all queues of the node, over an
/// external message with an `x-death` header that it cannot read.
pub(super) fn inlet(source: SourceQueue) -> Option<&'static str> {
    match source {
        SourceQueue::Priority => Some("urls.priority_queue"),
        SourceQueue::Task => Some("urls.task_queue"),
        SourceQueue::Bulk => Some("urls.url_queue_ttl"),
        SourceQueue::Due | SourceQueue::Expired => None,
    }
}

/// Returns the queue of a source queue.
pub(super) fn source(source: SourceQueue) -> &'static str {
    match source {
        SourceQueue::Due => DUE,
        SourceQueue::Priority => PRIORITY,
        SourceQueue::Expired => EXPIRED,
        SourceQueue::Task => TASKS,
        SourceQueue::Bulk => BULK,
    }
}

/// Whether this queue is declared by another program that shares the broker (`queues.topology = "passive"`). That
/// program would fail on a queue that trawl has declared.
pub(super) fn is_of_others(queue: &str) -> bool {
    [BULK, PRIORITY, FAILED].contains(&queue)
}

/// Whether this is a queue of trawl's own.
pub(super) fn is_own(queue: &str) -> bool {
    let is_rung = RUNGS.into_iter().any(|rung| self::rung(rung) == queue);
    let is_for_events = [EVENTS, WEBHOOKS]
        .iter()
        .any(|prefix| queue.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')));
    is_rung
        || is_for_events
        || [FAILED, ITEMS, CONTROL, COUNTS, JOURNAL, JOBS].contains(&queue)
        || SourceQueue::ALL
            .into_iter()
            .any(|source| self::source(source) == queue || inlet(source) == Some(queue))
}

/// Returns the queue of a subscriber to events.
pub(super) fn subscriber(name: &SubscriberName) -> String {
    format!("{EVENTS}.{name}")
}

/// The queue of the webhook with this id.
pub(super) fn webhook(id: &str) -> String {
    format!("{WEBHOOKS}.{id}")
}

/// Returns the queue in which a webhook's deliveries wait to be retried.
pub(super) fn webhook_waiting(id: &str) -> String {
    format!("{WEBHOOKS}.{id}.wait")
}

/// Returns the queue of a rung.
pub(super) fn rung(rung: Duration) -> String {
    format!("wait.{}", rung.as_secs())
}
