//! Waiting for the end of a crawl, through outages of the store.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::health::Health;
use trawl_common::names::CrawlId;
use trawl_common::ports::Stats;

use crate::{Fail, Progress, count, counted};

/// Time between checks.
const LOOK: Duration = Duration::from_millis(250);
/// Time after which a crawl that the store does not know has ended. A store that was emptied learns of a crawl again
/// from its messages; one that it has not learnt of by then had none left.
const FORGOTTEN: Duration = Duration::from_secs(300);

/// Waits until crawl `id`, which existed a moment ago, is over, and shows its progress; of an ad-hoc crawl, which
/// never is, until nothing is pending. Waits through outages of the store.
pub async fn await_end(stats: &dyn Stats, id: &CrawlId, progress: &Progress) -> Result<CrawlStats, Fail> {
    let health = Health::default();
    let mut seen = Instant::now();
    while seen.elapsed() < FORGOTTEN {
        if let Some(stats) = health.retry("looking at the crawl", || stats.crawl_stats(id)).await? {
            seen = Instant::now();
            if stats.pending == 0 && (stats.status.is_over() || stats.crawl_ref().is_adhoc()) {
                progress.clear();
                return Ok(stats);
            }
            let (ended, admitted) = (stats.counts.ended(), stats.counts.admitted);
            progress.show(format!("{} of {} ended", count(ended), counted(admitted, "URL")));
        }
        sleep(LOOK).await;
    }
    progress.clear();
    Err(Fail::run(format!("crawl {id} is gone: was the store emptied after its last URL?")))
}

/// Waits until nothing is pending in the ad-hoc crawls to which a crawl that is over handed work, directly or through
/// each other.
///
/// Work may move from a crawl that is yet to be looked at to one that was found empty. So nothing may have been admitted
/// between two looks that find them all empty: then there is an instant between the two at which all were.
pub async fn await_handed(stats: &dyn Stats, from: &CrawlStats, progress: &Progress) -> Result<(), Fail> {
    let health = Health::default();
    let mut before = None;
    loop {
        let crawls = health.retry("looking at the work of other spiders", || stats.handed(from)).await?;
        let pending: u64 = crawls.iter().map(|stats| stats.pending).sum();
        let now = crawls.into_iter().map(|stats| (stats.crawl, stats.counts.admitted)).collect::<Vec<_>>();
        if pending == 0 && (now.is_empty() || before.as_ref() == Some(&now)) {
            progress.clear();
            return Ok(());
        }
        if pending > 0 {
            progress.show(format!("{} pending that were handed to other spiders", count(pending)));
            sleep(LOOK).await;
        }
        before = (pending == 0).then_some(now);
    }
}
