//! Waiting for the end of a crawl, through outages of the store.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use trawl_common::crawl_end::{Left, left_of};
use trawl_common::explain;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::health::Health;
use trawl_common::names::CrawlId;
use trawl_common::ports::Stats;

use crate::{Fail, Progress, Waits, count, counted};

/// Time between checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Time after which a crawl that the store does not know has ended. A store that was emptied learns of a crawl again
/// from its messages; one that it has not learnt of by then had none left.
const FORGOTTEN: Duration = Duration::from_secs(300);

/// Waits until [nothing is left](Left::Nothing) of crawl `id`, which existed a moment ago, and shows its progress.
/// Waits through outages of the store.
pub async fn await_end(stats: &dyn Stats, id: &CrawlId, progress: &Progress) -> Result<CrawlStats, Fail> {
    let health = Health::default();
    let (mut seen, mut waits) = (Instant::now(), Waits::default());
    // A crawl that is over may be forgotten while handed work is waited for.
    let mut ended: Option<CrawlStats> = None;
    while seen.elapsed() < FORGOTTEN {
        let now = match ended.take() {
            None => health.retry("looking at the crawl", || stats.crawl_stats(id)).await?,
            ended => ended,
        };
        if let Some(crawl) = now {
            seen = Instant::now();
            match health.retry("looking at what is left", || left_of(stats, &crawl)).await? {
                Left::Nothing => {
                    progress.clear();
                    return Ok(crawl);
                }
                Left::Handed(pending) => {
                    progress.show(format!("{} pending that were handed to other spiders", count(pending)));
                    ended = Some(crawl);
                }
                Left::Own => {
                    let (done, admitted) = (crawl.counts.ended(), crawl.counts.admitted);
                    let waits = waits.of(&crawl, explain::delays(stats, &crawl)).await;
                    progress.show(format!("{} of {} ended{waits}", count(done), counted(admitted, "URL")));
                }
            }
        }
        sleep(CHECK_INTERVAL).await;
    }
    progress.clear();
    Err(Fail::run(format!("crawl {id} is gone: was the store emptied after its last URL?")))
}
