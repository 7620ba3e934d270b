//! The relay: calls of runners ([`trawl_common::relay`]) to the ports of a worker.
//!
//! The API believes nothing that a runner says. A call passes, in this order:
//!
//! 1. `caller.rs`: the runner is known by its key, and does not call too often.
//! 2. `sessions.rs`: the session is one of this process. It holds what was handed out in it, and ends when its runner is
//!    silent or loses its access.
//! 3. `guard.rs` and `scope.rs`: the runner holds what the call is about. What a message says is not sent back by it,
//!    but kept here; its links are those that the spider may follow; its items are those of the page.
//! 4. `calls`: the call itself. `replies.rs` keeps replies that may have been lost.

mod caller;
mod calls;
mod guard;
mod projects;
mod replies;
mod requests;
mod scope;
mod session;
mod sessions;
mod spiders;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use trawl_common::frontier::message::Message;
use trawl_common::names::{CrawlRef, ProjectName, RunnerName};
use trawl_common::ports::{
    self, Error, ErrorKind, Jobs, Requests, Result, Runner, Runners, SpiderStore, Terms, WorkerPorts,
};
use trawl_common::relay::{
    self, Call, JoinFleet, JoinedFleet, MAX_BODY_BYTES, NUMBER, PATH, Register, Registered, Shared,
};
use trawl_common::settings::{Fetch, Settings};

use self::caller::Callers;
use self::calls::Serve;
use self::projects::Projects;
use self::requests::FileRequests;
use self::session::Session;
use self::sessions::Sessions;
pub(crate) use self::spiders::CrawlSpider;
use self::spiders::Spiders;
use crate::backend::{Backend, ForRunners};
use crate::problem::{Kind, Problem};

/// Maximum time for the body of a call to arrive.
const BODY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// Maximum size of the body of a call outside of a session, in bytes.
const MAX_SMALL_BYTES: usize = 64 * 1024;

/// The parts of the backend that runners are served from.
pub(crate) struct Relay {
    runners: Arc<dyn Runners>,
    jobs: Arc<dyn Jobs>,
    projects: Arc<dyn ports::Projects>,
    spider_store: Arc<dyn SpiderStore>,
    settings: Arc<Settings>,
    /// Checks the requests of other programs.
    requests: Arc<FileRequests>,
    connect: ForRunners,
    /// The engine that calls are relayed to, from the first session on.
    engine: OnceCell<Arc<Engine>>,
    callers: Callers,
    sessions: Sessions,
    /// The MiB that the bodies of calls may take that are carried out.
    calls: Semaphore,
    stop: CancellationToken,
}

/// The engine that calls are relayed to.
pub(crate) struct Engine {
    ports: WorkerPorts,
    spiders: Spiders,
    projects: Projects,
}

impl Engine {
    /// Returns the ports of a worker.
    pub(crate) fn ports(&self) -> &WorkerPorts {
        &self.ports
    }

    /// Returns the project of a piece of work.
    pub(crate) async fn project_of(&self, message: &Message) -> Result<ProjectName> {
        Ok(self.projects.of_work(message).await?.project)
    }

    /// Returns the spider of a crawl on these terms.
    ///
    /// Fails with `Refused` if runners cannot work by it, as when nobody here knows its bounds and its sinks.
    pub(crate) async fn spider_of(&self, crawl: &CrawlRef, terms: &Terms) -> Result<Arc<CrawlSpider>> {
        let spider = self.spiders.of(crawl).await?;
        match terms.file.is_some() && spider.file.is_none() {
            true => Err(Error::new(ErrorKind::Refused, "its file is not here")),
            false => Ok(spider),
        }
    }
}

impl Relay {
    /// Returns the relay over `backend`. Its sessions end when `stop` is cancelled.
    pub(crate) fn new(backend: &Backend, stop: CancellationToken) -> Arc<Self> {
        let (engine, callers, sessions) = Default::default();
        Arc::new(Self {
            runners: Arc::clone(&backend.runners),
            jobs: Arc::clone(&backend.jobs),
            projects: Arc::clone(&backend.projects),
            spider_store: Arc::clone(&backend.spider_store),
            settings: Arc::clone(&backend.settings),
            requests: FileRequests::new(&backend.settings),
            connect: Arc::clone(&backend.for_runners),
            engine,
            callers,
            sessions,
            calls: Semaphore::new(MAX_BODY_BYTES >> 20),
            stop,
        })
    }

    /// Returns the engine, which is connected to at the first call.
    pub(crate) async fn engine(&self) -> Result<Arc<Engine>> {
        let connecting = async || {
            let ports = (self.connect)().await?;
            let projects = Projects::new(Arc::clone(&self.jobs), Arc::clone(&self.projects));
            let spiders = Spiders::new(&self.settings, &ports);
            Ok(Arc::new(Engine { ports, spiders, projects }))
        };
        self.engine.get_or_try_init(connecting).await.cloned()
    }

    /// Returns the session of a runner, if it has one here.
    pub(crate) fn is_working(&self, name: &RunnerName) -> bool {
        self.sessions.of(name).is_some()
    }

    /// Returns the runners.
    pub(crate) fn runners(&self) -> &dyn Runners {
        &*self.runners
    }

    /// Returns the settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what checks the requests of other programs.
    pub(crate) fn requests(&self) -> Arc<dyn Requests> {
        Arc::clone(&self.requests) as _
    }

    /// Waits until the API stops.
    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Answers a runner that asks for access.
    async fn registered(&self, runner: &Runner) -> Result<Registered> {
        let mut projects = self.spider_store.projects().await?;
        projects.extend(self.projects.made().await?.into_iter().map(|project| project.name));
        // It is there without versions, too.
        projects.push(Default::default());
        projects.sort();
        projects.dedup();
        let assigned: Vec<_> = runner.assigned().cloned().collect();
        let shared = (!assigned.is_empty()).then(|| shared(&self.settings));
        Ok(Registered { projects: projects.len(), assigned, shared })
    }
}

/// Returns the settings that a runner takes over. Its network is its own, and so is the proxy.
fn shared(settings: &Settings) -> Shared {
    Shared {
        politeness: settings.politeness.clone(),
        urls: settings.urls.clone(),
        retry: settings.retry.clone(),
        items: settings.items.clone(),
        route: settings.route.clone(),
        fetch: Fetch { proxy: None, ..settings.fetch.clone() },
    }
}

/// Returns the routes of all calls.
pub(crate) fn routes(relay: Arc<Relay>) -> Router {
    let at = |name| format!("{PATH}/{name}");
    let mut router =
        Router::new().route(&at(Register::NAME), post(register)).route(&at(JoinFleet::NAME), post(join));
    macro_rules! serve {
        ($($call:ident)*) => { $(router = router.route(&at(relay::$call::NAME), post(call::<relay::$call>));)* };
    }
    serve! {
        Claim Start StartTask Extend Settle Leave HasSeen Beat Reserve Stay LeaveHosts Late PushBack Robots KeepRobots
        GiveUpRobots Look ReadSession WriteSession Pause Text ReadGrants NoteVersion Put Log
    }
    router.with_state(relay)
}

async fn register(State(relay): State<Arc<Relay>>, request: Request) -> Response {
    let answering = async || {
        let (head, body) = request.into_parts();
        let runner = relay.callers.ask(&*relay.runners, &head).await?;
        let Register { .. } = read(Request::from_parts(head, body), MAX_SMALL_BYTES).await?;
        Ok(done(relay.registered(&runner).await))
    };
    response(answering().await)
}

async fn join(State(relay): State<Arc<Relay>>, request: Request) -> Response {
    let answering = async || {
        let (head, body) = request.into_parts();
        let runner = relay.callers.known(&*relay.runners, &head).await?;
        let call = read(Request::from_parts(head, body), MAX_SMALL_BYTES).await?;
        let joined: JoinedFleet = sessions::join(&relay, runner, call).await?;
        Ok(done(Ok(joined)))
    };
    response(answering().await)
}

/// Serves a call in a session.
async fn call<C: Serve>(State(relay): State<Arc<Relay>>, request: Request) -> Response {
    let answering = async || {
        let (head, body) = request.into_parts();
        let session = relay.callers.in_session(&relay.sessions, &head)?;
        let _permit = session.permit()?;
        let number = head.headers.get(NUMBER).and_then(|number| number.to_str().ok()?.parse().ok());
        let (_memory, call): (_, C) = read_in(&relay, &session, Request::from_parts(head, body)).await?;
        match (call.slot(), number) {
            (Some(slot), Some(number)) => {
                session.replies.once(slot, number, || call.answer(Arc::clone(&session))).await
            }
            _ => call.answer(session).await,
        }
    };
    response(answering().await)
}

/// Reads a call in a session, when those that are being read leave room for its body. As a call it may be twenty times as
/// large, so the largest ones of all runners take turns, until each is carried out and the permit dropped.
async fn read_in<'a, C: Call>(
    relay: &'a Relay,
    session: &Session,
    request: Request,
) -> std::result::Result<(Option<SemaphorePermit<'a>>, C), Problem> {
    let mib = (length(&request, MAX_BODY_BYTES)? >> 20) as u32;
    let _body = session.bodies.acquire_many(mib + 1).await;
    let body = body(request, MAX_BODY_BYTES).await?;
    let memory = match mib {
        0 => None,
        mib => relay.calls.acquire_many(mib).await.ok(),
    };
    Ok((memory, parse(&body)?))
}

/// Reads a call whose body has at most this many bytes.
async fn read<C: Call>(request: Request, most: usize) -> std::result::Result<C, Problem> {
    parse(&body(request, most).await?)
}

fn parse<C: Call>(body: &[u8]) -> std::result::Result<C, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::malformed(format_args!("body: {error}")))
}

/// Reads the body of a call, of at most this many bytes.
async fn body(request: Request, most: usize) -> std::result::Result<Bytes, Problem> {
    let length = length(&request, most)?;
    let body = Limited::new(request.into_body(), length).collect();
    let body = timeout(BODY_TIMEOUT, body)
        .await
        .map_err(|_| Problem::new(Kind::BodyTimeout, "send the whole body at once"))?;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => too_large(),
        false => Problem::malformed(format_args!("body: {error}")),
    })?;
    Ok(body.to_bytes())
}

/// Returns the length that a body has by its header.
fn length(request: &Request, most: usize) -> std::result::Result<usize, Problem> {
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match length {
        Some(length) if length <= most => Ok(length),
        Some(_) => Err(too_large()),
        None => Err(Problem::malformed("send `Content-Length`")),
    }
}

fn too_large() -> Problem {
    Problem::new(
        Kind::TooLarge,
        format_args!("a call has at most {MAX_BODY_BYTES} bytes, and {MAX_SMALL_BYTES} outside of a session"),
    )
}

/// Returns the body of a response to a call that was carried out.
fn done<T: serde::Serialize>(result: Result<T>) -> Bytes {
    serde_json::to_vec(&relay::Reply::from(result)).expect("replies are JSON").into()
}

fn response(answer: std::result::Result<Bytes, Problem>) -> Response {
    match answer {
        Ok(body) => {
            ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}
