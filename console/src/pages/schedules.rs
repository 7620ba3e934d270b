//! Cron schedules: listing, running, pausing and resuming them.

use std::sync::Arc;

use askama::Template;
use axum::routing::{MethodRouter, post};
use serde::Deserialize;

use super::Nothing;
use crate::Console;
use crate::address::address;
use crate::answers::{Crawl, Scheduled, Schedules};
use crate::ask::Call;
use crate::form::{Asked, Posted, Segments};
use crate::page::{Answer, Here, Page, html, to};
use crate::visit::Visit;

/// The number of schedules on one page.
const LIMIT: &str = "100";

#[derive(Deserialize)]
pub(crate) struct Listing {
    cursor: Option<String>,
}

/// The response to a change of a schedule.
#[derive(Deserialize)]
struct Holding {}

#[derive(Template)]
#[template(path = "schedules.html")]
struct SchedulesPage {
    page: Page,
    schedules: Vec<Scheduled>,
    is_first: bool,
    next: Option<String>,
}

pub(crate) async fn list(visit: Visit, Asked(Listing { cursor }): Asked<Listing>) -> Answer {
    let call = Call::get(&["schedules"]).with("limit", LIMIT).with_any("cursor", cursor.as_deref());
    let Schedules { schedules, next } = visit.ask(call).await?;
    let path = |next: String| address("/schedules", [("cursor", next)]);
    html(&SchedulesPage {
        page: Page::new("Schedules", Here::Schedules, &visit).live(true),
        schedules,
        is_first: cursor.is_none(),
        next: next.map(path),
    })
}

pub(crate) async fn run(
    visit: Visit,
    Segments((project, spider)): Segments<(String, String)>,
    Posted(Nothing {}): Posted<Nothing>,
) -> Answer {
    let call = Call::post(&["schedules", &project, &spider, "run"]);
    let Crawl { crawl, .. } = visit.ask(call).await?;
    Ok(to(&format!("/crawls/{crawl}")))
}

/// Returns the handler of a form that pauses or resumes a schedule, as the API's `verb` does.
pub(crate) fn change(verb: &'static str) -> MethodRouter<Arc<Console>> {
    type Name = Segments<(String, String)>;
    post(async move |visit: Visit, Segments((project, spider)): Name, Posted(Nothing {})| -> Answer {
        let Holding {} = visit.ask(Call::post(&["schedules", &project, &spider, verb])).await?;
        Ok(to("/schedules"))
    })
}
