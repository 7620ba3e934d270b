//! Runs the producer and the worker of a crawl in this process, and draws its progress.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use trawl_cli::{Fail, Progress as ProgressLine, Signals, Waits, count, counted, progress};
use trawl_common::crawl_end::{Left, left_among};
use trawl_common::explain;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::Ports;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
use trawl_producer::{Progress, Report, RunPlan};

/// Interval at which progress and the end of the crawl are checked: a short crawl must not wait for its end.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A crawl that can run.
pub(super) struct Run {
    pub(super) ports: Ports,
    pub(super) settings: Arc<Settings>,
    pub(super) folder: Folder,
    pub(super) crawl: CrawlRef,
    pub(super) signals: Signals,
    pub(super) progress: ProgressLine,
}

impl Run {
    /// Runs producer and worker side by side, and returns when the crawl has ended or a signal arrived.
    pub(super) async fn to_the_end(&self, plan: RunPlan) -> Result<(CrawlStats, Report), Fail> {
        let stop_worker = self.signals.stop().child_token();
        let id = WorkerId::of_this_machine();
        let (settings, folder) = ((*self.settings).clone(), self.folder.clone());
        let worker = async {
            let worked = trawl_worker::run(
                self.ports.clone(),
                settings,
                folder,
                id,
                Arc::default(),
                stop_worker.clone(),
            )
            .await;
            if worked.is_err() {
                // Without it, the crawl could never end.
                self.signals.stop().cancel();
            }
            worked
        };
        let watched = async {
            let result = self.watch(plan).await;
            stop_worker.cancel();
            result
        };
        let (worked, watched) = tokio::join!(worker, watched);
        worked?;
        let report = watched?;
        Ok((self.crawl_stats().await?, report))
    }

    /// Reads the sources, then waits for the end.
    async fn watch(&self, plan: RunPlan) -> Result<Report, Fail> {
        let progress = Arc::new(Progress::default());
        let settings = Arc::clone(&self.settings);
        let stop = self.signals.stop();
        let produced = CancellationToken::new();
        let producing = async {
            let report =
                trawl_producer::run(&self.ports, settings, plan, &self.crawl, Arc::clone(&progress), stop)
                    .await;
            produced.cancel();
            report
        };
        let (report, drawn) = tokio::join!(producing, self.draw(&progress, &produced));
        self.progress.clear();
        drawn?;
        report.map_err(Fail::run)
    }

    /// Draws the progress until the sources are read and the crawl is over, or until a signal arrives.
    async fn draw(&self, reading: &Progress, produced: &CancellationToken) -> Result<(), Fail> {
        let mut waits = Waits::default();
        loop {
            if produced.is_cancelled() {
                if self.signals.stop().is_cancelled() {
                    return Ok(());
                }
                // There are none while the disk is full; the writer reports that.
                match self.ports.stats.crawl_stats(&self.crawl.id).await {
                    Ok(Some(stats)) if stats.held.is_some() => return Ok(()),
                    Ok(Some(stats)) if is_done(&stats) => match self.handed_left(&stats).await? {
                        0 => return Ok(()),
                        left => self.progress.show(format!("{} left for other spiders", count(left))),
                    },
                    Ok(Some(stats)) => {
                        let waits = waits.of(&stats, explain::delays(&*self.ports.stats, &stats)).await;
                        self.progress.show(progress(&stats) + waits);
                    }
                    Err(error) if error.is_temporary() => {}
                    Ok(None) => return Err(self.gone()),
                    Err(error) => return Err(error.into()),
                }
            } else {
                let now = reading.snapshot();
                let backlog = reading.backlog().map(|_| "waiting for URLs to be fetched".to_owned());
                let waits = backlog.or_else(|| reading.awaited_host());
                let waits = waits.map_or_else(String::new, |waits| format!(", {waits}"));
                self.progress.show(format!(
                    "reading: {}, {}, {} new{waits}",
                    counted(now.sources, "source"),
                    counted(now.found, "URL"),
                    count(now.new)
                ));
            }
            tokio::select! {
                () = self.signals.stop().cancelled() => produced.cancelled().await,
                () = produced.cancelled(), if !produced.is_cancelled() => {}
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    /// Returns the number of URLs and tasks that are left of what the crawl handed to other spiders, as far as these are
    /// here.
    async fn handed_left(&self, crawl: &CrawlStats) -> Result<u64, Fail> {
        let is_here = |stats: &CrawlStats| {
            let text = self.folder.text(&stats.spider).ok().flatten();
            let has_file = text.is_some_and(|text| {
                self.folder.spider(&stats.spider, Some(&text), &self.settings.items).is_ok()
            });
            has_file && stats.status != CrawlState::Paused
        };
        match left_among(&*self.ports.stats, crawl, is_here).await {
            Ok(Left::Handed(left)) => Ok(left),
            Ok(Left::Own | Left::Nothing) => Ok(0),
            // It is looked at again.
            Err(error) if error.is_temporary() => Ok(1),
            Err(error) => Err(error.into()),
        }
    }

    async fn crawl_stats(&self) -> Result<CrawlStats, Fail> {
        let stats = self.ports.stats.crawl_stats(&self.crawl.id).await?;
        stats.ok_or_else(|| self.gone())
    }

    fn gone(&self) -> Fail {
        Fail::run(format!("the crawl {} is not in its state file", self.crawl.id))
    }
}

/// Whether nothing is left to do. URLs requested by other crawls are in a crawl that never ends.
pub(super) fn is_done(stats: &CrawlStats) -> bool {
    stats.status.is_over() || (stats.pending == 0 && stats.crawl_ref().is_adhoc())
}
