//! An engine to carry URLs, and a worker's part in it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use trawl_common::message::Message;
use trawl_common::outcome::Terminal;
use trawl_common::ports::{
    Claim, Consumer, Delivery, Discovery, Finish, Frontier, Heard, NewUrl, Queue, Receipt, Result,
};
use trawl_common::url::CanonicalUrl;

use super::scene::Scene;

/// The two ports that carry a URL through a fleet.
pub struct Engine {
    /// The messages.
    pub queue: Arc<dyn Queue>,
    /// Their records.
    pub frontier: Arc<dyn Frontier>,
}

/// How long what must come may take.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// How long to look for what must not come.
pub(super) const GLANCE: Duration = Duration::from_millis(300);
/// How long the sweeper may take its time.
pub(super) const SWEEP: Duration = Duration::from_secs(90);
/// What clocks and timers may be off.
pub(super) const SLACK: Duration = Duration::from_millis(50);

impl Engine {
    /// Admits, publishes and confirms.
    pub(super) async fn send(
        &self,
        scene: &Scene<'_>,
        lease: &Discovery,
        urls: &[NewUrl],
    ) -> Result<Vec<Message>> {
        self.frontier.admit(lease, urls).await?;
        let messages: Vec<Message> = urls.iter().map(|url| url.message(&scene.crawl)).collect();
        self.publish(&messages).await?;
        Ok(messages)
    }

    pub(super) async fn publish(&self, messages: &[Message]) -> Result<()> {
        self.queue.publish(messages).await?;
        for message in messages {
            self.frontier.confirm(&message.crawl, std::slice::from_ref(&message.url)).await?;
        }
        Ok(())
    }

    /// A running crawl whose first `count` bulk pages are on their way.
    pub(super) async fn begin(&self, count: usize) -> Result<(Scene<'_>, Discovery)> {
        let scene = Scene::new(&self.frontier);
        let lease = scene.begin(0).await?;
        let urls: Vec<NewUrl> = (0..count).map(|number| scene.new_url(number)).collect();
        self.send(&scene, &lease, &urls).await?;
        Ok((scene, lease))
    }
}

/// Messages with their receipts.
pub(super) type Received = Vec<(Message, Receipt)>;

pub(super) fn read(batch: Vec<Delivery>) -> Received {
    let read = |delivery: Delivery| (delivery.message.expect("it was sent as a message"), delivery.receipt);
    batch.into_iter().map(read).collect()
}

/// One batch, in the order that a consumer promises; `None` if there is none within `limit`.
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

/// Batch after batch, until there are `count`.
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

pub(super) fn urls(received: &Received) -> BTreeSet<CanonicalUrl> {
    received.iter().map(|(message, _)| message.url.clone()).collect()
}

/// What a worker does with what it takes.
pub(super) async fn handle(engine: &Engine, scene: &Scene<'_>, received: &Received) -> Result<Vec<Heard>> {
    let mut heard = Vec::new();
    for (message, receipt) in received {
        let told = engine.frontier.hear(&scene.worker, std::slice::from_ref(message)).await?[0];
        if told != Heard::Drop {
            let claim = Claim { crawl: message.crawl.clone(), url: message.url.clone() };
            let finish = Finish { claim, terminal: Terminal::Done, note: None };
            engine.frontier.finish(&[finish]).await?;
        }
        engine.queue.ack(&[*receipt]).await?;
        heard.push(told);
    }
    Ok(heard)
}
