//! The routes and the OpenAPI document, made from one list.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, on};
use utoipa::openapi::path::{HttpMethod, Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    Components, Content, ContentBuilder, OpenApi as Document, Ref, RefOr, ResponseBuilder,
};
use utoipa::{Modify, OpenApi};

use crate::Api;
use crate::problem::Body as ProblemBody;
use crate::routes::{
    crawls, dead_letters, ended_tasks, events, hosts, items, lanes, logs, made_projects, meta, metrics,
    new_crawl, project_work, projects, runners, schedules, spiders, tasks, trial, url, urls, workers,
};

/// Lists handlers. Each is served at the path and with the method of its own `utoipa::path`.
macro_rules! handlers {
    ($($module:ident :: $handler:ident),* $(,)?) => {
        #[derive(OpenApi)]
        #[openapi(
            info(
                title = "trawl",
                description = "Crawls, spiders, schedules, hosts, workers, dead letters and the log of a trawl fleet, or of one process.",
                license(name = "MIT OR Apache-2.0")
            ),
            paths($($module::$handler),*),
            components(schemas(ProblemBody)),
            modifiers(&Common),
        )]
        struct Listed;

        /// Returns a router with every handler.
        pub(crate) fn routes() -> Router<Arc<Api>> {
            let document = document();
            let mut router = Router::new();
            $(router = at_its_place(router, &document, stringify!($handler), $module::$handler);)*
            router
        }
    };
}

handlers![
    meta::healthz,
    itself::openapi,
    metrics::show_metrics,
    crawls::list_crawls,
    new_crawl::start_crawl,
    crawls::get_crawl,
    crawls::pause_crawl,
    crawls::resume_crawl,
    crawls::cancel_crawl,
    crawls::list_crawl_hosts,
    items::list_items,
    urls::add_urls,
    url::get_url,
    tasks::submit_tasks,
    tasks::list_tasks,
    ended_tasks::list_ended_tasks,
    tasks::get_task,
    tasks::cancel_tasks,
    events::follow_crawl,
    hosts::list_hosts,
    hosts::get_host,
    hosts::block_host,
    hosts::unblock_host,
    workers::list_workers,
    workers::drain_worker,
    runners::list_runners,
    runners::allow_runner,
    runners::revoke_runner,
    runners::forget_runner,
    lanes::list_lanes,
    spiders::list_spiders,
    spiders::check_spider,
    trial::try_spider,
    spiders::get_spider,
    spiders::get_spider_check,
    made_projects::list_projects,
    made_projects::create_project,
    made_projects::get_project,
    made_projects::change_project,
    made_projects::pull_project,
    project_work::pause_project,
    project_work::resume_project,
    project_work::reset_project,
    made_projects::forget_project,
    made_projects::set_secret,
    made_projects::remove_secret,
    projects::list_versions,
    projects::add_version,
    projects::remove_version,
    projects::remove_project,
    schedules::list_schedules,
    schedules::run_schedule,
    schedules::pause_schedule,
    schedules::resume_schedule,
    logs::list_logs,
    dead_letters::list_dead_letters,
    dead_letters::count_dead_letters,
    dead_letters::replay_dead_letters,
    dead_letters::purge_dead_letters,
];

/// The route to the document.
mod itself {
    use axum::Json;
    use utoipa::openapi::OpenApi;

    /// This document
    #[utoipa::path(
        get, path = "/api/v1/openapi.json", tag = "meta",
        responses((status = 200, body = serde_json::Value))
    )]
    pub(crate) async fn openapi() -> Json<OpenApi> {
        Json(super::document())
    }
}

/// Returns the document of the whole API.
pub(crate) fn document() -> Document {
    Listed::openapi()
}

/// Adds a handler to the router, at the path of the document's operation with this id, which is the handler's
/// name.
fn at_its_place<H: Handler<T, Arc<Api>>, T: 'static>(
    router: Router<Arc<Api>>,
    document: &Document,
    id: &str,
    handler: H,
) -> Router<Arc<Api>> {
    let is_it = |operation: &Operation| operation.operation_id.as_deref() == Some(id);
    let place = document.paths.paths.iter().find_map(|(path, item)| {
        let (method, _) = operations(item).into_iter().find(|(_, operation)| is_it(operation))?;
        Some((path, method))
    });
    match place {
        Some((path, HttpMethod::Post)) => router.route(path, on(MethodFilter::POST, handler)),
        Some((path, HttpMethod::Delete)) => router.route(path, on(MethodFilter::DELETE, handler)),
        Some((path, _)) => router.route(path, on(MethodFilter::GET, handler)),
        None => router,
    }
}

fn operations(item: &PathItem) -> Vec<(HttpMethod, &Operation)> {
    let all =
        [(HttpMethod::Get, &item.get), (HttpMethod::Post, &item.post), (HttpMethod::Delete, &item.delete)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?))).collect()
}

/// The common parts of every operation: the required roles, and the problems that any of them can meet.
struct Common;

/// The statuses of these problems.
const ANY: [(&str, &str); 9] = [
    ("400", "A parameter or the body is not as this document says"),
    ("401", "No token, or one that nobody has"),
    ("403", "The caller may not do this"),
    ("421", "Without tokens: the request is not for localhost"),
    ("429", "The caller asks too often"),
    ("500", "What is stored cannot be understood"),
    ("502", "A server behind the API refuses"),
    ("503", "A server behind the API is away or full: try again later"),
    ("504", "It took too long"),
];

/// The problems that a body can cause.
const BODY: [(&str, &str); 2] = [("408", "The body did not come in time"), ("413", "The body is too large")];

/// The problem that a JSON body can cause.
const JSON: (&str, &str) = ("415", "The body is not said to be JSON");

impl Modify for Common {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_with(Components::new);
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
        for (status, description) in ANY.iter().chain(&BODY).chain([&JSON]) {
            let response =
                ResponseBuilder::new().description(*description).content(PROBLEM, problem()).build();
            components.responses.insert(name(status), response.into());
        }
        for item in document.paths.paths.values_mut() {
            [&mut item.get, &mut item.post, &mut item.delete].into_iter().flatten().for_each(tell_problems);
        }
    }
}

/// Adds these problems to an operation. All problems are sent in the same form.
fn tell_problems(operation: &mut Operation) {
    let body = operation.request_body.as_ref();
    let of_body = BODY.iter().filter(|_| body.is_some());
    let of_json = body.filter(|body| body.content.contains_key("application/json")).map(|_| &JSON);
    let known = &mut operation.responses.responses;
    for (status, _) in ANY.iter().chain(of_body).chain(of_json) {
        known.entry((*status).to_owned()).or_insert_with(|| Ref::from_response_name(name(status)).into());
    }
    for (status, response) in known {
        if let RefOr::T(response) = response
            && status.starts_with(['4', '5'])
        {
            response.content.insert(PROBLEM.to_owned(), problem());
        }
    }
}

/// The type of the body of a problem (RFC 9457).
const PROBLEM: &str = "application/problem+json";

/// Returns the form of a problem.
fn problem() -> Content {
    ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build()
}

/// Returns the name in the document of the response with this status that operations share.
fn name(status: &str) -> String {
    format!("Problem{status}")
}
