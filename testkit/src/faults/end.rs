//! The end of a crawl, as `trawl wait` sees it.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::fleet::Programs;
use super::timeline::Timeline;

/// Delay before waiting again after a fault has ended a wait.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Waits for the end of a crawl in the background. Stops when dropped.
pub struct End {
    seen: watch::Receiver<Option<Duration>>,
    waiting: JoinHandle<()>,
}

impl End {
    /// Waits with `trawl wait`, repeatedly: it fails when Redis does.
    pub fn watch(crawl: &'static str, programs: Programs, timeline: Timeline, start: Instant) -> Self {
        let (sender, seen) = watch::channel(None);
        let waiting = tokio::spawn(async move {
            while !is_over(crawl, &programs).await {
                sleep(RETRY_DELAY).await;
            }
            timeline.note(format!("the crawl {crawl} has ended"));
            sender.send_replace(Some(start.elapsed()));
        });
        Self { seen, waiting }
    }

    /// Whether the end has been seen.
    pub fn is_seen(&self) -> bool {
        self.seen_at().is_some()
    }

    /// Returns when the end was first seen, since the start, if it was.
    pub fn seen_at(&self) -> Option<Duration> {
        *self.seen.borrow()
    }

    /// Waits for the end. Returns when it was first seen, since the start.
    pub async fn seen(&self) -> Duration {
        let mut seen = self.seen.clone();
        let ended = seen.wait_for(Option::is_some).await.map(|ended| *ended);
        match ended {
            Ok(Some(ended)) => ended,
            // The waiting task is gone.
            _ => std::future::pending().await,
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.waiting.abort();
    }
}

async fn is_over(crawl: &str, programs: &Programs) -> bool {
    let waited = programs.command(["wait", crawl, "--json", "-q"]).output().await;
    let stats = waited.ok().and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    stats.is_some_and(|stats| stats["status"] == "finished" && stats["pending"] == 0)
}
