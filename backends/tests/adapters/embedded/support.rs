//! Shared parts of the tests of the embedded engine: state files, crawls of numbered pages, and a file that refuses
//! changes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::health::Health;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::politeness::gcra::{Pace, SlotRequest, Standing};
use trawl_common::ports::{
    Claim, Claimed, Completion, CrawlSession, Disposition, Finish, Frontier, HostSlotRequest, Joined,
    Joining, NewWork, Opening, Settlement, Terms,
};
use trawl_common::settings::Settings;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::stand_ins::AllRequests;

pub(super) const LONG: Duration = Duration::from_secs(600);

pub(super) fn open(path: &Path) -> Embedded {
    Embedded::open(path).unwrap()
}

pub(super) fn state_file() -> (TempDir, Embedded) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory.path().join("crawl.db"));
    (directory, engine)
}

pub(super) fn carrier_of(engine: &Embedded) -> Carrier {
    Carrier {
        engine: engine.engine(),
        stats: engine.stats(),
        control: engine.control(),
        pages: engine.pages(),
        health: Arc::default(),
        claims_ahead: false,
    }
}

pub(super) fn crawl() -> CrawlRef {
    CrawlRef { id: "c1".parse().unwrap(), spider: "s1".parse().unwrap() }
}

pub(super) fn worker() -> WorkerId {
    "w1".parse().unwrap()
}

pub(super) fn page(number: usize) -> NewWork {
    let url = CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap();
    NewWork::seed(url, Lane::Bulk)
}

pub(super) async fn open_crawl(engine: &Embedded, crawl: CrawlRef) -> Box<dyn CrawlSession> {
    let opening = Opening {
        judging: None,
        crawl,
        terms: Terms::default(),
        text: None,
        is_new: false,
        lease: LONG,
        reads: None,
    };
    engine.engine().open(opening, Arc::default()).await.unwrap()
}

pub(super) async fn admit(engine: &Embedded, numbers: std::ops::Range<usize>) -> Box<dyn CrawlSession> {
    let session = open_crawl(engine, crawl()).await;
    let pages: Vec<NewWork> = numbers.map(page).collect();
    session.admit(&pages).await.unwrap();
    session
}

pub(super) fn join(engine: &Embedded) -> Arc<dyn Frontier> {
    join_with(engine, Arc::default(), LONG).frontier
}

pub(super) fn join_with(engine: &Embedded, health: Arc<Health>, lost_after: Duration) -> Joined {
    let mut settings = Settings::default();
    settings.worker.prefetch = 1000;
    settings.recovery.lost_after = lost_after;
    let (requests, stop) = (Arc::new(AllRequests), CancellationToken::new());
    engine.engine().join(Joining { worker: worker(), settings, health, requests, tasks: 1000, stop })
}

/// All that is available now, in order, which are so many.
pub(super) async fn claim_all(frontier: &dyn Frontier, count: usize) -> Vec<Claimed> {
    let mut all = Vec::new();
    while all.len() < count {
        let claiming = timeout(Duration::from_secs(30), frontier.claim(1000));
        all.extend(claiming.await.unwrap_or_else(|_| panic!("{} of {count} came", all.len())).unwrap());
    }
    if let Ok(more) = timeout(Duration::from_millis(50), frontier.claim(1000)).await {
        all.extend(more.unwrap());
    }
    all
}

/// The page numbers of what is available now, in order, which are so many.
pub(super) async fn available(engine: &Embedded, count: usize) -> Vec<usize> {
    claim_all(&*join(engine), count).await.iter().map(number).collect()
}

pub(super) fn number(claimed: &Claimed) -> usize {
    claimed.message.work.as_str().rsplit('/').next().unwrap().parse().unwrap()
}

pub(super) fn done(claimed: &Claimed) -> Settlement {
    let message = claimed.message.clone();
    let ending = Completion::new(Finish::new(Claim::new(&message), Terminal::Done));
    Settlement { message, disposition: Disposition::Finish(Box::new(ending)) }
}

/// Puts a claimed URL aside until so many ms ago.
pub(super) async fn put_aside(frontier: &dyn Frontier, claimed: &Claimed, ago: u64) {
    let disposition = Disposition::Snooze { until: UnixMs(UnixMs::now().0 - ago) };
    frontier.settle(vec![Settlement { message: claimed.message.clone(), disposition }]).await.unwrap();
}

/// A state file that refuses some changes as long as this lives, as it does where its disk is full.
pub(super) struct Refusal {
    file: rusqlite::Connection,
    count: usize,
}

impl Refusal {
    /// Refuses `changes`, such as `INSERT ON records`. What the transaction did before is then undone, by SQLite at
    /// once or by whoever asks.
    pub(super) fn new(changes: &[&str], undoes_at_once: bool, path: &Path) -> Self {
        let file = rusqlite::Connection::open(path).unwrap();
        let how = if undoes_at_once { "ROLLBACK" } else { "ABORT" };
        for (number, change) in changes.iter().enumerate() {
            let refusal = format!("SELECT RAISE({how}, 'the disk is full')");
            let sql = format!("CREATE TRIGGER refusal_{number} BEFORE {change} BEGIN {refusal}; END");
            file.execute_batch(&sql).unwrap();
        }
        Self { file, count: changes.len() }
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        for number in 0..self.count {
            self.file.execute_batch(&format!("DROP TRIGGER refusal_{number}")).unwrap();
        }
    }
}

/// Waits for what must come.
pub(super) async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(30), waiting).await.unwrap();
}

/// Changes a state file that an engine has open, as another program may.
pub(super) fn change(directory: &TempDir, sql: &str) {
    let file = rusqlite::Connection::open(directory.path().join("crawl.db")).unwrap();
    assert_ne!(file.execute(sql, []).unwrap(), 0, "{sql}");
}

/// A request for a slot of a host that may be asked at any time.
pub(super) fn ask(host: &str) -> HostSlotRequest {
    let (pace, standing) = (Pace::UNLIMITED, Standing::New);
    let request = SlotRequest { pace, held: None, standing, deadline: None, token: 0, lapse: LONG };
    HostSlotRequest { key: HostKey::from_text(host), request }
}
