//! Waiting for the end of a crawl, whatever the store does meanwhile.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::health::Health;
use trawl_common::names::CrawlId;
use trawl_common::ports::Stats;

use crate::{Fail, Progress, count};

/// How often to look.
const LOOK: Duration = Duration::from_millis(250);
/// A store that was emptied hears of a crawl again from its messages; one that it does not hear of for so long had
/// none left.
const FORGOTTEN: Duration = Duration::from_secs(300);

/// Waits until crawl `id`, which was there a moment ago, is over, and says on `line` how far it is. A store that
/// is away is waited for.
pub async fn await_end(stats: &dyn Stats, id: &CrawlId, line: &Progress) -> Result<CrawlStats, Fail> {
    let health = Health::default();
    let mut seen = Instant::now();
    while seen.elapsed() < FORGOTTEN {
        if let Some(stats) = health.patiently("looking at the crawl", || stats.crawl_stats(id)).await? {
            seen = Instant::now();
            if stats.status.is_over() && stats.pending == 0 {
                line.clear();
                return Ok(stats);
            }
            let (ended, admitted) = (stats.counts.ended(), stats.counts.admitted);
            line.say(format!("{} of {} URLs ended", count(ended), count(admitted)));
        }
        sleep(LOOK).await;
    }
    line.clear();
    Err(Fail::run(format!("crawl {id} is gone: was the store emptied after its last URL?")))
}
