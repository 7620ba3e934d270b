//! The promises of every queue, together with the frontier of its engine: a message wakes a record, so each is admitted
//! first, and claimed when it arrives.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};
use trawl_common::frontier::dead_letter::{Cause, DeadLetter};
use trawl_common::frontier::ladder::RUNGS;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::{Hop, Message};
use trawl_common::frontier::outcome::{Class, Reason, Terminal};
use trawl_common::frontier::{ClaimReply, Task};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{NewWork, Result};
use trawl_common::task::{MAX_RECIPE_BYTES, NewTask};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Lease, Parked, Receipt};

pub use super::engine::Engine;
use super::engine::{GLANCE, LIMIT, SLACK, collect, handle, next, read, urls};
use super::fixture::{Fixture, TAKE, much_later};

/// Makes a test of each promise of a queue; the fixture returns a guard and an [`Engine`] whose queues no other test
/// uses.
#[macro_export]
macro_rules! queue_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, queue:
            a_message_arrives_with_all_that_it_carries
            a_message_by_hand_arrives_with_all_that_it_carries
            an_acked_message_does_not_come_again
            a_released_message_comes_again
            a_foreign_receipt_settles_nothing
            a_message_too_many_is_dropped
            every_batch_is_ordered_by_urgency
            prefetch_bounds_what_is_unsettled
            cancelling_a_wait_loses_nothing
            two_consumers_share_the_work
            a_parked_message_comes_back_in_time_with_all_that_it_carries
            a_message_that_is_parked_late_comes_no_sooner
            a_wake_is_never_later_than_asked
            a_dead_letter_of_any_shape_is_taken
            a_task_arrives_with_everything_it_was_submitted_with_also_from_the_ladder
            a_request_arrives_with_everything_it_was_submitted_with_also_from_the_ladder
            tasks_wait_for_who_takes_them
        }
    };
}

/// A message arrives complete, in either lane, with a deadline or without, and in the spelling in which its URL is
/// requested.
pub async fn a_message_arrives_with_all_that_it_carries(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    let urls = [
        fixture.new_work(0),
        NewWork { lane: Lane::Priority, ..fixture.new_work(1) },
        NewWork {
            deadline: Some(much_later()),
            written: CanonicalUrl::recorded("http://a.example/%7Ewritten").ok(),
            ..fixture.new_work(2)
        },
    ];
    let mut sent = engine.send(&fixture, &lease, &urls).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 3).await?;
    let mut messages: Vec<_> = received.iter().map(|(message, _)| message.clone()).collect();
    messages.sort_by_key(Message::key);
    sent.sort_by_key(Message::key);
    assert_eq!(messages, sent);
    handle(engine, &fixture, &received).await?;
    Ok(())
}

/// A message of another program arrives complete, with a depth and a referrer.
pub async fn a_message_by_hand_arrives_with_all_that_it_carries(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(0).await?;
    let seed = Message::seed(fixture.url(0), CrawlRef::adhoc(), Lane::Priority);
    let sent = Message { depth: 3, referrer: Some(fixture.key(1)), deadline: Some(much_later()), ..seed };
    engine.queue.publish(std::slice::from_ref(&sent)).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    assert_eq!(received[0].0, sent);
    let taken = ClaimReply::Take { attempts: 0, starts: 0, deadline: sent.deadline };
    assert_eq!(handle(engine, &fixture, &received).await?, [taken]);
    Ok(())
}

/// An acked message does not come again, neither while its URL is held nor after its end.
pub async fn an_acked_message_does_not_come_again(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.start(&fixture.worker, 0).await?;
    engine.queue.ack(&[received[0].1]).await?;
    assert!(next(&mut *consumer, 10, GLANCE).await?.is_none(), "acked when its fetch began");
    fixture.finish(0, Terminal::Done).await?;
    engine.queue.ack(&[received[0].1]).await?;
    assert!(next(&mut *consumer, 10, GLANCE).await?.is_none(), "ended");
    Ok(())
}

/// A released message comes again, to this consumer or to another.
pub async fn a_released_message_comes_again(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(3).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 3).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.release(&fixture.worker, 0).await?;
    let receipts: Vec<Receipt> = received.iter().map(|(_, receipt)| *receipt).collect();
    engine.queue.release(&receipts).await?;
    let again = collect(&mut *consumer, 3).await?;
    assert_eq!(urls(&again), urls(&received));
    assert_eq!(handle(engine, &fixture, &again).await?, [TAKE; 3]);
    Ok(())
}

/// A foreign receipt, such as one from before a reconnect, neither acks nor releases a message.
pub async fn a_foreign_receipt_settles_nothing(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    let foreign = Receipt { session: u64::MAX, ..received[0].1 };
    engine.queue.ack(&[foreign]).await?;
    engine.queue.release(&[foreign]).await?;
    assert!(next(&mut *consumer, 10, GLANCE).await?.is_none());
    engine.queue.release(&[received[0].1]).await?;
    let again = collect(&mut *consumer, 1).await?;
    assert_eq!(handle(engine, &fixture, &again).await?, [TAKE]);
    Ok(())
}

/// A duplicate message is dropped: a publisher that is not sure publishes again.
pub async fn a_message_too_many_is_dropped(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    engine.publish(&[fixture.message(0), fixture.message(0)]).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    assert_eq!(handle(engine, &fixture, &received).await?, [TAKE]);
    while let Some(more) = next(&mut *consumer, 10, GLANCE).await? {
        let replies = handle(engine, &fixture, &more).await?;
        assert!(replies.iter().all(|reply| *reply == ClaimReply::Drop));
    }
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.counts.done), (1, 1));
    Ok(())
}

/// Messages within a batch are ordered by urgency, which `next` checks; which messages share one depends on their
/// arrival.
pub async fn every_batch_is_ordered_by_urgency(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(5).await?;
    let urgent: Vec<NewWork> =
        (5..10).map(|number| NewWork { lane: Lane::Priority, ..fixture.new_work(number) }).collect();
    engine.send(&fixture, &lease, &urgent).await?;
    let mut consumer = engine.queue.consume(20, 20).await?;
    let received = collect(&mut *consumer, 10).await?;
    assert_eq!(urls(&received).len(), 10);
    handle(engine, &fixture, &received).await?;
    Ok(())
}

/// The prefetch limits the number of unsettled messages.
pub async fn prefetch_bounds_what_is_unsettled(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(5).await?;
    let mut consumer = engine.queue.consume(3, 3).await?;
    let first = collect(&mut *consumer, 3).await?;
    assert!(next(&mut *consumer, 10, GLANCE).await?.is_none());
    handle(engine, &fixture, &first).await?;
    let rest = collect(&mut *consumer, 2).await?;
    assert!(urls(&rest).is_disjoint(&urls(&first)));
    handle(engine, &fixture, &rest).await?;
    Ok(())
}

/// Cancelling a wait loses nothing, however often, before the message comes, while it comes and after.
pub async fn cancelling_a_wait_loses_nothing(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    for number in 0..5 {
        let brief = Duration::from_millis(number as u64 % 3);
        assert!(next(&mut *consumer, 10, brief).await?.is_none());
        engine.send(&fixture, &lease, &[fixture.new_work(number)]).await?;
        let deadline = Instant::now() + LIMIT;
        let received = loop {
            assert!(Instant::now() < deadline, "page {number} did not come");
            if let Some(received) = next(&mut *consumer, 10, brief).await? {
                break received;
            }
        };
        assert_eq!(handle(engine, &fixture, &received).await?, [TAKE]);
    }
    Ok(())
}

/// Two consumers share the work: each message goes to one of them.
pub async fn two_consumers_share_the_work(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(20).await?;
    let (mut one, mut two) = (engine.queue.consume(5, 5).await?, engine.queue.consume(5, 5).await?);
    let deadline = Instant::now() + LIMIT;
    let mut replies = Vec::new();
    while replies.len() < 20 {
        let either = async {
            tokio::select! {
                batch = one.next(3) => batch,
                batch = two.next(3) => batch,
            }
        };
        let batch = timeout_at(deadline, either).await.expect("all arrive in time")?;
        replies.extend(handle(engine, &fixture, &read(batch)).await?);
    }
    assert_eq!(replies, [TAKE; 20]);
    Ok(())
}

/// A parked message comes back complete and not before its wake-up, with its lane, its slot, and the target of its
/// redirect.
pub async fn a_parked_message_comes_back_in_time_with_all_that_it_carries(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    let url = NewWork { lane: Lane::Priority, deadline: Some(much_later()), ..fixture.new_work(0) };
    engine.send(&fixture, &lease, &[url]).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    let (message, receipt) = received[0].clone();
    fixture.claim(&fixture.worker, 0).await?;
    let slot = UnixMs::now().plus(Duration::from_millis(1_200));
    let wake = engine.queue.wake(slot);
    let hop = Some(Hop { url: fixture.url(1), count: 2, as_get: false });
    let (until, in_waitlist) = (Some(slot), Some((slot, 2)));
    let message = Message {
        until,
        wake: Some(wake.at),
        slot: until,
        turn: in_waitlist,
        since: Some(UnixMs(wake.at.0 - 9_000)),
        hop,
        refusals: 3,
        lapses: 2,
        left: 4,
        ..message
    };
    assert!(fixture.park(&fixture.worker, 0, wake.at, false).await?);
    engine.queue.park(&[Parked { message: message.clone(), wake }]).await?;
    engine.frontier.confirm(std::slice::from_ref(&message)).await?;
    engine.queue.ack(&[receipt]).await?;
    let received = collect(&mut *consumer, 1).await?;
    let early = wake.at.wait_from(UnixMs::now());
    assert!(early <= SLACK, "{early:?} too early");
    assert_eq!(received[0].0, message);
    let taken = ClaimReply::Take { attempts: 0, starts: 0, deadline: message.deadline };
    assert_eq!(handle(engine, &fixture, &received).await?, [taken]);
    Ok(())
}

/// A message that is parked late comes no sooner, however long after its record: a rung that fits the rest of the wait
/// would bring it back too early.
pub async fn a_message_that_is_parked_late_comes_no_sooner(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let (message, receipt) = collect(&mut *consumer, 1).await?[0].clone();
    fixture.claim(&fixture.worker, 0).await?;
    let slot = UnixMs::now().plus(RUNGS[1] + SLACK);
    let wake = engine.queue.wake(slot);
    assert!(fixture.park(&fixture.worker, 0, wake.at, false).await?);
    while slot.wait_from(UnixMs::now()) > RUNGS[1] - 10 * SLACK {
        sleep(Duration::from_millis(1)).await;
    }
    engine.queue.park(&[Parked { message: message.clone(), wake }]).await?;
    engine.frontier.confirm(&[Message { wake: Some(wake.at), ..message }]).await?;
    engine.queue.ack(&[receipt]).await?;
    let received = collect(&mut *consumer, 1).await?;
    let early = wake.at.wait_from(UnixMs::now());
    assert!(early <= SLACK, "{early:?} too early");
    assert_eq!(handle(engine, &fixture, &received).await?, [TAKE]);
    Ok(())
}

/// A wake-up is never later than asked: an early message can wait, a late one has missed its slot.
pub async fn a_wake_is_never_later_than_asked(engine: &Engine) -> Result<()> {
    for seconds in [2, 60, 3_600, 86_400] {
        let until = UnixMs::now().plus(Duration::from_secs(seconds));
        let wake = engine.queue.wake(until).at;
        assert!(wake.since(until) <= SLACK && wake > UnixMs::now(), "{wake} for {until}");
    }
    Ok(())
}

/// A dead letter of any shape is accepted, with a URL or without.
pub async fn a_dead_letter_of_any_shape_is_taken(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(0).await?;
    let cause = Cause {
        reason: Reason::Retries,
        class: Some(Class::Http),
        status: Some(503),
        error: "HTTP 503".to_owned(),
        attempts: 4,
        worker: Some(fixture.worker.clone()),
        failed_at: UnixMs::now(),
    };
    let bare = DeadLetter {
        url: "not a URL \u{fffd}".to_owned(),
        crawl: CrawlRef::adhoc(),
        cause: Cause { reason: Reason::Invalid, class: None, status: None, worker: None, ..cause.clone() },
    };
    let full = DeadLetter { url: fixture.url(0).to_string(), crawl: fixture.crawl.clone(), cause };
    engine.queue.dead_letter(&[full, bare]).await?;
    engine.queue.dead_letter(&[]).await
}

/// A task arrives complete, also from the ladder, even if its recipe is a megabyte long or looks like a URL.
pub async fn a_task_arrives_with_everything_it_was_submitted_with_also_from_the_ladder(
    engine: &Engine,
) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    let long = "\u{e4}".repeat(MAX_RECIPE_BYTES / 2);
    let line =
        r#"{"recipe": "http://a.example/", "unique": "1", "priority": -2.5, "retries": 0, "project": "p"}"#;
    let full = Task::new(&fixture.crawl.spider, NewTask::from_line(line).expect("it is a task"));
    let tasks = [fixture.new_task(&long), NewWork { deadline: Some(much_later()), ..NewWork::task(full) }];
    arrives_also_from_the_ladder(engine, &fixture, &lease, &tasks).await
}

/// A request of nearly a megabyte arrives complete, also from the ladder.
pub async fn a_request_arrives_with_everything_it_was_submitted_with_also_from_the_ladder(
    engine: &Engine,
) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    let long = "\u{e4}\u{1}".repeat(120_000);
    let requests = [fixture.new_request(&long), NewWork { lane: Lane::Priority, ..fixture.new_request("x") }];
    arrives_also_from_the_ladder(engine, &fixture, &lease, &requests).await
}

/// Checks that two messages arrive complete, and come back complete from the ladder.
async fn arrives_also_from_the_ladder(
    engine: &Engine,
    fixture: &Fixture<'_>,
    lease: &Lease,
    new: &[NewWork],
) -> Result<()> {
    let sent = engine.send(fixture, lease, new).await?;
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 2).await?;
    for (message, receipt) in &received {
        assert!(sent.contains(message), "{message:?}");
        let wake = engine.queue.wake(UnixMs::now());
        let parked = Parked { message: Message { until: Some(wake.at), ..message.clone() }, wake };
        engine.queue.park(&[parked]).await?;
        engine.queue.ack(&[*receipt]).await?;
    }
    let again = collect(&mut *consumer, 2).await?;
    for (message, receipt) in &again {
        assert!(sent.contains(&Message { until: None, ..message.clone() }), "{message:?}");
        engine.queue.ack(&[*receipt]).await?;
    }
    Ok(())
}

/// A consumer that takes no tasks is sent none, and still gets URLs; the tasks wait for another.
pub async fn tasks_wait_for_who_takes_them(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(0).await?;
    engine.send(&fixture, &lease, &[fixture.new_task("x"), fixture.new_work(0)]).await?;
    let mut without = engine.queue.consume(10, 0).await?;
    let received = collect(&mut *without, 1).await?;
    assert_eq!(received[0].0.work, fixture.url(0));
    assert!(next(&mut *without, 10, GLANCE).await?.is_none());
    let mut consumer = engine.queue.consume(10, 10).await?;
    let received = collect(&mut *consumer, 1).await?;
    assert!(received[0].0.work.task().is_some());
    Ok(())
}
