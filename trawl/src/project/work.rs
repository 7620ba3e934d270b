//! `trawl project pause`, `resume` and `reset`: commands for all work of a project's spiders.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use trawl_cli::{Fail, print_json};
use trawl_common::project::Project;
use trawl_common::project_work::{self, Reset};
use trawl_common::text::counted;

use crate::backend::Backend;

/// The time after which a reset begins anew with the crawls that have failures left.
const RESET_STEP: Duration = Duration::from_secs(60);

pub(super) async fn pause(backend: &Backend, project: &Project, json: bool) -> Result<(), Fail> {
    let paused = project_work::pause(project, &*backend.stats, &*backend.control).await?;
    say(backend, "paused", paused, "crawl", json);
    Ok(())
}

pub(super) async fn resume(backend: &Backend, project: &Project, json: bool) -> Result<(), Fail> {
    let resumed = project_work::resume(project, &*backend.stats, &*backend.control).await?;
    say(backend, "resumed", resumed, "crawl", json);
    Ok(())
}

pub(super) async fn reset(backend: &Backend, project: &Project, json: bool) -> Result<(), Fail> {
    let (stats, control, engine) = (&*backend.stats, &*backend.control, backend.engine().await?);
    let mut all = Reset::default();
    while !all.is_complete {
        let until = Instant::now() + RESET_STEP;
        let Reset { sent, is_complete } =
            project_work::reset(project, stats, control, &*engine, until).await?;
        all = Reset { sent: all.sent + sent, is_complete };
    }
    say(backend, "sent", all.sent, "dead letter", json);
    Ok(())
}

/// Says how many things a command was for.
fn say(backend: &Backend, done: &str, number: u64, thing: &str, json: bool) {
    match json {
        true => print_json(&json!({ done: number })),
        false => backend.say(format_args!("{done}: {}", counted(number, thing))),
    }
}
