//! The pages, by subject.

mod arguments;
mod change_tasks;
mod crawl;
mod crawls;
mod dead_letters;
mod deploy;
mod ended_tasks;
mod filled;
mod hosts;
mod items;
mod jobs;
mod lines;
mod logs;
mod new_crawl;
mod new_tasks;
mod overview;
mod project;
mod runners;
mod schedules;
mod selection;
mod source;
mod spider;
mod spiders;
mod task;
mod tasks;
mod trouble;
mod url;
mod workers;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::routing::{get, post};
use serde::Deserialize;

use crate::failure::Failure;
use crate::{Console, form, guard};

/// A form without fields.
#[derive(Deserialize)]
struct Nothing {}

pub(crate) fn routes() -> Router<Arc<Console>> {
    let all = looking().merge(changing().route_layer(from_fn(guard::operators)));
    all.method_not_allowed_fallback(no_such_method).layer(form::limit())
}

async fn no_such_method() -> Failure {
    let detail = "this address is not asked in that way: begin with the overview";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "This cannot be understood", detail)
}

/// The routes for all visitors.
fn looking() -> Router<Arc<Console>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/crawls", get(crawls::list))
        .route("/crawls/{id}", get(crawl::show))
        .route("/crawls/{id}/items", get(items::list))
        .route("/crawls/{id}/url", get(url::show))
        .route("/jobs", get(jobs::list))
        .route("/spiders", get(spiders::list))
        .route("/spiders/{project}/{spider}", get(spider::show))
        .route("/projects/{project}", get(project::show))
        .route("/schedules", get(schedules::list))
        .route("/tasks", get(tasks::list))
        .route("/tasks/ended", get(ended_tasks::list))
        .route("/tasks/{task}", get(task::show))
        .route("/logs", get(logs::list))
        .route("/dead-letters", get(dead_letters::list))
        .route("/dead-letters/one", get(dead_letters::show))
        .route("/hosts", get(hosts::list))
        .route("/workers", get(workers::list))
        .route("/runners", get(runners::list))
}

/// The routes for operators: the changes, and the forms and questions before them.
fn changing() -> Router<Arc<Console>> {
    Router::new()
        .route("/crawls/new", get(new_crawl::ask).post(new_crawl::start))
        .route("/crawls/{id}/pause", crawl::change("pause"))
        .route("/crawls/{id}/resume", crawl::change("resume"))
        .route("/crawls/{id}/cancel", crawl::change("cancel").get(crawl::ask_to_cancel))
        .route("/spiders/deploy", get(deploy::ask).post(deploy::deploy))
        .route("/spiders/{project}/{spider}/try", post(spider::attempt))
        .route("/projects/{project}/remove", get(project::ask_to_remove).post(project::remove))
        .route("/projects/{project}/pause", project::command("pause"))
        .route("/projects/{project}/resume", project::command("resume"))
        .route("/projects/{project}/reset", project::command("reset"))
        .route("/schedules/{project}/{spider}/run", post(schedules::run))
        .route("/schedules/{project}/{spider}/pause", schedules::change("pause"))
        .route("/schedules/{project}/{spider}/resume", schedules::change("resume"))
        .route(
            "/dead-letters/replay",
            dead_letters::change("Replay", "sent again").get(dead_letters::ask_to_replay),
        )
        .route(
            "/dead-letters/purge",
            dead_letters::change("Purge", "taken out for good").get(dead_letters::ask_to_purge),
        )
        .route("/tasks/new", get(new_tasks::ask).post(new_tasks::submit))
        .route("/tasks/cancel", get(change_tasks::ask_to_cancel).post(change_tasks::cancel))
        .route("/tasks/{task}/retry", post(change_tasks::retry))
        .route("/hosts/block", hosts::change("block").get(hosts::ask_to_block))
        .route("/hosts/unblock", hosts::change("unblock"))
        .route("/runners/approve", post(runners::approve))
        .route("/runners/revoke", post(runners::revoke))
        .route("/runners/forget", get(runners::ask_to_forget).post(runners::forget))
        .route("/workers/drain", get(workers::ask_to_drain).post(workers::drain))
}
