//! The HTTP API: access to crawls, hosts, workers and dead letters for people and programs.
//!
//! [`router`] serves any engine over its ports, and its OpenAPI document is made from the same list of
//! handlers (`document.rs`). A request passes, in this order: the limits of a connection ([`serve`]),
//! authentication and authorisation (`access.rs`), a handler (`routes`). Every failure is a problem as in RFC
//! 9457 (`problem.rs`).

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
use trawl_common::settings::Settings;
use trawl_common::spider::Spider;
use trawl_common::timetable::Timetable;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Attempt, NotTried, Ready};

pub use crate::access::{Access, Identity, Unprotected, is_cross_site, names_this_machine};
use crate::places::Places;
pub use crate::problem::Problem;
pub use crate::serve::{Peer, serve};
use crate::watch::Watchers;

/// Fetches a page by a spider's rules and the schedules of the fleet, and reads it. It answers within a
/// minute, or a little later.
pub type TryPage =
    Arc<dyn Fn(Spider, Ready, CanonicalUrl) -> BoxFuture<'static, Result<Attempt, NotTried>> + Send + Sync>;

/// The engine's ports, and other parts that handlers need.
#[derive(Clone)]
pub struct Backend {
    /// Crawls and workers.
    pub stats: Arc<dyn Stats>,
    /// Changes of crawls and dead letters.
    pub control: Arc<dyn Control>,
    /// Submitted crawls.
    pub jobs: Arc<dyn Jobs>,
    /// Deployed spiders.
    pub spider_store: Arc<dyn SpiderStore>,
    /// The state of cron schedules.
    pub schedules: Arc<dyn Schedules>,
    /// The page history.
    pub pages: Arc<dyn Pages>,
    /// The extracted items; `None` if they cannot be read again, as outside a fleet.
    pub items: Option<Arc<dyn Items>>,
    /// The fleet's log.
    pub logs: Arc<dyn Logs>,
    /// Hosts.
    pub hosts: Arc<dyn HostControl>,
    /// Admits URLs and replays dead letters.
    pub engine: Arc<dyn Engine>,
    /// Tries spiders on pages.
    pub try_page: TryPage,
    /// The settings, which name hosts and route URLs.
    pub settings: Arc<Settings>,
}

impl Backend {
    /// Returns an explainer of the states of URLs. A state file has no items to read, and no workers that
    /// come and go.
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

/// The shared state of the handlers.
struct Api {
    backend: Backend,
    watchers: Arc<Watchers>,
    metrics: routes::metrics::Latest,
    /// The schedules known at the last request.
    timetable: Mutex<Timetable>,
    /// Places for readers of items.
    readers: Arc<Places>,
    /// Places for followers of the log.
    followers: Arc<Places>,
    /// Places for searches through all dead letters, or much of the log.
    searchers: Arc<Places>,
    /// Places for the examination of spiders' texts.
    examiners: Arc<Places>,
}

/// Returns the API's routes over `backend`, for the callers that `access` admits. Requests that wait for a
/// crawl end when `stop` is cancelled.
pub fn router(backend: Backend, access: Arc<Access>, stop: CancellationToken) -> Router {
    let watchers = Watchers::new(backend.clone(), stop);
    let readers = Places::new(8, 2, "readings of items");
    let followers = Places::new(32, 8, "readings of the log");
    let searchers = Places::new(8, 2, "searches");
    // The examined texts are written by strangers, and keep a core busy.
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
