//! Scrapyd's JSON API (<https://scrapyd.readthedocs.io/en/stable/api.html>), at the root, so that its clients work
//! unchanged. A Scrapyd project is a project here, a version of it is a bundle of spider files instead of an egg, and a
//! job is a job.
//!
//! Errors are reported as by Scrapyd: `{"status": "error", "message": ...}`, with status 200 where the request is at
//! fault.

mod form;
mod jobs;
mod pages;
mod versions;

use std::fmt::Display;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use serde_json::{Value, json};
use trawl_common::ports::Error;

use crate::Api;
use crate::problem::Problem;

/// Returns the routes of all endpoints.
pub(crate) fn routes() -> Router<Arc<Api>> {
    let endpoints = [
        ("daemonstatus", get(jobs::daemon_status)),
        ("schedule", post(jobs::schedule)),
        ("cancel", post(jobs::cancel)),
        ("status", get(jobs::status)),
        ("listjobs", get(jobs::list_jobs)),
        ("addversion", post(versions::add_version)),
        ("listprojects", get(versions::list_projects)),
        ("listversions", get(versions::list_versions)),
        ("listspiders", get(versions::list_spiders)),
        ("delversion", post(versions::delete_version)),
        ("delproject", post(versions::delete_project)),
    ];
    let pages = Router::new().route("/", get(pages::first)).route("/jobs", get(pages::jobs));
    endpoints.into_iter().fold(pages, |router, (name, endpoint)| {
        // scrapyd-client adds a slash to a server's URL that ends in one already, as that of Scrapy's template does.
        let twice = format!("//{name}.json");
        router.route(&twice[1..], endpoint.clone()).route(&twice, endpoint)
    })
}

/// The result of an endpoint.
type Answer = Result<Done, Refusal>;

/// The members of a response other than those common to all.
struct Done(Value);

impl Done {
    fn with(members: impl Serialize) -> Answer {
        let members = serde_json::to_value(members);
        members.map(Self).map_err(|error| Refusal::new(format_args!("the answer cannot be written: {error}")))
    }
}

impl IntoResponse for Done {
    fn into_response(self) -> Response {
        let Self(members) = self;
        let mut answer = json!({ "node_name": &*NODE, "status": "ok" });
        if let (Value::Object(answer), Value::Object(members)) = (&mut answer, members) {
            answer.extend(members);
        }
        axum::Json(answer).into_response()
    }
}

/// The reason why a request failed.
struct Refusal {
    status: StatusCode,
    message: String,
    /// The number of seconds after which a retry makes sense, if known.
    retry_after: Option<u64>,
}

impl Refusal {
    /// Returns the refusal of an invalid request.
    fn new(message: impl Display) -> Self {
        Self { status: StatusCode::OK, message: message.to_string(), retry_after: None }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let retry_after = problem.seconds_to_wait();
        Self { status: problem.status(), message: problem.detail().to_owned(), retry_after }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self { status, message, retry_after } = self;
        let after = retry_after.map(|seconds| [(RETRY_AFTER, seconds.to_string())]);
        (status, after, axum::Json(json!({ "node_name": &*NODE, "status": "error", "message": message })))
            .into_response()
    }
}

/// The name of this machine.
static NODE: LazyLock<String> = LazyLock::new(|| {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
});
