//! The pages, by what they are about.

mod crawl;
mod crawls;
mod dead_letters;
mod hosts;
mod items;
mod jobs;
mod logs;
mod new_crawl;
mod overview;
mod selection;
mod url;
mod workers;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::{Console, form};

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/crawls", get(crawls::list))
        .route("/crawls/new", get(new_crawl::ask).post(new_crawl::start))
        .route("/crawls/{id}", get(crawl::show))
        .route("/crawls/{id}/pause", post(crawl::pause))
        .route("/crawls/{id}/resume", post(crawl::resume))
        .route("/crawls/{id}/cancel", get(crawl::ask_to_cancel).post(crawl::cancel))
        .route("/crawls/{id}/items", get(items::list))
        .route("/crawls/{id}/url", get(url::show))
        .route("/jobs", get(jobs::list))
        .route("/logs", get(logs::list))
        .route("/dead-letters", get(dead_letters::list))
        .route("/dead-letters/one", get(dead_letters::show))
        .route("/dead-letters/replay", get(dead_letters::ask_to_replay).post(dead_letters::replay))
        .route("/dead-letters/purge", get(dead_letters::ask_to_purge).post(dead_letters::purge))
        .route("/hosts", get(hosts::list))
        .route("/hosts/block", get(hosts::ask_to_block).post(hosts::block))
        .route("/hosts/unblock", post(hosts::unblock))
        .route("/workers", get(workers::list))
        .layer(form::limit())
}
