//! Cancelling a crawl, and which of its URLs are new to a later crawl.

use std::num::NonZeroU64;
use std::time::Duration;

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, StartReply};
use trawl_common::ports::{ErrorKind, Result, Terms};
use trawl_engine::{Lease, Past};

use super::{ControlPorts, kind};
use crate::conformance::eventually;
use crate::conformance::fixture::{Fixture, LONG, TAKE, much_later};

const LIMIT: Duration = Duration::from_secs(10);

/// Neither the holders of its URLs, nor a late message, nor its producer can revive a cancelled crawl.
pub async fn nothing_revives_a_cancelled_crawl(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(2).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.start(&fixture.worker, 0).await?;
    ports.control.cancel(&fixture.crawl).await?;
    let before = fixture.crawl_stats().await?;
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost);
    assert!(!fixture.park(&fixture.worker, 0, much_later(), true).await?);
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?, "it has ended, as cancelled");
    assert!(!fixture.extend(&fixture.worker, 0).await?);
    for number in 0..3 {
        assert_eq!(fixture.claim(&fixture.worker, number).await?, ClaimReply::Drop);
    }
    assert_eq!(kind(fixture.admit(&lease, 0..3).await), Some(ErrorKind::Stale));
    assert_eq!(kind(fixture.open().await), Some(ErrorKind::Stale));
    let after = fixture.crawl_stats().await?;
    assert_eq!((after.status, after.counts, after.pending), (before.status, before.counts, 0));
    Ok(())
}

/// After a cancellation its producer, or another one, may open another crawl of the spider.
pub async fn who_reads_sources_for_a_cancelled_crawl_may_open_another(ports: &ControlPorts) -> Result<()> {
    let first = Fixture::new(&ports.frontier);
    let lease = first.begin(1).await?;
    ports.control.cancel(&first.crawl).await?;
    let second = first.next_crawl();
    let next = second.open().await?;
    assert_eq!(kind(ports.frontier.renew(&lease, LONG).await), Some(ErrorKind::Stale));
    assert_eq!(second.admit(&next, 1..2).await?, [true]);
    Ok(())
}

/// Waits until page `number` is admitted as new; sweeps may have to clean up first.
pub(super) async fn finds_again(fixture: &Fixture<'_>, lease: &Lease, number: usize) -> Result<()> {
    eventually(LIMIT, async || {
        let found = fixture.admit(lease, [number]).await? == [true];
        if !found {
            fixture.frontier.sweep(&fixture.other).await?;
        }
        Ok(found)
    })
    .await
}

/// URLs that a cancelled crawl did not fetch are new to a later crawl; fetched ones are not.
pub async fn a_later_crawl_finds_what_was_cancelled_and_nothing_else(ports: &ControlPorts) -> Result<()> {
    let first = Fixture::new(&ports.frontier);
    let lease = first.begin(3).await?;
    first.finish(0, Terminal::Done).await?;
    first.finish(1, Terminal::Failed).await?;
    ports.frontier.renew(&lease, Duration::ZERO).await?;
    ports.control.cancel(&first.crawl).await?;
    let second = first.next_crawl();
    let lease = second.open().await?;
    finds_again(&second, &lease, 2).await?;
    assert_eq!(second.admit(&lease, 0..3).await?, [false, false, false]);
    assert_eq!(first.claim(&first.worker, 2).await?, ClaimReply::Drop, "a copy from the first crawl");
    assert_eq!(second.claim(&second.worker, 2).await?, TAKE);
    assert_eq!(second.crawl_stats().await?.counts.admitted, 1);
    Ok(())
}

/// An expired URL is new to a later crawl once its crawl is over, but not before: a late copy of its message would
/// revive it.
pub async fn a_later_crawl_finds_what_expired_once_its_crawl_is_over(ports: &ControlPorts) -> Result<()> {
    let first = Fixture::new(&ports.frontier);
    let lease = first.begin(2).await?;
    first.finish(0, Terminal::Expired).await?;
    assert_eq!(first.claim(&first.worker, 0).await?, ClaimReply::Drop, "a late copy");
    ports.frontier.close(lease, None).await?;
    let second = first.next_crawl();
    let lease = second.open().await?;
    assert_eq!(second.admit(&lease, 0..2).await?, [false, false]);
    first.finish(1, Terminal::Done).await?;
    assert_eq!(first.status().await?, CrawlState::Finished);
    finds_again(&second, &lease, 0).await?;
    assert_eq!(second.admit(&lease, 0..2).await?, [false, false]);
    assert_eq!(first.claim(&first.worker, 0).await?, ClaimReply::Drop, "a copy from the first crawl");
    assert_eq!(second.claim(&second.worker, 0).await?, TAKE);
    Ok(())
}

/// A page that was fetched beyond the limit stays seen, as its items are stored. URLs that the limit left unfetched are
/// new to a later crawl.
pub async fn what_was_fetched_beyond_the_limit_stays_seen(ports: &ControlPorts) -> Result<()> {
    let first = Fixture::new(&ports.frontier);
    let terms = Terms { max_pages: NonZeroU64::new(1), ..Terms::default() };
    let lease = ports.frontier.open(&first.crawl, terms, "producer", LONG, Past::Possible).await?;
    first.admit(&lease, 0..3).await?;
    first.finish_all(&[first.ending(0, Terminal::Done), first.ending(1, Terminal::Done)]).await?;
    ports.frontier.close(lease, None).await?;
    eventually(LIMIT, async || {
        ports.frontier.sweep(&first.other).await?;
        Ok(first.status().await? == CrawlState::Finished)
    })
    .await?;
    let counts = Counts { admitted: 3, done: 1, skipped: 2, ..Counts::default() };
    assert_eq!(first.crawl_stats().await?.counts, counts);
    let second = first.next_crawl();
    let lease = second.open().await?;
    finds_again(&second, &lease, 2).await?;
    assert_eq!(second.admit(&lease, [0, 1]).await?, [false, false]);
    Ok(())
}
