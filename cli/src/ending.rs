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

/// Waits until crawl `id`, which existed a moment ago, is over, and shows its progress. Waits through outages of the
/// store.
pub async fn await_end(stats: &dyn Stats, id: &CrawlId, progress: &Progress) -> Result<CrawlStats, Fail> {
    let health = Health::default();
    let mut seen = Instant::now();
    while seen.elapsed() < FORGOTTEN {
        if let Some(stats) = health.retry("looking at the crawl", || stats.crawl_stats(id)).await? {
            seen = Instant::now();
            if stats.status.is_over() && stats.pending == 0 {
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
