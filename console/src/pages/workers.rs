//! The live workers, and the messages that wait for them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;

use crate::Console;
use crate::answers::{Lane, Lanes, Worker, Workers};
use crate::ask::Call;
use crate::page::{Answer, Here, Page, html};
use crate::shown::Time;
use crate::visitor::Visitor;

#[derive(Template)]
#[template(path = "workers.html")]
struct WorkersPage {
    page: Page,
    workers: Vec<Worker>,
    lanes: Vec<Lane>,
}

impl WorkersPage {
    /// The running tasks with their worker and start, the longest-running first.
    fn running(&self) -> Vec<(&str, &str, &Time)> {
        let mut running = Vec::new();
        for Worker { worker, running: tasks, .. } in &self.workers {
            running.extend(tasks.iter().map(|(task, since)| (task.as_str(), worker.as_str(), since)));
        }
        running.sort_by(|one, other| one.2.0.cmp(&other.2.0));
        running
    }
}

pub(crate) async fn list(State(console): State<Arc<Console>>, visitor: Visitor) -> Answer {
    let Workers { workers } = console.ask(&visitor, Call::get(&["workers"])).await?;
    let Lanes { lanes } = console.ask(&visitor, Call::get(&["lanes"])).await?;
    html(&WorkersPage { page: Page::new("Workers", Here::Workers, &visitor).live(true), workers, lanes })
}
