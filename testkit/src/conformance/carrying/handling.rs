//! The operations of a worker on a URL.

use std::time::Duration;

use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Hop;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{MAX_STARTS, Record, StartReply, State, UrlState};
use trawl_common::ports::{Claim, Finish, Result, Settlement, Terms};
use trawl_common::time::UnixMs;

use super::worker::delay;
use super::{Carrier, ends};
use crate::conformance::fixture::{Case, LONG, much_later};

/// A URL is seen by its own spider while it is pending and when it has ended.
pub async fn a_url_is_seen_while_it_is_pending_and_when_it_has_ended(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let other = case.other_spider();
    let worker = carrier.join(&case);
    carrier.begin(&other, 0, Terms::default()).await?;
    carrier.begin(&case, 2, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    for number in [0, 1] {
        assert!(worker.frontier.has_seen(&case.crawl, &case.url(number)).await?);
        assert!(!worker.frontier.has_seen(&other.crawl, &case.url(number)).await?);
    }
    assert!(!worker.frontier.has_seen(&case.crawl, &case.url(2)).await?);
    Ok(())
}

/// The target of a redirect is seen as soon as its page is stored, without being counted.
pub async fn where_redirects_led_counts_as_seen(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    let claimed = worker.claim_one().await;
    let disposition = || ends(Finish { landed: Some(case.url(7)), ..case.ending(0, Terminal::Done) });
    for _ in 0..2 {
        worker.settle_unstarted(&claimed, disposition()).await;
    }
    assert!(worker.frontier.has_seen(&case.crawl, &case.url(7)).await?);
    assert_eq!(session.admit(&[case.new_work(7), case.new_work(8)]).await?, [false, true]);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts.admitted, stats.counts.done, stats.pending), (2, 1, 1));
    session.close().await
}

/// A repeated start counts once: its answer may have been lost, which is no reason to suspect the page.
pub async fn a_start_that_is_asked_for_again_counts_once(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    for _ in 0..=MAX_STARTS {
        assert_eq!(worker.start(&claimed).await, StartReply::Go);
        assert!(worker.extends(&claimed).await);
    }
    Ok(())
}

/// A retry ends a start, and is no step towards poison: there may be more retries than starts allowed.
pub async fn a_retry_is_an_end_and_no_step_towards_poison(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    for attempts in 0..=MAX_STARTS + 1 {
        let claimed = worker.claim_one().await;
        assert_eq!((claimed.attempts, claimed.starts), (attempts, 0));
        assert_eq!(worker.start(&claimed).await, StartReply::Go);
        worker.park(&claimed, UnixMs::now(), true).await;
    }
    Ok(())
}

/// Only a failure counts as an attempt; waiting for a slot and being released do not.
pub async fn only_a_failure_counts_as_an_attempt(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    for (failed, attempts) in [(false, 0), (true, 0), (false, 1), (true, 1)] {
        let claimed = worker.claim_one().await;
        assert_eq!(claimed.attempts, attempts);
        worker.park(&claimed, UnixMs::now(), failed).await;
    }
    let claimed = worker.claim_one().await;
    worker.release(&claimed).await;
    assert_eq!(worker.claim_one().await.attempts, 2);
    Ok(())
}

/// A URL that is parked, ended, or was never admitted is neither started nor extended.
pub async fn what_is_not_in_hand_is_neither_started_nor_extended(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 2, Terms::default()).await?;
    let claimed = worker.claim_pages(2).await;
    worker.park(&claimed[&0], much_later(), false).await;
    assert!(worker.end(&case, &claimed[&1], Terminal::Done).await);
    for claimed in claimed.values() {
        assert_eq!(worker.start(claimed).await, StartReply::Lost);
        assert!(!worker.extends(claimed).await);
    }
    assert_eq!(worker.frontier.start(&[case.claim_on(9)]).await?, [StartReply::Lost], "never admitted");
    // A parked URL is not parked again, nor does it end.
    worker.park(&claimed[&0], UnixMs::now(), true).await;
    worker.release(&claimed[&0]).await;
    assert!(!worker.end(&case, &claimed[&0], Terminal::Failed).await);
    worker.claims_nothing().await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts.done, stats.counts.failed, stats.pending), (1, 0, 1));
    Ok(())
}

/// A parked URL keeps its slot and its place in the waitlist, unless it failed: then it starts afresh.
pub async fn what_is_parked_keeps_its_slot_and_its_place_in_the_waitlist_unless_it_failed(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 2, Terms::default()).await?;
    let until = UnixMs::now().plus(Duration::from_millis(1_200));
    let mut batch = Vec::new();
    for (number, claimed) in worker.claim_pages(2).await {
        let mut message = claimed.message;
        message.hop = Some(Hop { url: case.url(7), count: 2, as_get: false });
        (message.slot, message.turn) = (Some(until), Some((until, 2)));
        (message.refusals, message.lapses, message.since) = (3, 2, Some(until));
        batch.push(Settlement { message, disposition: delay(until, number == 1) });
    }
    let known = batch[0].message.clone();
    worker.frontier.settle(batch).await?;
    let claimed = worker.claim_pages(2).await;
    let (deferred, failed) = (&claimed[&0].message, &claimed[&1].message);
    assert_eq!((&deferred.hop, deferred.slot, deferred.turn), (&known.hop, known.slot, known.turn));
    assert_eq!((&failed.hop, failed.slot, failed.turn), (&None, None, None));
    assert_eq!((deferred.since, failed.since), (Some(until), None));
    assert_eq!((deferred.refusals, failed.refusals), (3, 3));
    assert_eq!((deferred.lapses, failed.lapses), (2, 2));
    Ok(())
}

/// URLs of a worker that is gone without settling or releasing them are claimed by another.
pub async fn what_a_worker_that_is_gone_held_is_claimed_by_another(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let first = carrier.join(&case);
    carrier.begin(&case, 3, Terms::default()).await?;
    let claimed = first.claim(2).await;
    assert_eq!(first.start(&claimed[0]).await, StartReply::Go);
    drop(first);
    let second = carrier.join_as(case.other.clone());
    let starts: u32 = second.claim(3).await.iter().map(|claimed| claimed.starts).sum();
    assert_eq!(starts, 1, "the start that had no end");
    Ok(())
}

/// The fifth start of a URL without an end is poison: a URL that kills its workers is stopped before it kills all of
/// them.
pub async fn the_fifth_start_without_an_end_is_poison(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    carrier.begin(&case, 1, Terms::default()).await?;
    for starts in 0..MAX_STARTS {
        let worker = carrier.join(&case);
        let claimed = worker.claim_one().await;
        assert_eq!(claimed.starts, starts);
        assert_eq!(worker.start(&claimed).await, StartReply::Go);
    }
    let worker = carrier.join(&case);
    let claimed = worker.claim_one().await;
    for _ in 0..2 {
        assert_eq!(worker.start(&claimed).await, StartReply::Poison);
    }
    assert!(worker.end(&case, &claimed, Terminal::Failed).await);
    Ok(())
}

/// A URL that has killed workers stays a suspect if it is parked or released before it starts again: that is no end.
pub async fn what_is_parked_before_it_starts_stays_a_suspect(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    carrier.begin(&case, 1, Terms::default()).await?;
    for starts in 0..=MAX_STARTS {
        let worker = carrier.join(&case);
        let claimed = worker.claim_one().await;
        worker.park(&claimed, UnixMs::now(), false).await;
        let claimed = worker.claim_one().await;
        worker.release(&claimed).await;
        let claimed = worker.claim_one().await;
        assert_eq!(claimed.starts, starts);
        let expected = if starts < MAX_STARTS { StartReply::Go } else { StartReply::Poison };
        assert_eq!(worker.start(&claimed).await, expected);
    }
    Ok(())
}

/// A worker cannot start, extend or settle a URL that another holds, and does not disturb the holder by trying.
pub async fn what_another_holds_is_neither_started_nor_extended_nor_settled(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let (worker, other) = (carrier.join(&case), carrier.join_as(case.other.clone()));
    carrier.begin(&case, 1, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    assert_eq!(other.start(&claimed).await, StartReply::Lost);
    assert!(!other.extends(&claimed).await);
    other.park(&claimed, UnixMs::now(), true).await;
    other.release(&claimed).await;
    assert!(!other.end(&case, &claimed, Terminal::Failed).await);
    other.claims_nothing().await;
    assert!(worker.extends(&claimed).await);
    assert_eq!(worker.frontier.start(&[Claim::new(&claimed.message)]).await?, [StartReply::Go]);
    assert!(worker.end(&case, &claimed, Terminal::Done).await);
    assert!(other.end(&case, &claimed, Terminal::Failed).await, "it has ended, as the other said");
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts.done, stats.counts.failed, stats.pending), (1, 0, 0));
    Ok(())
}

/// The state of a URL can be read, and reading it changes nothing.
pub async fn the_state_of_a_url_is_known(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    assert_eq!(state(carrier, &case, 0).await?, UrlState::Unseen, "there is no such crawl");
    carrier.begin(&case, 2, Terms::default()).await?;
    let queued = pending(state(carrier, &case, 0).await?);
    assert!(matches!(queued.state, State::Queued { .. }), "{queued:?}");
    assert_eq!((queued.lane, queued.attempts, queued.starts, queued.deadline), (Lane::Bulk, 0, 0, None));
    assert_eq!(state(carrier, &case, 2).await?, UrlState::Unseen);
    let worker = carrier.join(&case);
    let mut claimed = worker.claim_pages(2).await;
    for has_started in [false, true] {
        match pending(state(carrier, &case, 0).await?).state {
            State::Held { by, has_started: found, .. } => {
                assert_eq!((by, found), (case.worker.clone(), has_started))
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(worker.start(&claimed[&0]).await, StartReply::Go);
    }
    worker.park(&claimed[&0], UnixMs::now().plus(LONG), true).await;
    let parked = pending(state(carrier, &case, 0).await?);
    assert!(matches!(parked.state, State::Parked { until, .. } if until > UnixMs::now()), "{parked:?}");
    assert_eq!((parked.attempts, parked.starts), (1, 0));
    worker.finish(claimed.remove(&1).expect("it was claimed")).await;
    assert_eq!(state(carrier, &case, 1).await?, UrlState::Ended);
    assert_eq!(carrier.stats(&case).await?.pending, 1);
    Ok(())
}

async fn state(carrier: &Carrier, case: &Case, number: usize) -> Result<UrlState> {
    carrier.stats.url_state(&case.crawl, &case.key(number)).await
}

fn pending(state: UrlState) -> Record {
    match state {
        UrlState::Pending(record) => record,
        other => panic!("{other:?}"),
    }
}
