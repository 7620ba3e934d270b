//! Jobs: submitted crawls.

use askama::Template;
use serde::Deserialize;

use crate::address::address;
use crate::answers::{Crawl, Crawls, Job};
use crate::ask::Call;
use crate::form::Asked;
use crate::page::{Answer, Here, Page, html};
use crate::visit::Visit;

/// The number of jobs on one page.
const LIMIT: &str = "50";

#[derive(Deserialize)]
pub(crate) struct Listing {
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct JobsPage {
    page: Page,
    jobs: Vec<(Crawl, Job)>,
    is_first: bool,
    next: Option<String>,
}

pub(crate) async fn list(visit: Visit, Asked(Listing { cursor }): Asked<Listing>) -> Answer {
    let call = Call::get(&["crawls"]).with("job", "true").with("limit", LIMIT);
    let Crawls { crawls, next } = visit.ask(call.with_any("cursor", cursor.as_deref())).await?;
    let with_job = |mut crawl: Crawl| crawl.job.take().map(|job| (crawl, job));
    let path = |next: String| address("/jobs", [("cursor", next)]);
    html(&JobsPage {
        page: Page::new("Jobs", Here::Jobs, &visit).live(cursor.is_none()),
        jobs: crawls.into_iter().filter_map(with_job).collect(),
        is_first: cursor.is_none(),
        next: next.map(path),
    })
}
