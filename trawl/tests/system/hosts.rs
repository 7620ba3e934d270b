//! When producer and worker send requests to hosts, as the hosts themselves record it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use trawl_backends::embedded::Embedded;
use trawl_backends::sinks::Sinks;
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::politeness::gcra::Slot;
use trawl_common::politeness::rate::Rate;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{
    BackoffRequest, Ended, ErrorKind, HostSlotRequest, Hosts, InFlightRequest, Opening, Ports, Result,
    RobotsEntry, SentLate, Terms,
};
use trawl_common::settings::Settings;
use trawl_common::spider::Spider;
use trawl_common::spider::folder::Folder;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_producer::{Html, Progress, RunError, RunPlan};
use trawl_testkit::many_hosts::{ManyHosts, Plan};

const LIMIT: Duration = Duration::from_secs(60);

/// Long enough for another request to be granted meanwhile.
const SLOW: Duration = Duration::from_millis(200);

/// Schedules whose keeper takes its time to note that a host wants to be left alone.
struct SlowToPushBack(Arc<dyn Hosts>);

#[async_trait]
impl Hosts for SlowToPushBack {
    async fn reserve(&self, asks: &[HostSlotRequest]) -> Result<Vec<Slot>> {
        self.0.reserve(asks).await
    }

    async fn stay(&self, visits: &[InFlightRequest], lapse: Duration) -> Result<()> {
        self.0.stay(visits, lapse).await
    }

    async fn leave(&self, ended: &[Ended]) -> Result<()> {
        self.0.leave(ended).await
    }

    async fn sent_late(&self, sent: &[SentLate]) -> Result<()> {
        self.0.sent_late(sent).await
    }

    async fn push_back(&self, key: &HostKey, refusal: &BackoffRequest) -> Result<UnixMs> {
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

/// Settings that let a test's hosts be asked as fast as they answer.
fn settings() -> Settings {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut settings = Settings::default();
    settings.fetch.allow_private = true;
    settings.politeness.rate = Rate::Unlimited;
    settings
}

fn ports(store: &Embedded) -> Ports {
    store.ports(Arc::new(Sinks::new(WorkerId::of_this_machine(), Vec::new())))
}

fn job(settings: &Settings, source: &str) -> RunPlan {
    RunPlan {
        spider: Arc::new(Spider::without_file(SpiderName::default(), &settings.items)),
        start: vec![source.parse().unwrap()].into(),
        limit: None,
        html: Html::IsAnError,
        text: None,
        is_new: true,
    }
}

fn crawl(id: &str) -> CrawlRef {
    CrawlRef { id: id.parse().unwrap(), spider: SpiderName::default() }
}

#[tokio::test]
async fn a_producer_whose_spider_is_busy_with_another_crawl_asks_no_host() {
    let world = ManyHosts::serve(&[Plan { pages: 6, ..Plan::default() }]).await.unwrap();
    let settings = settings();
    let store = Embedded::in_memory().unwrap();
    let (crawl_of_another, lease) = (crawl("c1"), Duration::from_secs(60));
    let opening = Opening {
        judging: None,
        crawl: crawl_of_another,
        terms: Terms::default(),
        text: None,
        is_new: true,
        lease,
        reads: None,
    };
    let _session = store.engine().open(opening, Arc::default()).await.unwrap();
    let job = job(&settings, &world.url(0, "/sitemap.xml"));
    let (stop, progress) = (CancellationToken::new(), Arc::new(Progress::default()));
    let run =
        trawl_producer::run(&ports(&store), Arc::new(settings), job, &crawl("c2"), progress, &stop).await;
    assert!(matches!(run, Err(RunError::Port(error)) if error.kind == ErrorKind::Busy));
    // Whatever it has begun would ask by now.
    sleep(SLOW).await;
    assert!(world.log().is_empty(), "{:?}", world.log());
}

#[tokio::test]
async fn nobody_asks_a_host_while_a_worker_passes_on_that_it_wants_to_be_left_alone() {
    let world =
        ManyHosts::serve(&[Plan { pages: 6, refuses: Some((1, 2)), ..Plan::default() }]).await.unwrap();
    let mut settings = settings();
    settings.politeness.concurrency = Some(1);
    let store = Embedded::in_memory().unwrap();
    let ports = Ports { hosts: Arc::new(SlowToPushBack(store.hosts())), ..ports(&store) };
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    std::fs::write(&list, world.pages().join("\n")).unwrap();
    let (job, crawl) = (job(&settings, list.to_str().unwrap()), crawl("c1"));
    let (stop, progress) = (CancellationToken::new(), Arc::new(Progress::default()));
    trawl_producer::run(&ports, Arc::new(settings.clone()), job, &crawl, progress, &stop).await.unwrap();
    let folder = Folder::new(&settings);
    let working =
        trawl_worker::run(ports, settings, folder, WorkerId::of_this_machine(), Arc::default(), stop);
    let over = async {
        while !store.stats().crawl_stats(&crawl.id).await.unwrap().unwrap().status.is_over() {
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
