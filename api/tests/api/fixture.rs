//! An API over an engine of its own, and a client that accepts no answer but those which the document has.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::FutureExt;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use trawl_api::{Access, Backend, TryPage};
use trawl_backends::rabbitmq::RabbitMq;
use trawl_common::frontier::Task;
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::names::{CrawlRef, SpiderName, WorkerId};
use trawl_common::ports::{
    BeatReply, Claim, Claimed, Completion, CrawlSession, Disposition, Fatal, Finish, Frontier, Heartbeat,
    Hosts, Joined, NewWork, Settlement, Terms,
};
use trawl_common::settings::{self, Politeness, Settings};
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_testkit::servers::VirtualHost;
use trawl_worker::Trials;

use crate::support;
pub(crate) use crate::support::{LIMIT, OPERATOR, VIEWER, page};

/// Makes a test of each promise for each engine.
macro_rules! promises {
    ($($promise:ident)*) => {
        mod embedded {
            $(#[tokio::test] async fn $promise() { super::$promise(&$crate::fixture::Fixture::embedded().await).await; })*
        }
        mod fleet {
            $(#[tokio::test] async fn $promise() { super::$promise(&$crate::fixture::Fixture::fleet().await).await; })*
        }
    };
}

/// An API, and what it is about.
pub(crate) struct Fixture {
    pub(crate) backend: Backend,
    /// The schedules of hosts, by which pages are tried.
    schedules: Arc<dyn Hosts>,
    pub(crate) address: SocketAddr,
    client: Client,
    document: Value,
    stop: CancellationToken,
    _stops: DropGuard,
    _server: JoinSet<()>,
    vhost: Option<VirtualHost>,
    /// The stream in which a fleet's workers store items.
    pub(crate) broker: Option<Arc<RabbitMq>>,
}

/// An answer that the document has.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Fixture {
    pub(crate) async fn embedded() -> Self {
        let (backend, schedules) = support::state_file(|schedules| try_page(Settings::default(), schedules));
        Self::over(backend, schedules, None).await
    }

    pub(crate) async fn fleet() -> Self {
        let fleet = support::fleet(|schedules| try_page(Settings::default(), schedules));
        let (backend, schedules, broker, vhost) = fleet.await;
        Self { broker: Some(broker), ..Self::over(backend, schedules, Some(vhost)).await }
    }

    async fn over(backend: Backend, schedules: Arc<dyn Hosts>, vhost: Option<VirtualHost>) -> Self {
        Self::with(backend, schedules, vhost, support::guarded("shop")).await
    }

    /// Over nothing, for whoever these settings let in.
    pub(crate) async fn guarded_by(settings: settings::Api) -> Self {
        let Self { backend, schedules, .. } = Self::embedded().await;
        Self::with(backend, schedules, None, settings).await
    }

    async fn with(
        backend: Backend,
        schedules: Arc<dyn Hosts>,
        vhost: Option<VirtualHost>,
        settings: settings::Api,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = Arc::new(Access::new(&settings, address).unwrap());
        let stop = CancellationToken::new();
        let mut server = JoinSet::new();
        let router = trawl_api::router(backend.clone(), access, stop.clone());
        server.spawn(trawl_api::serve(listener, router, settings.trusted_proxies, stop.clone()));
        let client = Client::builder().no_proxy().timeout(LIMIT).build().unwrap();
        let document = client.get(format!("http://{address}/api/v1/openapi.json")).send().await.unwrap();
        let document = serde_json::from_slice(&document.bytes().await.unwrap()).unwrap();
        let (server, stops, broker) = (server, stop.clone().drop_guard(), None);
        Self {
            backend,
            schedules,
            address,
            client,
            document,
            stop,
            _stops: stops,
            _server: server,
            vhost,
            broker,
        }
    }

    /// Returns this API over another backend.
    pub(crate) async fn again_over(self, backend: Backend) -> Self {
        Self::over(backend, self.schedules, self.vhost).await
    }

    /// Returns another API over the same backend, with these settings.
    pub(crate) async fn also_with(&self, settings: Settings) -> Self {
        let schedules = Arc::clone(&self.schedules);
        let try_page = try_page(settings.clone(), &schedules);
        let backend = Backend { try_page, settings: Arc::new(settings), ..self.backend.clone() };
        Self::over(backend, schedules, None).await
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Stops the API.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// A request as nobody in particular sends it.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    /// A request of an operator.
    pub(crate) fn operator(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).bearer_auth(OPERATOR)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.operator(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answer {
        self.send(self.operator(Method::POST, path)).await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Answer {
        let request = self.operator(Method::POST, path).header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    /// Sends a request that the document does not have.
    pub(crate) async fn heard(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, body: serde_json::from_slice(&response.bytes().await.unwrap()).unwrap() }
    }

    /// Sends a request, whose answer must be one of the document's.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Answer {
        let request = request.build().unwrap();
        let (method, path) = (request.method().as_str().to_lowercase(), request.url().path().to_owned());
        let response = self.client.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let content_type = headers.get("content-type").map_or("", |value| value.to_str().unwrap());
        let content_type = content_type.split(';').next().unwrap().to_owned();
        let bytes = response.bytes().await.unwrap();
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| text());
        match self.operation(&method, &path) {
            Some(operation) => {
                let known = &self.resolved(&operation["responses"][status.to_string()])["content"];
                assert!(known[&content_type].is_object(), "{method} {path}: {status} {content_type} {body}");
            }
            None => {
                assert!(matches!(status, 401 | 403 | 404 | 405 | 421), "{method} {path}: {status} {body}")
            }
        }
        if status >= 400 {
            assert_eq!(content_type, "application/problem+json", "{method} {path}: {status}");
            assert_eq!(body["status"], status);
            for member in ["type", "title", "detail"] {
                assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {body}");
            }
        }
        Answer { status, headers, body }
    }

    /// Returns what a part of the document refers to, or the part itself.
    fn resolved<'a>(&'a self, part: &'a Value) -> &'a Value {
        let place = part["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
        place.map_or(part, |place| self.document.pointer(place).unwrap())
    }

    /// Returns the operation that the document describes for a path.
    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let fits = |template: &str| {
            let (template, path): (Vec<_>, Vec<_>) =
                (template.split('/').collect(), path.split('/').collect());
            let fits =
                |(one, other): (&&str, &&str)| one == other || (one.starts_with('{') && !other.is_empty());
            template.len() == path.len() && template.iter().zip(&path).all(fits)
        };
        let (_, item) = self.document["paths"].as_object()?.iter().find(|(template, _)| fits(template))?;
        item.get(method)
    }

    /// Starts a crawl of this number of pages, and ends its discovery.
    pub(crate) async fn crawl(&self, id: &str, spider: &str, pages: usize) -> CrawlRef {
        self.crawl_with(id, spider, pages, Terms::default()).await
    }

    /// Starts such a crawl under `terms`.
    pub(crate) async fn crawl_with(&self, id: &str, spider: &str, pages: usize, terms: Terms) -> CrawlRef {
        support::crawl(&self.backend, id, spider, pages, terms).await
    }

    /// Opens a crawl, for its sources to be read.
    pub(crate) async fn session(&self, id: &str, spider: &str) -> (CrawlRef, Box<dyn CrawlSession>) {
        support::open(&self.backend, id, spider, Terms::default()).await
    }

    /// Lets a worker join.
    pub(crate) fn worker(&self) -> Worker {
        let name = WorkerId::of_this_machine();
        let Joined { frontier, maintenance } = support::join(&self.backend, name.clone());
        Worker { name, frontier, _maintenance: JoinSet::from_iter([maintenance]) }
    }

    /// A crawl of so many pages, all of which have failed.
    pub(crate) async fn failed(&self, id: &str, spider: &str, pages: usize) -> CrawlRef {
        let crawl = self.crawl(id, spider, pages).await;
        let worker = self.worker();
        worker.end_all(pages, Terminal::Failed).await;
        crawl
    }
}

/// A worker that fetches nothing.
pub(crate) struct Worker {
    pub(crate) name: WorkerId,
    frontier: Arc<dyn Frontier>,
    _maintenance: JoinSet<Fatal>,
}

impl Worker {
    /// Has so many URLs end so.
    pub(crate) async fn end_all(&self, count: usize, terminal: Terminal) {
        let claimed = self.claim(count).await;
        self.end(claimed, terminal).await;
    }

    /// Claims so many URLs.
    pub(crate) async fn claim(&self, count: usize) -> Vec<Claimed> {
        let mut claimed = Vec::new();
        while claimed.len() < count {
            let more = self.frontier.claim(count - claimed.len());
            claimed.extend(tokio::time::timeout(LIMIT, more).await.unwrap().unwrap());
        }
        claimed
    }

    /// Has so many tasks end so.
    pub(crate) async fn end_tasks(&self, count: usize, terminal: Terminal) {
        let claimed = self.claim_tasks(count).await;
        self.end(claimed, terminal).await;
    }

    async fn claim_tasks(&self, count: usize) -> Vec<Claimed> {
        let mut claimed = Vec::new();
        while claimed.len() < count {
            let more = self.frontier.claim_tasks(count - claimed.len());
            claimed.extend(tokio::time::timeout(LIMIT, more).await.unwrap().unwrap());
        }
        claimed
    }

    /// Ends a task, which hands one with this recipe to another spider.
    pub(crate) async fn hand_on(&self, spider: &str, recipe: &str) {
        let spider: SpiderName = spider.parse().unwrap();
        let Claimed { message, .. } = self.claim_tasks(1).await.remove(0);
        let task = Task::new(&spider, NewTask::from_recipe(recipe.parse().unwrap()));
        let finish = Finish::new(Claim::new(&message), Terminal::Done);
        let ending = Completion { elsewhere: vec![(spider, NewWork::task(task))], ..Completion::new(finish) };
        let disposition = Disposition::Finish(Box::new(ending));
        self.frontier.settle(vec![Settlement { message, disposition }]).await.unwrap();
    }

    /// Begins so many tasks, and says so with its next sign of life.
    pub(crate) async fn begin_tasks(&self, count: usize) -> Vec<Claimed> {
        let claimed = self.claim_tasks(count).await;
        let claims: Vec<Claim> = claimed.iter().map(|claimed| Claim::new(&claimed.message)).collect();
        self.frontier.start(&claims).await.unwrap();
        let key = |claimed: &Claimed| (claimed.message.key().to_string(), UnixMs::now());
        let running = claimed.iter().map(key).collect();
        self.beat(|beat| beat.running = running).await;
        claimed
    }

    /// Sends a heartbeat.
    pub(crate) async fn beat(&self, change: impl FnOnce(&mut Heartbeat)) -> BeatReply {
        let mut beat = Heartbeat::idle(self.name.clone());
        change(&mut beat);
        self.frontier.beat(&beat).await.unwrap()
    }

    /// Has these end so.
    pub(crate) async fn end(&self, claimed: Vec<Claimed>, terminal: Terminal) {
        let batch = claimed.into_iter().map(|claimed| settlement(claimed, terminal)).collect();
        self.frontier.settle(batch).await.unwrap();
    }
}

fn settlement(Claimed { message, .. }: Claimed, terminal: Terminal) -> Settlement {
    let cause =
        Cause { status: Some(404), attempts: 1, ..Cause::new(Reason::Final, "not found", UnixMs::now()) };
    let mut finish = Finish::new(Claim::new(&message), terminal);
    if terminal == Terminal::Failed {
        finish.note = Some(DeadLetterEntry::new(cause.clone()));
    }
    let dead_letter = finish.note.is_some().then_some(cause);
    let ending = Completion { dead_letter, ..Completion::new(finish) };
    Settlement { message, disposition: Disposition::Finish(Box::new(ending)) }
}

/// Tries spiders, as `trawl api` does it.
fn try_page(settings: Settings, schedules: &Arc<dyn Hosts>) -> TryPage {
    let trials = Arc::new(Trials::start(Arc::new(settings), Arc::clone(schedules)).unwrap());
    Arc::new(move |spider, ready, url| Arc::clone(&trials).attempt(spider, ready, url).boxed())
}

/// Settings with a group of this name.
pub(crate) fn grouping(name: &str) -> Settings {
    let rule = settings::HostRule { group: Some(name.to_owned()), ..settings::HostRule::default() };
    let politeness = Politeness { host: vec![rule], ..Politeness::default() };
    Settings { politeness, ..Settings::default() }
}
