//! An engine under test, and the steps of a worker with it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, Key};
use trawl_common::ports::{Claim, Control, Finish, NewWork, Result};
use trawl_engine::{Broker, Consumer, Content, Delivery, Lease, Receipt, Records};

use super::eventually;
use super::fixture::Fixture;

/// The ports that carry a URL through a fleet.
pub struct Engine {
    /// The messages.
    pub queue: Arc<dyn Broker>,
    /// Their records.
    pub frontier: Arc<dyn Records>,
    /// Commands to their crawls.
    pub control: Arc<dyn Control>,
}

/// Maximum wait for an expected event.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// Time to watch for an event that must not happen.
pub(super) const GLANCE: Duration = Duration::from_millis(300);
/// Time that one round of the housekeeping waits for messages.
const ROUND: Duration = Duration::from_millis(50);
/// Tolerance for clocks and timers.
pub(super) const SLACK: Duration = Duration::from_millis(50);

impl Engine {
    /// Admits URLs, publishes their messages and confirms them.
    pub(super) async fn send(
        &self,
        fixture: &Fixture<'_>,
        lease: &Lease,
        urls: &[NewWork],
    ) -> Result<Vec<Message>> {
        self.frontier.admit(lease, urls).await?;
        let messages: Vec<Message> = urls.iter().map(|url| url.message(&fixture.crawl)).collect();
        self.publish(&messages).await?;
        Ok(messages)
    }

    pub(super) async fn publish(&self, messages: &[Message]) -> Result<()> {
        self.queue.publish(messages).await?;
        self.frontier.confirm(messages).await
    }

    /// Starts a crawl, and publishes its first `count` bulk pages.
    pub(super) async fn begin(&self, count: usize) -> Result<(Fixture<'_>, Lease)> {
        let fixture = Fixture::new(&self.frontier);
        let lease = fixture.begin(0).await?;
        let urls: Vec<NewWork> = (0..count).map(|number| fixture.new_work(number)).collect();
        self.send(&fixture, &lease, &urls).await?;
        Ok((fixture, lease))
    }
}

/// Messages with their receipts.
pub(super) type Received = Vec<(Message, Receipt)>;

pub(super) fn read(batch: Vec<Delivery>) -> Received {
    let read = |delivery: Delivery| match delivery.content {
        Content::Message(message) => (message, delivery.receipt),
        content @ (Content::Probe(_) | Content::Newer(_) | Content::Malformed(_) | Content::Unproven(_)) => {
            panic!("not sent as a message: {content:?}")
        }
    };
    batch.into_iter().map(read).collect()
}

/// Runs one round of a fleet's housekeeping: sweeps once, publishes lost messages again, forwards probes, and returns
/// the messages that arrived meanwhile.
pub(super) async fn sweep_round(
    engine: &Engine,
    fixture: &Fixture<'_>,
    consumer: &mut dyn Consumer,
) -> Result<Received> {
    let Engine { queue, frontier, .. } = engine;
    let swept = frontier.sweep(&fixture.other).await?;
    queue.publish(&swept.lost).await?;
    frontier.confirm(&swept.lost).await?;
    if let Some(times) = swept.probe {
        let returned = queue.probe(times).await?;
        frontier.probe_sent(times).await?;
        if !returned.is_empty() {
            frontier.probes_returned(&returned).await?;
        }
    }
    for crawl in &swept.awaiting {
        frontier.await_parked(crawl, queue.longest_parked().await?).await?;
    }
    let batch = timeout(ROUND, consumer.next(10)).await.unwrap_or(Ok(Vec::new()))?;
    let (probes, messages): (Vec<_>, Vec<_>) =
        batch.into_iter().partition(|delivery| matches!(delivery.content, Content::Probe(_)));
    for Delivery { content, receipt } in probes {
        if let Content::Probe(probe) = content {
            frontier.probes_returned(&[probe]).await?;
        }
        queue.ack(&[receipt]).await?;
    }
    Ok(read(messages))
}

/// Repeats rounds of housekeeping until page `number` arrives and its claim gets `expected`; other messages are acked.
pub(super) async fn sweep_until_claimed(
    engine: &Engine,
    fixture: &Fixture<'_>,
    consumer: &mut dyn Consumer,
    number: usize,
    expected: ClaimReply,
) -> Result<()> {
    eventually(LIMIT, async || {
        let mut came = false;
        for (message, receipt) in sweep_round(engine, fixture, consumer).await? {
            let is_it = message.work == fixture.url(number);
            came |= is_it && fixture.claim(&fixture.other, number).await? == expected;
            engine.queue.ack(&[receipt]).await?;
        }
        Ok(came)
    })
    .await
}

/// Receives one batch, and checks the order that a consumer promises. Returns `None` if there is none within `limit`.
pub(super) async fn next(
    consumer: &mut dyn Consumer,
    max: usize,
    limit: Duration,
) -> Result<Option<Received>> {
    let Ok(batch) = timeout(limit, consumer.next(max)).await else { return Ok(None) };
    let batch = read(batch?);
    assert!((1..=max).contains(&batch.len()), "{} of {max}", batch.len());
    let urgency = |message: &Message| (message.until.is_none(), message.lane);
    assert!(batch.is_sorted_by_key(|(message, _)| urgency(message)), "{batch:?}");
    Ok(Some(batch))
}

/// Receives batches until there are `count` messages.
pub(super) async fn collect(consumer: &mut dyn Consumer, count: usize) -> Result<Received> {
    let deadline = Instant::now() + LIMIT;
    let mut received = Vec::new();
    while received.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        let batch = next(consumer, count - received.len(), left).await?;
        received.extend(batch.unwrap_or_else(|| panic!("{} of {count} in {LIMIT:?}", received.len())));
    }
    Ok(received)
}

pub(super) fn urls(received: &Received) -> BTreeSet<Key> {
    received.iter().map(|(message, _)| message.key()).collect()
}

/// Handles received messages as a worker does.
pub(super) async fn handle(
    engine: &Engine,
    fixture: &Fixture<'_>,
    received: &Received,
) -> Result<Vec<ClaimReply>> {
    let mut replies = Vec::new();
    for (message, receipt) in received {
        let outcome = engine.frontier.claim(&fixture.worker, std::slice::from_ref(message)).await?[0];
        if outcome != ClaimReply::Drop {
            let claim = Claim::new(message);
            let finish = Finish::new(claim, Terminal::Done);
            engine.frontier.finish(&fixture.worker, &[finish]).await?;
        }
        engine.queue.ack(&[*receipt]).await?;
        replies.push(outcome);
    }
    Ok(replies)
}
