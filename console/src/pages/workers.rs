//! The workers that live.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use crate::Console;
use crate::answers::{Worker, Workers};
use crate::ask::Call;
use crate::guard::Visitor;
use crate::page::{Answer, Here, Page, html};

#[derive(Template)]
#[template(path = "workers.html")]
struct WorkersPage {
    page: Page,
    workers: Vec<Worker>,
}

pub(crate) async fn list(State(console): State<Arc<Console>>, visitor: Visitor) -> Answer {
    let Workers { workers } = console.ask(&visitor, Call::get(&["workers"])).await?;
    html(&WorkersPage { page: Page::new("Workers", Here::Workers, &visitor).live(true), workers })
}
