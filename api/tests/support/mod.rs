//! Backends over an engine of their own, for tests of the API and of the console.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use trawl_api::{Backend, Tip, TryPage};
use trawl_backends::embedded::Embedded;
use trawl_backends::rabbitmq::{ItemStream, QueueDepths, RabbitMq};
use trawl_backends::redis::{
    self, RedisHosts, RedisJobs, RedisLogs, RedisPages, RedisProjects, RedisRecords, RedisRunners,
    RedisSchedules, RedisSpiderStore,
};
use trawl_backends::sinks::Sinks;
use trawl_common::frontier::lane::Lane;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{CrawlSession, Hosts, Joined, Joining, NewWork, Opening, Terms, WorkerPorts};
use trawl_common::project::{Source, Wanted};
use trawl_common::settings::{self, Dedup, Settings};
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::Coordinator;
use trawl_testkit::servers::{self, VirtualHost};
use trawl_testkit::stand_ins::AllRequests;

pub(crate) const OPERATOR: &str = "operator-0123456789abcdef0123456789abcdef";
pub(crate) const VIEWER: &str = "viewer-0123456789abcdef0123456789abcdef";

/// The key that opens the secrets of projects for runners.
pub(crate) const KEY: &str = "1212121212121212121212121212121212121212121212121212121212121212";

/// The commit at the end of every branch.
pub(crate) const COMMIT: &str = "1212121212121212121212121212121212121212";

/// The time after which a call that hangs fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Returns a backend over a state file, and the schedules of its hosts. `try_page` is given the latter.
pub(crate) fn state_file(try_page: impl FnOnce(&Arc<dyn Hosts>) -> TryPage) -> (Backend, Arc<dyn Hosts>) {
    install_tls();
    let store = Embedded::in_memory().unwrap().with_key(KEY.parse().ok());
    let schedules = store.hosts();
    let backend = Backend {
        stats: store.stats(),
        control: store.control(),
        jobs: store.jobs(),
        spider_store: store.spider_store(),
        schedules: store.schedules(),
        pages: store.pages(),
        items: None,
        logs: store.logs(),
        ended_tasks: store.ended_tasks(),
        hosts: store.host_control(),
        engine: store.engine(),
        try_page: try_page(&schedules),
        runners: store.runners(),
        projects: store.projects(),
        tip: tip(),
        for_runners: {
            let ports = WorkerPorts::from(store.ports(Arc::new(Sinks::none())));
            Arc::new(move || ready(Ok(ports.clone())).boxed())
        },
        settings: Arc::default(),
    };
    (backend, schedules)
}

/// Returns a backend over a fleet's servers, the schedules of its hosts, its broker, and where that is. `try_page` is
/// given the schedules.
pub(crate) async fn fleet(
    try_page: impl FnOnce(&Arc<dyn Hosts>) -> TryPage,
) -> (Backend, Arc<dyn Hosts>, Arc<RabbitMq>, VirtualHost) {
    install_tls();
    let vhost = VirtualHost::new().await;
    let server = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let broker = RabbitMq::connect(&server, &Default::default(), &Default::default()).await.unwrap();
    let broker = Arc::new(broker);
    let items = ItemStream::new(&server, &Default::default(), settings::Topology::Declare).unwrap();
    let store = settings::Redis { url: servers::own_database().await, ..settings::Redis::default() };
    let of_runners = Settings { rabbitmq: server.clone(), redis: store.clone(), ..Settings::default() };
    let store = redis::connect(&store).await.unwrap();
    let records = RedisRecords::new(store.clone(), Duration::from_secs(600), Dedup::Plain);
    let records = Arc::new(records.with_queues(QueueDepths::new(&server).unwrap()));
    let pages = Arc::new(RedisPages::new(store.clone()));
    let hosts = Arc::new(RedisHosts::new(store.clone(), 1_000_000));
    let schedules: Arc<dyn Hosts> = hosts.clone();
    let runners = Arc::new(RedisRunners::new(store.clone()));
    let projects = Arc::new(RedisProjects::new(store.clone()));
    let backend = Backend {
        engine: Arc::new(Coordinator::new(records.clone(), broker.clone(), pages.clone())),
        stats: records.clone(),
        control: records,
        spider_store: Arc::new(RedisSpiderStore::new(store.clone())),
        jobs: Arc::new(RedisJobs::new(store.clone(), settings::Jobs::default().per_spider)),
        schedules: Arc::new(RedisSchedules::new(store.clone())),
        pages,
        items: Some(Arc::new(items)),
        logs: Arc::new(RedisLogs::new(store.clone(), &settings::Log::default())),
        ended_tasks: Arc::new(RedisLogs::of_ended_tasks(store, &settings::Log::default())),
        hosts,
        try_page: try_page(&schedules),
        runners,
        projects,
        tip: tip(),
        for_runners: Arc::new(move || {
            let (settings, worker) = (of_runners.clone(), WorkerId::of_this_machine());
            async move { trawl_backends::fleet::connect(&settings, &worker).await.map(WorkerPorts::from) }
                .boxed()
        }),
        settings: Arc::default(),
    };
    (backend, schedules, broker, vhost)
}

/// Answers for every repository, whose branches all end at one commit; one that is called `away` is.
fn tip() -> Tip {
    Arc::new(|Source { clone_url, branch }| {
        let commit = match branch.as_str() {
            "away" => Err("it is away".to_owned()),
            _ => Ok(COMMIT.parse().unwrap()),
        };
        ready(commit.map(|commit| Wanted { clone_url, commit })).boxed()
    })
}

/// Chooses the provider of TLS. Every test of the process does it; the first succeeds.
fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Returns settings that let in a viewer, and an operator of this name.
pub(crate) fn guarded(operator: &str) -> settings::Api {
    let callers = |name: &str, token: &str| {
        [(name.parse().unwrap(), token.to_owned().try_into().unwrap())].into_iter().collect()
    };
    settings::Api {
        viewers: callers("looker", VIEWER),
        operators: callers(operator, OPERATOR),
        ..settings::Api::default()
    }
}

/// Opens a crawl, for its sources to be read.
pub(crate) async fn open(
    backend: &Backend,
    id: &str,
    spider: &str,
    terms: Terms,
) -> (CrawlRef, Box<dyn CrawlSession>) {
    let crawl = CrawlRef { id: id.parse().unwrap(), spider: spider.parse().unwrap() };
    let opening = Opening {
        judging: None,
        crawl: crawl.clone(),
        terms,
        text: None,
        is_new: true,
        lease: Duration::from_secs(600),
        reads: None,
    };
    (crawl, backend.engine.open(opening, Arc::default()).await.unwrap())
}

/// Starts a crawl of this number of pages, and ends its discovery.
pub(crate) async fn crawl(backend: &Backend, id: &str, spider: &str, pages: usize, terms: Terms) -> CrawlRef {
    let (crawl, session) = open(backend, id, spider, terms).await;
    let new: Vec<NewWork> = (0..pages).map(|number| NewWork::seed(page(id, number), Lane::Bulk)).collect();
    session.admit(&new).await.unwrap();
    session.close().await.unwrap();
    crawl
}

/// Lets a worker join that does nothing by itself.
pub(crate) fn join(backend: &Backend, worker: WorkerId) -> Joined {
    let mut settings = Settings::default();
    settings.recovery.lost_after = Duration::from_secs(600);
    backend.engine.join(Joining {
        worker,
        settings,
        health: Arc::default(),
        requests: Arc::new(AllRequests),
        tasks: 10,
        stop: Default::default(),
    })
}

/// A page of the site that a crawl is about.
pub(crate) fn page(id: &str, number: usize) -> CanonicalUrl {
    format!("http://{id}.example/{number}").parse().unwrap()
}
