//! The producer holds back while too many URLs wait to be fetched.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fmt::Write;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use trawl_backends::embedded::Embedded;
use trawl_backends::sinks::Sinks;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::ports::{
    Claim, Claimed, Completion, Disposition, ErrorKind, Finish, Joined, Joining, Opening, Settlement, Terms,
};
use trawl_common::settings::{Producer, Settings};
use trawl_common::spider::{Handler, Mode, Spider};
use trawl_common::time::UnixMs;
use trawl_producer::{Html, Progress, Report, RunError, RunPlan, Source, run};
use trawl_testkit::stand_ins::AllRequests;

const MAX_BACKLOG: u64 = 1_000;
/// URLs that are admitted at once.
const BUNDLE: u64 = 500;
const URLS: u64 = 6_000;
const LEASE: Duration = Duration::from_millis(400);

/// A run with [`URLS`] to read, and nobody who fetches them.
struct Case {
    store: Embedded,
    crawl: CrawlRef,
    progress: Arc<Progress>,
    stop: CancellationToken,
    running: JoinHandle<Result<Report, RunError>>,
    _folder: tempfile::TempDir,
}

fn url(number: u64) -> String {
    format!("http://a.example/{number}")
}

impl Case {
    fn start() -> Self {
        Self::with(|producer| producer.max_backlog = NonZeroU64::new(MAX_BACKLOG).unwrap())
    }

    fn with(limit: impl FnOnce(&mut Producer)) -> Self {
        let mut list = String::new();
        (0..URLS).for_each(|number| writeln!(list, "{}", url(number)).unwrap());
        Self::reading(list, None, limit)
    }

    /// A run that reads this list, for a spider with this program.
    fn reading(list: String, handler: Option<Handler>, limit: impl FnOnce(&mut Producer)) -> Self {
        // Every test of the process installs it; the first succeeds.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("list.txt");
        std::fs::write(&source, list).unwrap();
        let store = Embedded::open(&folder.path().join("crawl.db")).unwrap();
        let ports = store.ports(Arc::new(Sinks::none()));
        let crawl = CrawlRef { id: CrawlId::generate(UnixMs::now()), spider: SpiderName::default() };
        let mut settings = Settings::default();
        limit(&mut settings.producer);
        settings.recovery.lost_after = LEASE;
        let (progress, stop) = (Arc::new(Progress::default()), CancellationToken::new());
        let spider = Spider { handler, ..Spider::without_file(SpiderName::default(), &settings.items) };
        let job = RunPlan {
            spider: Arc::new(spider),
            start: vec![Source::File(source)].into(),
            limit: None,
            html: Html::IsAnError,
            text: None,
            is_new: true,
        };
        let running = tokio::spawn({
            let crawl = crawl.clone();
            let (progress, stop) = (Arc::clone(&progress), stop.clone());
            async move { run(&ports, Arc::new(settings), job, &crawl, progress, &stop).await }
        });
        Self { store, crawl, progress, stop, running, _folder: folder }
    }

    async fn crawl_stats(&self) -> CrawlStats {
        self.store.stats().crawl_stats(&self.crawl.id).await.unwrap().unwrap()
    }

    /// Returns once the run waits, or has ended.
    async fn waits(&self) {
        while self.progress.backlog().is_none() && !self.running.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Ends so many URLs, as a worker would.
    async fn finish(&self, mut urls: u64) {
        let Joined { frontier, .. } = self.store.engine().join(Joining {
            worker: "worker".parse().unwrap(),
            settings: Settings::default(),
            health: Arc::default(),
            tasks: 0,
            requests: Arc::new(AllRequests),
            stop: CancellationToken::new(),
        });
        while urls > 0 {
            let claimed = frontier.claim(urls as usize).await.unwrap();
            urls -= claimed.len() as u64;
            let settlements = claimed.into_iter().map(|Claimed { message, .. }| {
                let ending = Completion::new(Finish::new(Claim::new(&message), Terminal::Done));
                Settlement { message, disposition: Disposition::Finish(Box::new(ending)) }
            });
            frontier.settle(settlements.collect()).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_crawl_with_a_small_backlog_takes_in_all_and_never_more_than_a_bundle_too_much_at_once() {
    let case = Case::start();
    let (mut ended, mut waits) = (0, 0);
    while !case.running.is_finished() {
        case.waits().await;
        let stats = case.crawl_stats().await;
        assert!(stats.pending < MAX_BACKLOG + BUNDLE, "{}", stats.pending);
        waits += u64::from(case.progress.backlog().is_some());
        case.finish(stats.counts.admitted - ended).await;
        ended = stats.counts.admitted;
    }
    let stats = case.crawl_stats().await;
    case.finish(stats.counts.admitted - ended).await;
    assert_eq!(case.progress.backlog(), None);
    let stats = case.crawl_stats().await;
    assert_eq!((stats.status, stats.counts.done, stats.pending), (CrawlState::Finished, URLS, 0));
    assert!(waits >= URLS / (MAX_BACKLOG + BUNDLE) - 1, "waited {waits} times");
}

#[tokio::test]
async fn a_run_waits_while_its_records_take_too_many_bytes() {
    let case = Case::with(|producer| producer.max_backlog_bytes = ByteSize::b(50_000));
    case.waits().await;
    let backlog = case.store.stats().backlog(&case.crawl).await.unwrap();
    // It looks every 5,000 URLs.
    assert!(backlog.urls < URLS && backlog.bytes >= 50_000, "{backlog:?}");
    case.finish(backlog.urls).await;
    let report = case.running.await.unwrap().unwrap();
    assert_eq!((report.counters.new, report.stopped), (URLS, false));
}

#[tokio::test]
async fn long_tasks_are_measured_before_there_are_as_many_as_there_may_be_of_urls() {
    let task = |number: u64| format!("{:?}\n", format!("{number} {}", "x".repeat(40_000)));
    let program = Handler::new(vec!["true".to_owned()], Mode::Once);
    let case = Case::reading((0..1_000).map(task).collect(), Some(program), |producer| {
        producer.max_backlog_bytes = ByteSize::b(1_000_000);
    });
    case.waits().await;
    let backlog = case.store.stats().backlog(&case.crawl).await.unwrap();
    // It looks after some 20 MB of recipes.
    assert!(backlog.urls < 700 && backlog.bytes >= 1_000_000, "{backlog:?}");
    case.stop.cancel();
    assert!(case.running.await.unwrap().unwrap().stopped);
}

#[tokio::test]
async fn a_run_that_waits_keeps_its_lease_and_a_stop_ends_it() {
    let case = Case::start();
    case.waits().await;
    let next = CrawlRef { id: "next".parse().unwrap(), ..case.crawl.clone() };
    let another = async || {
        let (crawl, terms) = (next.clone(), Terms::default());
        let opening =
            Opening { judging: None, crawl, terms, text: None, is_new: true, lease: LEASE, reads: None };
        case.store.engine().open(opening, Arc::default()).await.map(drop)
    };
    tokio::time::sleep(3 * LEASE).await;
    assert_eq!(another().await.unwrap_err().kind, ErrorKind::Busy, "after three times its length");
    assert!(case.progress.backlog().is_some_and(|pending| pending >= MAX_BACKLOG));

    case.stop.cancel();
    let report = case.running.await.unwrap().unwrap();
    assert!(report.stopped);
    assert!(another().await.is_ok(), "the lease was given back");
    let stats = case.store.stats().crawl_stats(&case.crawl.id).await.unwrap().unwrap();
    assert!(stats.pending >= MAX_BACKLOG && !stats.discovered);
}
