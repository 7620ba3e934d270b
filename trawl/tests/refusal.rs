//! A host that wants to be left alone is left alone from the moment that a worker reads its answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use trawl_backends::embedded::Embedded;
use trawl_backends::sinks::Sinks;
use trawl_common::gcra::Slot;
use trawl_common::host::HostKey;
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{Ask, Ended, Hosts, Ports, Refusal, Result, RobotsEntry, RobotsFile, Visit};
use trawl_common::rate::Rate;
use trawl_common::robots::RobotsKey;
use trawl_common::settings::Settings;
use trawl_common::spider::Spider;
use trawl_common::spider::folder::Folder;
use trawl_common::time::UnixMs;
use trawl_producer::{Html, Job, Progress};
use trawl_testkit::world::{Plan, World};

const LIMIT: Duration = Duration::from_secs(60);

/// Long enough for another request to be granted meanwhile.
const SLOW: Duration = Duration::from_millis(200);

/// Schedules whose keeper takes its time to note that a host wants to be left alone.
struct SlowToPushBack(Arc<dyn Hosts>);

#[async_trait]
impl Hosts for SlowToPushBack {
    async fn reserve(&self, asks: &[Ask]) -> Result<Vec<Slot>> {
        self.0.reserve(asks).await
    }

    async fn stay(&self, visits: &[Visit], lapse: Duration) -> Result<()> {
        self.0.stay(visits, lapse).await
    }

    async fn leave(&self, ended: &[Ended]) -> Result<()> {
        self.0.leave(ended).await
    }

    async fn push_back(&self, key: &HostKey, refusal: &Refusal) -> Result<UnixMs> {
        sleep(SLOW).await;
        self.0.push_back(key, refusal).await
    }

    async fn robots(&self, key: &RobotsKey, lease: Duration) -> Result<RobotsEntry> {
        self.0.robots(key, lease).await
    }

    async fn keep_robots(&self, key: &RobotsKey, file: &RobotsFile, ttl: Duration) -> Result<()> {
        self.0.keep_robots(key, file, ttl).await
    }

    async fn give_up_robots(&self, key: &RobotsKey) -> Result<()> {
        self.0.give_up_robots(key).await
    }
}

#[tokio::test]
async fn nobody_asks_a_host_while_a_worker_passes_on_that_it_wants_to_be_left_alone() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let world = World::serve(&[Plan { pages: 6, refuses: Some((1, 2)), ..Plan::default() }]).await.unwrap();
    let mut settings = Settings::default();
    settings.fetch.allow_private = true;
    settings.politeness.rate = Rate::Unlimited;
    settings.politeness.concurrency = Some(1);
    let store = Embedded::in_memory(settings.recovery.patience).unwrap();
    let ports = Ports {
        queue: store.queue(),
        frontier: store.frontier(),
        hosts: Arc::new(SlowToPushBack(store.hosts())),
        cache: store.cache(),
        pages: store.pages(),
        outlets: Arc::new(Sinks::new(WorkerId::of_this_machine(), Vec::new())),
    };
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    std::fs::write(&list, world.pages().join("\n")).unwrap();
    let job = Job {
        spider: Arc::new(Spider::without_file(SpiderName::default(), &settings.items)),
        start: vec![list.to_str().unwrap().parse().unwrap()].into(),
        limit: None,
        html: Html::IsAnError,
        is_new: true,
    };
    let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: SpiderName::default() };
    let (stop, progress) = (CancellationToken::new(), Arc::new(Progress::default()));
    trawl_producer::run(&ports, Arc::new(settings.clone()), job, &crawl, progress, &stop).await.unwrap();
    let folder = Folder::of(&settings);
    let working = trawl_worker::run(ports, settings, folder, WorkerId::of_this_machine(), stop);
    let over = async {
        while !store.frontier().books(&crawl.id).await.unwrap().unwrap().status.is_over() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        ended = working => panic!("it ended: {ended:?}"),
        over = timeout(LIMIT, over) => over.unwrap(),
    }
    let times: Vec<Duration> = world.log().iter().map(|arrival| arrival.at).collect();
    // robots.txt, a refusal, pages.
    assert_eq!(times.len(), 1 + 1 + 6);
    let left_alone = times[2] - times[1];
    assert!(left_alone >= Duration::from_millis(1_990), "{left_alone:?}");
}
