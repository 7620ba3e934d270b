//! The live workers, and the messages that wait for them.

use askama::Template;
use serde::Deserialize;
use trawl_common::text::counted;

use crate::answers::{Browsers, Lane, Lanes, Worker, Workers};
use crate::ask::Call;
use crate::failure::Failure;
use crate::form::{Asked, Posted};
use crate::page::{Answer, Confirm, Here, Page, html, to};
use crate::shown::Time;
use crate::visit::Visit;

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

    /// The workers that have browsers.
    fn browsers(&self) -> Vec<(&str, Browsers)> {
        self.workers.iter().filter_map(|worker| Some((worker.worker.as_str(), worker.browsers?))).collect()
    }
}

pub(crate) async fn list(visit: Visit) -> Answer {
    let Workers { workers } = visit.ask(Call::get(&["workers"])).await?;
    let Lanes { lanes } = visit.ask(Call::get(&["lanes"])).await?;
    html(&WorkersPage { page: Page::new("Workers", Here::Workers, &visit).live(true), workers, lanes })
}

/// The worker that is to end.
#[derive(Deserialize)]
pub(crate) struct Named {
    #[serde(default)]
    worker: String,
}

/// The response to a drain.
#[derive(Deserialize)]
struct Draining {}

pub(crate) async fn ask_to_drain(visit: Visit, Asked(Named { worker }): Asked<Named>) -> Answer {
    let Workers { workers } = visit.ask(Call::get(&["workers"])).await?;
    let Some(found) = workers.iter().find(|one| one.worker == worker) else { return Err(Failure::no_page()) };
    let is_last = workers.iter().all(|one| one.draining || one.worker == worker);
    let last = is_last.then(|| "No other worker lives: all crawls wait until another is started.".into());
    html(&Confirm {
        page: Page::new("Drain a worker", Here::Workers, &visit),
        question: format!("Drain the worker {worker}?").into(),
        notes: [
            "It takes no more URLs, finishes what it has begun, gives the rest back, and ends.".into(),
            format!("It holds {} now.", counted(found.in_flight.0, "URL")).into(),
        ]
        .into_iter()
        .chain(last)
        .collect(),
        action: "/workers/drain".to_owned(),
        fields: vec![("worker", worker)],
        verb: "Drain the worker",
        back: "/workers".to_owned(),
    })
}

pub(crate) async fn drain(visit: Visit, Posted(Named { worker }): Posted<Named>) -> Answer {
    let Draining {} = visit.ask(Call::post(&["workers", &worker, "drain"])).await?;
    Ok(to("/workers"))
}
