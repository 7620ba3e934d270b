//! What a sweep promises, on any engine: what was lost from sight comes to a worker again.

use std::time::Duration;

use trawl_common::frontier::Start;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;
use trawl_engine::Receipt;

use super::engine::{Engine, collect, tend, tend_until_claimed};
use super::fixture::{TAKE, started, took};

/// Makes a test of each promise; the fixture returns a guard and an [`Engine`] of little patience, some 200 ms,
/// whose queues no other test uses and whose store no other test sweeps.
#[macro_export]
macro_rules! sweep_conformance {
    ($brief:path) => {
        $crate::promises! { $brief, sweeping:
            what_is_no_longer_kept_comes_again
            what_was_admitted_and_never_published_comes
            what_the_queue_lost_comes_again
            what_was_parked_and_never_came_back_comes
            what_a_pause_held_back_comes_after_it
            what_a_pause_let_go_comes_after_it
        }
    };
}

/// Its worker has died, after it acked the message.
pub async fn what_is_no_longer_kept_comes_again(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10).await?;
    let received = collect(&mut *consumer, 1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.start(&fixture.worker, 0).await?;
    engine.queue.ack(&[received[0].1]).await?;
    tend_until_claimed(engine, &fixture, &mut *consumer, 0, started(0, 1)).await
}

/// Its producer died in between.
pub async fn what_was_admitted_and_never_published_comes(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    engine.frontier.admit(&lease, &[fixture.new_url(0)]).await?;
    let mut consumer = engine.queue.consume(10).await?;
    tend_until_claimed(engine, &fixture, &mut *consumer, 0, TAKE).await
}

/// Acked by mistake, purged by hand, or gone with the queue.
pub async fn what_the_queue_lost_comes_again(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10).await?;
    let received = collect(&mut *consumer, 1).await?;
    engine.queue.ack(&[received[0].1]).await?;
    tend_until_claimed(engine, &fixture, &mut *consumer, 0, TAKE).await
}

/// With its failure, and not before its time.
pub async fn what_was_parked_and_never_came_back_comes(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10).await?;
    let received = collect(&mut *consumer, 1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let until = UnixMs::now().plus(Duration::from_millis(100));
    fixture.park(&fixture.worker, 0, until, true).await?;
    engine.frontier.confirm(&fixture.crawl, &[fixture.url(0)]).await?;
    engine.queue.ack(&[received[0].1]).await?;
    tend_until_claimed(engine, &fixture, &mut *consumer, 0, took(1)).await
}

/// Its message arrived in the pause, and went. No sweep sends it again before the pause is over, when it would go round in vain.
pub async fn what_a_pause_held_back_comes_after_it(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10).await?;
    let received = collect(&mut *consumer, 1).await?;
    engine.control.pause(&fixture.crawl).await?;
    assert!(fixture.is_held_back(&fixture.worker, 0).await?);
    let receipts: Vec<Receipt> = received.iter().map(|(_, receipt)| *receipt).collect();
    engine.queue.ack(&receipts).await?;
    for _ in 0..12 {
        assert!(tend(engine, &fixture, &mut *consumer).await?.is_empty(), "it is still paused");
    }
    engine.control.resume(&fixture.crawl).await?;
    tend_until_claimed(engine, &fixture, &mut *consumer, 0, TAKE).await
}

/// A worker held it and was not allowed to start.
pub async fn what_a_pause_let_go_comes_after_it(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10).await?;
    let received = collect(&mut *consumer, 1).await?;
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE);
    engine.control.pause(&fixture.crawl).await?;
    assert_eq!(fixture.start(&fixture.worker, 0).await?, Start::Lost);
    engine.queue.ack(&[received[0].1]).await?;
    engine.control.resume(&fixture.crawl).await?;
    tend_until_claimed(engine, &fixture, &mut *consumer, 0, TAKE).await
}
