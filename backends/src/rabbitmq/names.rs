//! The names of queues and exchanges.

use std::time::Duration;

use trawl_common::frontier::ladder::RUNGS;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::SubscriberName;

/// Parked URLs whose time has come; consumed first.
pub(super) const DUE: &str = "due_queue";
/// Dead letters go through here...
pub(super) const FAILED_EXCHANGE: &str = "failed_exchange";
/// ...with this key...
pub(super) const FAILED_KEY: &str = "failed";
/// ...to here.
pub(super) const FAILED: &str = "failed_urls";
/// What outlives a lane's time to live goes through here...
pub(super) const EXPIRED_EXCHANGE: &str = "expired_exchange";
/// ...with this key...
pub(super) const EXPIRED_KEY: &str = "expired";
/// ...to here.
pub(super) const EXPIRED: &str = "expired_urls";

/// Items: the exchange that they are published to, by the spider's name, and the stream that keeps them.
pub(super) const ITEMS: &str = "items";

/// The stream of what was ordered of crawls and hosts.
pub(super) const CONTROL: &str = "control";

/// The stream of what was asked for: jobs, deployed spiders, schedules.
pub(super) const JOURNAL: &str = "journal";
/// The stream of how many pages crawls have done that may do only so many.
pub(super) const COUNTS: &str = "control.counts";

/// Wake-ups for workers: there may be a job to take.
pub(super) const JOBS: &str = "crawl_jobs";

/// Where it is announced what happens to crawls.
pub(super) const EVENTS: &str = "events";

/// What the queues of webhooks begin with.
const WEBHOOKS: &str = "webhooks";

/// Where strangers may publish who may write to nothing else: for the lanes, by their queues' names.
pub(super) const URLS: &str = "urls";

/// The priority lane.
pub(super) const PRIORITY: &str = "priority_queue";
/// The bulk lane.
pub(super) const BULK: &str = "url_queue_ttl";
/// The lane of tasks.
pub(super) const TASKS: &str = "task_queue";

/// The queue of what the exchange [`URLS`] is sent for a lane. It is not the lane's own: that dead-letters, and RabbitMQ before 4.0
/// stops doing so for good, in all queues of the node, over a stranger's message with an `x-death` that it cannot read.
pub(super) fn inlet(line: SourceQueue) -> Option<&'static str> {
    match line {
        SourceQueue::Priority => Some("urls.priority_queue"),
        SourceQueue::Task => Some("urls.task_queue"),
        SourceQueue::Bulk => Some("urls.url_queue_ttl"),
        SourceQueue::Due | SourceQueue::Expired => None,
    }
}

/// The queue of a line.
pub(super) fn line(line: SourceQueue) -> &'static str {
    match line {
        SourceQueue::Due => DUE,
        SourceQueue::Priority => PRIORITY,
        SourceQueue::Expired => EXPIRED,
        SourceQueue::Task => TASKS,
        SourceQueue::Bulk => BULK,
    }
}

/// Whether a program that trawl works beside, with `queues.topology = "passive"`, declares this queue: it would fail on one of trawl's.
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
        || SourceQueue::ALL.into_iter().any(|line| self::line(line) == queue || inlet(line) == Some(queue))
}

/// The queue of one who reads events.
pub(super) fn subscriber(name: &SubscriberName) -> String {
    format!("{EVENTS}.{name}")
}

/// The queue of the webhook with this id.
pub(super) fn webhook(id: &str) -> String {
    format!("{WEBHOOKS}.{id}")
}

/// Where its deliveries wait that are to be tried again.
pub(super) fn webhook_waiting(id: &str) -> String {
    format!("{WEBHOOKS}.{id}.wait")
}

/// The queue of a rung.
pub(super) fn rung(rung: Duration) -> String {
    format!("wait.{}", rung.as_secs())
}
