//! The operations of a worker on a URL.

use std::sync::Arc;

use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, StartReply};
use trawl_common::ports::Result;
use trawl_engine::Records;

use crate::conformance::fixture::{Fixture, TAKE, long_ago, much_later, took};

/// A URL is taken by one worker: the first to claim it holds it, also after claiming it again.
pub async fn a_url_is_taken_by_one_worker(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE);
    assert!(fixture.is_held_back(&fixture.other, 0).await?);
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE);
    assert_eq!(fixture.crawl_stats().await?.pending, 1);
    Ok(())
}

/// The message of a URL that has ended is dropped: a duplicate is harmless.
pub async fn a_url_that_ended_is_dropped(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(2).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.finish(0, Terminal::Failed).await?;
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, ClaimReply::Drop);
    assert_eq!(fixture.crawl_stats().await?.counts.admitted, 2);
    Ok(())
}

/// Messages of several crawls are answered in order: a worker claims together all messages that its queues deliver
/// together.
pub async fn messages_of_several_crawls_are_answered_in_order(frontier: &Arc<dyn Records>) -> Result<()> {
    let one = Fixture::new(frontier);
    let two = one.other_spider();
    one.begin(2).await?;
    two.begin(2).await?;
    one.finish(0, Terminal::Done).await?;
    two.finish(1, Terminal::Done).await?;
    let messages = [one.message(0), two.message(0), one.message(1), two.message(1)];
    let replies = frontier.claim(&one.worker, &messages).await?;
    assert_eq!(replies, [ClaimReply::Drop, TAKE, TAKE, ClaimReply::Drop]);
    let claims = [two.claim_on(1), one.claim_on(1), two.claim_on(0), one.claim_on(0)];
    let starts = frontier.start(&one.worker, &claims).await?;
    assert_eq!(starts, [StartReply::Lost, StartReply::Go, StartReply::Go, StartReply::Lost]);
    Ok(())
}

/// A URL that is parked again is still parked. The first answer may have been lost: if the second said that the URL is
/// lost, its message would go where it is dropped.
pub async fn to_park_again_is_to_have_parked(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let until = long_ago();
    for _ in 0..3 {
        assert!(fixture.park(&fixture.worker, 0, until, true).await?);
    }
    fixture.confirm_parked(0, until).await?;
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, took(1), "it failed once");
    Ok(())
}

/// Only its holder starts a URL.
pub async fn only_the_holder_starts(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(2).await?;
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost, "not claimed yet");
    fixture.claim(&fixture.worker, 0).await?;
    assert_eq!(fixture.start(&fixture.other, 0).await?, StartReply::Lost);
    fixture.finish(0, Terminal::Done).await?;
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost, "ended");
    assert_eq!(fixture.start(&fixture.worker, 9).await?, StartReply::Lost, "never admitted");
    Ok(())
}

/// A parked URL is dropped before its wake-up and taken after, by the instant in the record, whatever its message does.
pub async fn a_parked_url_is_dropped_before_its_time_and_taken_after(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(2).await?;
    for (number, until) in [(0, much_later()), (1, long_ago())] {
        fixture.claim(&fixture.worker, number).await?;
        assert!(fixture.park(&fixture.worker, number, until, false).await?);
        fixture.confirm_parked(number, until).await?;
    }
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, ClaimReply::Drop);
    assert_eq!(fixture.claim(&fixture.other, 0).await?, ClaimReply::Drop);
    assert_eq!(fixture.claim(&fixture.other, 1).await?, TAKE, "it is anyone's when it comes back");
    assert_eq!(fixture.crawl_stats().await?.pending, 2);
    Ok(())
}

/// Any message of a parked URL is kept until that which it waits for is confirmed: its worker may have died before. A late
/// confirmation of one that was sent earlier says nothing of it.
pub async fn a_message_is_kept_until_that_of_the_parked_url_is_confirmed(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let until = much_later();
    assert!(fixture.park(&fixture.worker, 0, until, false).await?);
    let stays = ClaimReply::Wait { until };
    assert_eq!(fixture.claim(&fixture.other, 0).await?, stays);
    frontier.confirm(&[fixture.message(0)]).await?;
    assert_eq!(fixture.claim(&fixture.other, 0).await?, stays);
    fixture.confirm_parked(0, until).await?;
    assert_eq!(fixture.claim(&fixture.other, 0).await?, ClaimReply::Drop);
    Ok(())
}

/// Only its holder parks a URL, and only once, as parking ends the lease.
pub async fn only_the_holder_parks(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    assert!(!fixture.park(&fixture.worker, 0, much_later(), true).await?, "not claimed yet");
    fixture.claim(&fixture.worker, 0).await?;
    assert!(!fixture.park(&fixture.other, 0, much_later(), true).await?);
    assert!(fixture.park(&fixture.worker, 0, long_ago(), false).await?);
    assert!(!fixture.park(&fixture.worker, 0, much_later(), true).await?, "parked already");
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE, "refused parking has no effect");
    Ok(())
}

/// A released URL can be claimed by another worker at once, and nothing is counted.
pub async fn a_released_url_is_anyones_again(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.release(&fixture.worker, 0).await?;
    fixture.release(&fixture.worker, 0).await?;
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost);
    assert_eq!(fixture.claim(&fixture.other, 0).await?, TAKE);
    assert_eq!(fixture.crawl_stats().await?.pending, 1);
    Ok(())
}

/// Only its holder releases a URL.
pub async fn only_the_holder_releases(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.release(&fixture.other, 0).await?;
    fixture.release(&fixture.other, 9).await?;
    assert!(fixture.is_held_back(&fixture.other, 0).await?);
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Go);
    Ok(())
}
