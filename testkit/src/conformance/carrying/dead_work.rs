//! The promises of dead letters with more than a URL: tasks and requests.

use std::collections::BTreeSet;

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{Key, Work};
use trawl_common::ports::{Claimed, NewWork, Result, Terms};

use super::{Carrier, Worker};
use crate::conformance::fixture::Case;

impl Worker {
    /// Claims `count` units of the kind of `like`.
    async fn claim_like(&self, like: &Work, count: usize) -> Vec<Claimed> {
        match like {
            Work::Task(_) => self.claim_tasks(count).await,
            Work::Url(_) | Work::Request(_) => self.claim(count).await,
        }
    }
}

/// Checks that two of one crawl that fail for good are kept complete, and replayed, until they end well or are purged.
pub(super) async fn is_kept_replayed_and_purged(
    carrier: &Carrier,
    case: &Case,
    [dead, deader]: [NewWork; 2],
) -> Result<()> {
    let worker = carrier.join(case);
    let session = carrier.open(case, Terms::default()).await?;
    session.admit(&[dead.clone(), deader.clone()]).await?;
    let (dead, deader) = (dead.work, deader.work);
    for claimed in worker.claim_like(&dead, 2).await {
        worker.end_unstarted(case, &claimed, Terminal::Failed).await;
    }
    let kept = async |work: &Work| -> Result<bool> {
        Ok(carrier.control.work(&case.crawl, &work.key()).await?.as_ref() == Some(work))
    };
    let listed: BTreeSet<Key> =
        carrier.control.failed(&case.crawl, 0).await?.failed.into_iter().map(|(key, _)| key).collect();
    assert_eq!(listed, [dead.key(), deader.key()].into());
    assert!(kept(&dead).await? && kept(&deader).await?);
    assert_eq!(carrier.engine.replay(&case.crawl, &case.crawl, &[dead.key()]).await?, 1);
    let again = worker.claim_like(&dead, 1).await.remove(0);
    assert_eq!((again.attempts, &again.message.work), (0, &dead));
    worker.finish(again).await;
    assert!(!kept(&dead).await? && kept(&deader).await?);
    assert_eq!(carrier.control.purge(&case.crawl, &[dead.key(), deader.key()]).await?, 1);
    assert!(!kept(&deader).await?, "what is purged is not needed");
    assert_eq!(carrier.engine.replay(&case.crawl, &case.crawl, &[deader.key()]).await?, 0);
    session.close().await?;
    let stats = carrier.stats(case).await?;
    let expected = Counts { admitted: 2, done: 1, failed: 1, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    Ok(())
}

/// Checks that one that failed in a finished crawl is admitted complete by a successor, and that the finished crawl
/// does not change.
pub(super) async fn is_replayed_into_a_successor(
    carrier: &Carrier,
    first: &Case,
    late: NewWork,
) -> Result<()> {
    let worker = carrier.join(first);
    let session = carrier.open(first, Terms::default()).await?;
    assert_eq!(session.admit(std::slice::from_ref(&late)).await?, [true]);
    session.close().await?;
    let late = late.work;
    let claimed = worker.claim_like(&late, 1).await.remove(0);
    worker.end_unstarted(first, &claimed, Terminal::Failed).await;
    assert_eq!(carrier.stats(first).await?.status, CrawlState::Finished);
    let second = first.next_crawl();
    let session = carrier.open(&second, Terms::default()).await?;
    assert_eq!(carrier.engine.replay(&first.crawl, &second.crawl, &[late.key()]).await?, 1);
    session.close().await?;
    let again = worker.claim_like(&late, 1).await.remove(0);
    assert_eq!((&again.message.crawl, &again.message.work), (&second.crawl, &late));
    worker.finish(again).await;
    let counts = carrier.stats(&second).await?.counts;
    assert_eq!(counts, Counts { admitted: 1, done: 1, ..Counts::default() });
    assert_eq!(carrier.stats(first).await?.counts.failed, 1);
    Ok(())
}
