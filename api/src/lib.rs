//! The HTTP API: what people and programs see of crawls, hosts, workers and dead letters, and what they do to them.
//!
//! [`router`] serves any engine over its ports, and its OpenAPI document is made from the same list of handlers
//! (`document.rs`). A request passes, in this order: the bounds of a connection ([`serve`]), the checks of who calls
//! (`access.rs`), a handler (`routes`). Whatever fails is a problem as RFC 9457 has it (`problem.rs`).

mod access;
mod cursor;
mod document;
mod extract;
mod headers;
mod holders;
mod known;
mod limits;
mod listing;
mod new_requests;
mod new_tasks;
mod places;
mod problem;
mod proxies;
mod routes;
mod scrapyd;
mod serve;
mod spiders;
mod view;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use trawl_common::explain::Explainer;
use trawl_common::ports::{
    Control, Engine, HostControl, Items, Jobs, Logs, Pages, Schedules, SpiderStore, Stats,
};
use trawl_common::schedule::Timetable;
use trawl_common::settings::Settings;
use trawl_common::spider::Spider;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Attempt, NotTried, Ready};

pub use crate::access::{Access, Identity, Unprotected, is_cross_site, names_this_machine};
use crate::places::Places;
pub use crate::problem::Problem;
pub use crate::serve::{Peer, serve};
use crate::watch::Watchers;

/// Fetches a page as a spider says, by the schedules of the fleet, and reads it. It answers within a minute, or a little later.
pub type TryPage =
    Arc<dyn Fn(Spider, Ready, CanonicalUrl) -> BoxFuture<'static, Result<Attempt, NotTried>> + Send + Sync>;

/// What the API is about: an engine's ports, and what else handlers need.
#[derive(Clone)]
pub struct Backend {
    /// Crawls and workers.
    pub stats: Arc<dyn Stats>,
    /// What is done to crawls and dead letters.
    pub control: Arc<dyn Control>,
    /// Crawls that are asked for.
    pub jobs: Arc<dyn Jobs>,
    /// Spiders that were deployed.
    pub spider_store: Arc<dyn SpiderStore>,
    /// What is remembered of schedules.
    pub schedules: Arc<dyn Schedules>,
    /// What is remembered of pages.
    pub pages: Arc<dyn Pages>,
    /// What was extracted, if it is kept where it can be read again: in a fleet.
    pub items: Option<Arc<dyn Items>>,
    /// What went wrong, for people.
    pub logs: Arc<dyn Logs>,
    /// Hosts.
    pub hosts: Arc<dyn HostControl>,
    /// Where URLs are added, and dead letters sent again.
    pub engine: Arc<dyn Engine>,
    /// Where spiders are tried.
    pub try_page: TryPage,
    /// How hosts are named, and URLs routed.
    pub settings: Arc<Settings>,
}

impl Backend {
    /// What says in words where things are. In a state file there are no items to read, and no workers that come and go.
    fn explainer(&self) -> Explainer<'_> {
        let Self { stats, control, hosts, pages, settings, items, .. } = self;
        Explainer {
            stats: &**stats,
            control: &**control,
            hosts: &**hosts,
            pages: &**pages,
            settings,
            is_fleet: items.is_some(),
        }
    }
}

/// What handlers share.
struct Api {
    backend: Backend,
    watchers: Arc<Watchers>,
    metrics: routes::metrics::Latest,
    /// The schedules that were known when somebody asked last.
    timetable: Mutex<Timetable>,
    /// For those who read items.
    readers: Arc<Places>,
    /// For those who follow the log.
    followers: Arc<Places>,
    /// For those who have all dead letters, or much of the log, looked through.
    searchers: Arc<Places>,
    /// For those who have a spider's text examined.
    examiners: Arc<Places>,
}

/// The API's routes over `backend`, for those whom `access` lets in. What waits for a crawl ends when `stop` does.
pub fn router(backend: Backend, access: Arc<Access>, stop: CancellationToken) -> Router {
    let watchers = Watchers::new(backend.clone(), stop);
    let readers = Places::new(8, 2, "readings of items");
    let followers = Places::new(32, 8, "readings of the log");
    let searchers = Places::new(8, 2, "searches");
    // What is examined is written by strangers, and keeps a core busy.
    let examiners = Places::new(2, 1, "examinations of spiders");
    let (metrics, timetable) = Default::default();
    let api =
        Arc::new(Api { backend, watchers, metrics, timetable, readers, followers, searchers, examiners });
    let guarded = document::routes()
        .merge(scrapyd::routes())
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(from_fn_with_state(access, access::guard));
    guarded.layer(from_fn(limits::in_time)).layer(map_response(headers::add)).with_state(api)
}
