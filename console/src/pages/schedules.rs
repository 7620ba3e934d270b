//! Cron schedules: listing, running, pausing and resuming them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use serde::Deserialize;

use super::Nothing;
use crate::Console;
use crate::address::address;
use crate::answers::{Crawl, Scheduled, Schedules};
use crate::ask::Call;
use crate::form::{Asked, Posted, Segments};
use crate::page::{Answer, Here, Page, html, to};
use crate::visitor::Visitor;

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

pub(crate) async fn list(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Asked(Listing { cursor }): Asked<Listing>,
) -> Answer {
    let call = Call::get(&["schedules"]).with("limit", LIMIT).with_any("cursor", cursor.as_deref());
    let Schedules { schedules, next } = console.ask(&visitor, call).await?;
    let path = |next: String| address("/schedules", [("cursor", next)]);
    html(&SchedulesPage {
        page: Page::new("Schedules", Here::Schedules, &visitor).live(true),
        schedules,
        is_first: cursor.is_none(),
        next: next.map(path),
    })
}

pub(crate) async fn run(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Segments((project, spider)): Segments<(String, String)>,
    Posted(Nothing {}): Posted<Nothing>,
) -> Answer {
    let call = Call::post(&["schedules", &project, &spider, "run"]);
    let Crawl { crawl, .. } = console.ask(&visitor, call).await?;
    Ok(to(&format!("/crawls/{crawl}")))
}

pub(crate) async fn pause(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Segments(name): Segments<(String, String)>,
    Posted(Nothing {}): Posted<Nothing>,
) -> Answer {
    change(&console, &visitor, &name, "pause").await
}

pub(crate) async fn resume(
    State(console): State<Arc<Console>>,
    visitor: Visitor,
    Segments(name): Segments<(String, String)>,
    Posted(Nothing {}): Posted<Nothing>,
) -> Answer {
    change(&console, &visitor, &name, "resume").await
}

async fn change(
    console: &Console,
    visitor: &Visitor,
    (project, spider): &(String, String),
    verb: &str,
) -> Answer {
    let call = Call::post(&["schedules", project, spider, verb]);
    let Holding {} = console.ask(visitor, call).await?;
    Ok(to("/schedules"))
}
