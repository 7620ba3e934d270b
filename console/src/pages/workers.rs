//! The workers that live, and what waits for them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use crate::Console;
use crate::answers::{Lane, Lanes, Worker, Workers};
use crate::ask::Call;
use crate::guard::Visitor;
use crate::page::{Answer, Here, Page, html};

#[derive(Template)]
#[template(path = "workers.html")]
struct WorkersPage {
    page: Page,
    workers: Vec<Worker>,
    lanes: Vec<Lane>,
}

pub(crate) async fn list(State(console): State<Arc<Console>>, visitor: Visitor) -> Answer {
    let Workers { workers } = console.ask(&visitor, Call::get(&["workers"])).await?;
    let Lanes { lanes } = console.ask(&visitor, Call::get(&["lanes"])).await?;
    html(&WorkersPage { page: Page::new("Workers", Here::Workers, &visitor).live(true), workers, lanes })
}
