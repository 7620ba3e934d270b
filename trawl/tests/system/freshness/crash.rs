//! Crashes between two steps, which must not hide a change of a page.

use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use trawl_backends::embedded::Embedded;
use trawl_backends::sinks::Sinks;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::{DedupScope, Key, Recrawl, StartReply};
use trawl_common::health::Health;
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::politeness::rate::Rate;
use trawl_common::ports::{
    Activity, BeatReply, Claim, Claimed, Completion, CrawlSession, Disposition, Engine, Fatal, FileStore,
    Frontier, Heartbeat, Join, Joined, Joining, Opening, Page, PageHistories, PageVisit, Ports, Result,
    Settled, Settlement, Sink, SinkFactory,
};
use trawl_common::settings::{FileSink, Settings, SinkSettings};
use trawl_common::spider::folder::Folder;
use trawl_common::spider::{Download, Spider};
use trawl_common::web::url::CanonicalUrl;
use trawl_producer::{Html, Progress, RunPlan, Source};
use trawl_testkit::changing_site::{ChangingPage, ChangingSite};

use crate::freshness::{asked, item, items, unchanged, whole};
use crate::support::LIMIT;

/// The point at which a process dies: it never gets past it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// The items are stored nowhere.
    BeforeTheSink,
    /// They are stored, and the page is not remembered.
    BeforeTheMemory,
    /// It is remembered, and its URL is not finished, as where the two are not one transaction.
    AfterTheMemory,
}

/// An engine whose workers never get a page settled.
struct DeadlyEngine {
    engine: Arc<dyn Engine>,
    settling: Arc<dyn Fn(Vec<Settlement>) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl Join for DeadlyEngine {
    fn join(&self, joining: Joining) -> Joined {
        let Joined { frontier, maintenance } = self.engine.join(joining);
        let frontier = DeadlyFrontier { frontier, settling: Arc::clone(&self.settling) };
        Joined { frontier: Arc::new(frontier), maintenance }
    }
}

#[async_trait]
impl Engine for DeadlyEngine {
    async fn open(&self, opening: Opening, health: Arc<Health>) -> Result<Box<dyn CrawlSession>> {
        self.engine.open(opening, health).await
    }

    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<u64> {
        self.engine.replay(from, into, keys).await
    }
}

struct DeadlyFrontier {
    frontier: Arc<dyn Frontier>,
    settling: Arc<dyn Fn(Vec<Settlement>) -> BoxFuture<'static, ()> + Send + Sync>,
}

#[async_trait]
impl Frontier for DeadlyFrontier {
    async fn claim(&self, max: usize) -> std::result::Result<Vec<Claimed>, Fatal> {
        self.frontier.claim(max).await
    }

    async fn claim_tasks(&self, max: usize) -> std::result::Result<Vec<Claimed>, Fatal> {
        self.frontier.claim_tasks(max).await
    }

    async fn start(&self, urls: &[Claim]) -> std::result::Result<Vec<StartReply>, Fatal> {
        self.frontier.start(urls).await
    }

    async fn start_task(&self, task: &Claimed) -> std::result::Result<Option<StartReply>, Fatal> {
        self.frontier.start_task(task).await
    }

    async fn extend(&self, urls: &[&Message]) -> std::result::Result<Vec<bool>, Fatal> {
        self.frontier.extend(urls).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> std::result::Result<Settled, Fatal> {
        (self.settling)(batch).await;
        pending().await
    }

    async fn release(&self) -> std::result::Result<(), Fatal> {
        self.frontier.release().await
    }

    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> std::result::Result<bool, Fatal> {
        self.frontier.has_seen(crawl, url).await
    }

    async fn beat(&self, beat: &Heartbeat) -> Result<BeatReply> {
        self.frontier.beat(beat).await
    }

    fn activity(&self) -> Activity {
        self.frontier.activity()
    }
}

/// Remembers the pages of a batch, as an engine does that remembers them before it has their URLs end.
async fn remember(pages: &dyn PageHistories, batch: Vec<Settlement>) {
    for Settlement { disposition, .. } in batch {
        if let Disposition::Finish(ending) = disposition
            && let Completion { finish, memory: Some(PageVisit::Visited(visited)), .. } = *ending
        {
            let Claim { crawl, key } = &finish.claim;
            pages.note(&crawl.spider, &[(key.url().unwrap().clone(), visited)]).await.unwrap();
        }
    }
}

/// A sink that nothing comes back from.
struct DeadlySink(Arc<Notify>);

#[async_trait]
impl Sink for DeadlySink {
    fn name(&self) -> &str {
        "deadly"
    }

    async fn put(&self, _: &[Page]) -> Result<()> {
        self.0.notify_one();
        pending().await
    }
}

impl SinkFactory for DeadlySink {
    fn open(&self, _: &Spider) -> Result<Vec<Arc<dyn Sink>>> {
        Ok(vec![Arc::new(Self(Arc::clone(&self.0)))])
    }

    fn open_files(&self, _: &Spider, _: &Download) -> Result<Arc<dyn FileStore>> {
        unreachable!("its spider keeps no files")
    }
}

/// A crawl of one page, by processes of which some die.
struct Case {
    folder: tempfile::TempDir,
    site: ChangingSite,
    settings: Settings,
}

impl Case {
    async fn new() -> Self {
        // Every test of the process installs it; the first succeeds.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let site = ChangingSite::serve().await;
        site.put("/p/a", ChangingPage::tagged("a"));
        let mut settings = Settings::default();
        settings.fetch.allow_private = true;
        settings.politeness.rate = Rate::Unlimited;
        // Each request is to be seen.
        settings.cache.ttl = Duration::ZERO;
        Self { folder: tempfile::tempdir().unwrap(), site, settings }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("items.jsonl")
    }

    fn ports(&self, store: &Embedded) -> Ports {
        let out = FileSink::new(self.out());
        store.ports(Arc::new(Sinks::new(WorkerId::of_this_machine(), vec![SinkSettings::Jsonl(out)])))
    }

    /// The state file, once the process before has let it go.
    async fn open(&self) -> Embedded {
        let opening = async {
            loop {
                match Embedded::open(&self.folder.path().join("crawl.db")) {
                    Ok(store) => return store,
                    Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        timeout(LIMIT, opening).await.unwrap()
    }

    /// Reads the sitemap into a crawl.
    async fn produce(&self, ports: &Ports, id: &str) -> CrawlRef {
        let spider = Spider::without_file(SpiderName::default(), &self.settings.items);
        let source: Source = format!("{}/sitemap.xml", self.site.origin).parse().unwrap();
        let job = RunPlan {
            spider: Arc::new(Spider { dedup: Some(DedupScope::Recrawl(Recrawl::Changed)), ..spider }),
            start: vec![source].into(),
            limit: None,
            html: Html::IsAnError,
            text: None,
            is_new: false,
        };
        let crawl = CrawlRef { id: id.parse().unwrap(), spider: SpiderName::default() };
        let settings = Arc::new(self.settings.clone());
        let stop = CancellationToken::new();
        let report =
            trawl_producer::run(ports, settings, job, &crawl, Arc::new(Progress::default()), &stop).await;
        assert_eq!(report.unwrap().problems, [""; 0]);
        crawl
    }

    /// A worker that never ends by itself.
    async fn work(&self, ports: Ports) {
        let folder = Folder::new(&self.settings);
        let id = WorkerId::of_this_machine();
        trawl_worker::run(ports, self.settings.clone(), folder, id, Arc::default(), CancellationToken::new())
            .await
            .unwrap();
    }

    /// Works on the first crawl until the process dies.
    async fn die(&self, death: Death) {
        let store = self.open().await;
        let ports = self.ports(&store);
        self.produce(&ports, "c1").await;
        let reached = Arc::new(Notify::new());
        let ports = match death {
            Death::BeforeTheSink => {
                Ports { sink_factory: Arc::new(DeadlySink(Arc::clone(&reached))), ..ports }
            }
            Death::BeforeTheMemory | Death::AfterTheMemory => {
                let (pages, reached) = (store.pages(), Arc::clone(&reached));
                let settling = move |batch| {
                    let (pages, reached) = (Arc::clone(&pages), Arc::clone(&reached));
                    let settling = async move {
                        if death == Death::AfterTheMemory {
                            remember(&*pages, batch).await;
                        }
                        reached.notify_one();
                    };
                    settling.boxed()
                };
                let engine = DeadlyEngine { engine: store.engine(), settling: Arc::new(settling) };
                Ports { engine: Arc::new(engine), ..ports }
            }
        };
        let dying = async {
            tokio::select! {
                () = self.work(ports) => panic!("it ended"),
                () = reached.notified() => {}
            }
        };
        timeout(LIMIT, dying).await.unwrap();
    }

    /// Works until a crawl is over.
    async fn finish(&self, store: &Embedded, crawl: &str) {
        let id = crawl.parse().unwrap();
        let stats = store.stats();
        let over = async {
            while !stats.crawl_stats(&id).await.unwrap().unwrap().status.is_over() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let finishing = async {
            tokio::select! {
                () = self.work(self.ports(store)) => panic!("it ended"),
                () = over => {}
            }
        };
        timeout(LIMIT, finishing).await.unwrap();
    }
}

#[tokio::test]
async fn a_worker_that_dies_between_two_steps_hides_no_change_and_repeats_the_same_items() {
    for (death, stored) in
        [(Death::BeforeTheSink, 0), (Death::BeforeTheMemory, 1), (Death::AfterTheMemory, 1)]
    {
        let case = Case::new().await;
        case.die(death).await;
        let new = || item("/p/a", "a", "new");
        assert_eq!(items(&case.out(), &case.site.origin), vec![new(); stored], "{death:?}");
        let store = case.open().await;
        case.finish(&store, "c1").await;
        assert_eq!(asked(&case.site), [whole("/p/a"), whole("/p/a")], "{death:?}");
        assert_eq!(items(&case.out(), &case.site.origin), vec![new(); stored + 1], "{death:?}");

        case.produce(&case.ports(&store), "c2").await;
        case.finish(&store, "c2").await;
        assert_eq!(asked(&case.site), [unchanged("/p/a")], "{death:?}");
        assert_eq!(items(&case.out(), &case.site.origin).len(), stored + 1, "{death:?}");
    }
}
