//! The promises of a sweep, on any engine: lost URLs come to a worker again.

use std::time::Duration;

use trawl_common::frontier::message::Message;
use trawl_common::frontier::{ClaimReply, StartReply};
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;
use trawl_engine::{Consumer, Receipt};

use super::engine::{Engine, LIMIT, collect, sweep_round, sweep_until_claimed};
use super::eventually;
use super::fixture::{Fixture, TAKE, started, took};

/// Makes a test of each promise; the fixture returns a guard and an [`Engine`] with a short `lost_after`, some 200 ms,
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
            a_task_that_the_queue_lost_comes_again_with_its_recipe
            a_task_that_the_store_forgot_comes_back_with_its_message
            a_request_that_the_queue_lost_comes_again_with_its_body
            a_request_that_the_store_forgot_comes_back_with_its_message
        }
    };
}

/// A URL that is no longer extended comes again: its worker has died after it acked the message.
pub async fn what_is_no_longer_kept_comes_again(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.start(&fixture.worker, 0).await?;
    engine.queue.ack(&[received[0].1]).await?;
    sweep_until_claimed(engine, &fixture, &mut *consumer, 0, started(0, 1)).await
}

/// A URL that was admitted and never published comes: its producer died in between.
pub async fn what_was_admitted_and_never_published_comes(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    engine.frontier.admit(&lease, &[fixture.new_work(0)]).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    sweep_until_claimed(engine, &fixture, &mut *consumer, 0, TAKE).await
}

/// A URL whose message the queue lost comes again: acked by mistake, purged by hand, or gone with the queue.
pub async fn what_the_queue_lost_comes_again(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    engine.queue.ack(&[received[0].1]).await?;
    sweep_until_claimed(engine, &fixture, &mut *consumer, 0, TAKE).await
}

/// A parked URL whose message never came back comes, with its failure, and not before its time.
pub async fn what_was_parked_and_never_came_back_comes(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let until = UnixMs::now().plus(Duration::from_millis(100));
    fixture.park(&fixture.worker, 0, until, true).await?;
    fixture.confirm_parked(0, until).await?;
    engine.queue.ack(&[received[0].1]).await?;
    sweep_until_claimed(engine, &fixture, &mut *consumer, 0, took(1)).await
}

/// A URL whose message arrived in a pause, and was acked, comes after the pause. No sweep publishes it before the pause
/// is over, when it would be requeued in vain.
pub async fn what_a_pause_held_back_comes_after_it(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    engine.control.pause(&fixture.crawl).await?;
    assert!(fixture.is_held_back(&fixture.worker, 0).await?);
    let receipts: Vec<Receipt> = received.iter().map(|(_, receipt)| *receipt).collect();
    engine.queue.ack(&receipts).await?;
    for _ in 0..12 {
        assert!(sweep_round(engine, &fixture, &mut *consumer).await?.is_empty(), "it is still paused");
    }
    engine.control.resume(&fixture.crawl).await?;
    sweep_until_claimed(engine, &fixture, &mut *consumer, 0, TAKE).await
}

/// A URL that a worker held and was not allowed to start in a pause comes after the pause.
pub async fn what_a_pause_let_go_comes_after_it(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE);
    engine.control.pause(&fixture.crawl).await?;
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost);
    engine.queue.ack(&[received[0].1]).await?;
    engine.control.resume(&fixture.crawl).await?;
    sweep_until_claimed(engine, &fixture, &mut *consumer, 0, TAKE).await
}

/// A task whose message the queue lost comes again with its recipe, which the store knows.
pub async fn a_task_that_the_queue_lost_comes_again_with_its_recipe(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    let sent = engine.send(&fixture, &lease, &[fixture.new_task("lost")]).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    engine.queue.ack(&[received[0].1]).await?;
    comes_again(engine, &fixture, &mut *consumer, &sent[0]).await
}

/// A task that the store forgot comes back with its message, so that it can be published again when its message is lost
/// later.
pub async fn a_task_that_the_store_forgot_comes_back_with_its_message(engine: &Engine) -> Result<()> {
    let fixture = Fixture::new(&engine.frontier);
    let sent = fixture.new_task("forgotten").message(&fixture.crawl);
    comes_back_to_a_store_that_forgot(engine, &fixture, &sent).await
}

async fn comes_back_to_a_store_that_forgot(
    engine: &Engine,
    fixture: &Fixture<'_>,
    sent: &Message,
) -> Result<()> {
    engine.queue.publish(std::slice::from_ref(sent)).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    assert_eq!(received[0].0, *sent);
    // The crawl was forgotten too: the message is republished once.
    let replies = engine.frontier.claim(&fixture.worker, &[received[0].0.clone()]).await?;
    assert_eq!(replies, [ClaimReply::SendAgain]);
    engine.queue.ack(&[received[0].1]).await?;
    assert_eq!(fixture.crawl_stats().await?.counts.admitted, 1);
    comes_again(engine, fixture, &mut *consumer, sent).await
}

/// A request whose message the queue lost comes again with its body, which the store knows.
pub async fn a_request_that_the_queue_lost_comes_again_with_its_body(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    let sent = engine.send(&fixture, &lease, &[fixture.new_request("lost")]).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    engine.queue.ack(&[received[0].1]).await?;
    comes_again(engine, &fixture, &mut *consumer, &sent[0]).await
}

/// A request that the store forgot comes back with its message, so that it can be published again when its message is
/// lost later.
pub async fn a_request_that_the_store_forgot_comes_back_with_its_message(engine: &Engine) -> Result<()> {
    let fixture = Fixture::new(&engine.frontier);
    let sent = fixture.new_request("forgotten").message(&fixture.crawl);
    comes_back_to_a_store_that_forgot(engine, &fixture, &sent).await
}

/// Repeats rounds of housekeeping until the task or the request arrives complete and can be claimed.
async fn comes_again(
    engine: &Engine,
    fixture: &Fixture<'_>,
    consumer: &mut dyn Consumer,
    sent: &Message,
) -> Result<()> {
    eventually(LIMIT, async || {
        let mut came = false;
        for (message, receipt) in sweep_round(engine, fixture, consumer).await? {
            assert_eq!(message.work, sent.work);
            came |= engine.frontier.claim(&fixture.other, &[message]).await? == [TAKE];
            engine.queue.ack(&[receipt]).await?;
        }
        Ok(came)
    })
    .await
}
