//! The holder of a URL, and the time that it may hold it.

use std::sync::Arc;
use std::time::Duration;

use trawl_common::frontier::crawl::Counts;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, StartReply};
use trawl_common::ports::Result;
use trawl_engine::Records;

use crate::conformance::eventually;
use crate::conformance::fixture::{Fixture, TAKE, much_later};

const LIMIT: Duration = Duration::from_secs(10);

/// A URL that is not extended is taken over, and its former holder has lost it, even if it is only slow.
pub async fn a_url_that_nobody_keeps_is_taken_over(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE);
    eventually(LIMIT, async || Ok(fixture.claim(&fixture.other, 0).await? == TAKE)).await?;
    assert!(!fixture.extend(&fixture.worker, 0).await?);
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost);
    assert!(!fixture.park(&fixture.worker, 0, much_later(), true).await?);
    assert!(!fixture.end(&fixture.worker, 0, Terminal::Failed).await?);
    assert_eq!(fixture.start(&fixture.other, 0).await?, StartReply::Go);
    assert!(fixture.end(&fixture.other, 0, Terminal::Done).await?);
    assert!(fixture.end(&fixture.worker, 0, Terminal::Failed).await?, "it has ended, as the other said");
    assert_eq!(fixture.crawl_stats().await?.counts, Counts { admitted: 1, done: 1, ..Counts::default() });
    Ok(())
}

/// Claims two pages and calls `again` for the first repeatedly, until another worker takes the second over. Returns
/// whether the first is still held then.
async fn outlives(fixture: &Fixture<'_>, again: impl AsyncFn() -> Result<()>) -> Result<bool> {
    // The first is claimed first: by itself it does not outlive the second.
    fixture.claim(&fixture.worker, 0).await?;
    fixture.claim(&fixture.worker, 1).await?;
    eventually(LIMIT, async || {
        again().await?;
        Ok(fixture.claim(&fixture.other, 1).await? == TAKE)
    })
    .await?;
    fixture.is_held_back(&fixture.other, 0).await
}

/// A URL that its holder extends in time is not taken over; on a busy machine this takes more than one try.
pub async fn a_url_that_is_kept_is_not_taken_over(frontier: &Arc<dyn Records>) -> Result<()> {
    eventually(LIMIT, async || {
        let fixture = Fixture::new(frontier);
        fixture.begin(2).await?;
        outlives(&fixture, async || fixture.extend(&fixture.worker, 0).await.map(drop)).await
    })
    .await
}

/// A URL that its holder claims again is kept: its message may come twice.
pub async fn a_url_that_is_claimed_again_is_kept(frontier: &Arc<dyn Records>) -> Result<()> {
    eventually(LIMIT, async || {
        let fixture = Fixture::new(frontier);
        fixture.begin(2).await?;
        outlives(&fixture, async || fixture.claim(&fixture.worker, 0).await.map(drop)).await
    })
    .await
}

/// Extending a URL that another worker holds takes nothing, and does not disturb the holder.
pub async fn keeping_what_another_holds_takes_nothing(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    assert!(!fixture.extend(&fixture.other, 0).await?);
    assert!(fixture.extend(&fixture.worker, 0).await?);
    assert_eq!(fixture.start(&fixture.other, 0).await?, StartReply::Lost);
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Go);
    Ok(())
}

/// Extending a URL that is queued, parked or ended takes nothing.
pub async fn keeping_what_is_not_in_hand_takes_nothing(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(3).await?;
    fixture.claim(&fixture.worker, 1).await?;
    let until = much_later();
    fixture.park(&fixture.worker, 1, until, false).await?;
    fixture.confirm_parked(1, until).await?;
    fixture.claim(&fixture.worker, 2).await?;
    fixture.finish(2, Terminal::Done).await?;
    let before = fixture.crawl_stats().await?;
    for number in 0..3 {
        assert!(!fixture.extend(&fixture.worker, number).await?);
        assert_eq!(fixture.start(&fixture.worker, number).await?, StartReply::Lost);
    }
    let replies = [fixture.claim(&fixture.other, 0).await?, fixture.claim(&fixture.other, 1).await?];
    assert_eq!(replies, [TAKE, ClaimReply::Drop]);
    let after = fixture.crawl_stats().await?;
    assert_eq!((after.counts, after.pending), (before.counts, before.pending));
    Ok(())
}

/// Extending a URL that the store does not know, as it has forgotten it and perhaps its crawl, admits it as held by
/// this worker.
pub async fn a_kept_url_that_was_never_seen_is_admitted_in_its_holders_hands(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    assert!(fixture.extend(&fixture.worker, 0).await?);
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.pending), (1, 1));
    assert!(fixture.is_held_back(&fixture.other, 0).await?);
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Go);
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    Ok(())
}

/// Extending a URL does not revive a crawl that is over.
pub async fn a_kept_url_does_not_revive_a_crawl_that_is_over(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(0).await?;
    frontier.close(lease, None).await?;
    assert!(!fixture.extend(&fixture.worker, 0).await?);
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost);
    assert_eq!(fixture.crawl_stats().await?.counts.admitted, 0);
    Ok(())
}
