//! Programs for tests.

use std::path::Path;
use std::time::Duration;

use trawl_common::names::ProjectName;
use trawl_common::spider::{Handler, Mode};
use trawl_common::task::TaskView;
use trawl_common::web::url::Fingerprint;
use trawl_handlers::{Ended, Program, Supervisor};

/// A program that is run in `folder` with a time limit of half a minute.
pub(crate) fn program(folder: &Path, mode: Mode, run: &[&str]) -> Program {
    let run = run.iter().map(ToString::to_string).collect();
    Program {
        project: ProjectName::default(),
        spider: "payments".parse().unwrap(),
        handler: Handler { timeout: Duration::from_secs(30), ..Handler::new(run, mode) },
        folder: folder.to_owned(),
        supervisor: Supervisor::at(env!("CARGO_BIN_EXE_trawl-handler-exec")),
        proxy: None,
        shows_stderr: false,
    }
}

pub(crate) fn task(recipe: &str) -> TaskView {
    TaskView {
        id: Fingerprint::from_text(recipe),
        project: ProjectName::default(),
        spider: "payments".parse().unwrap(),
        crawl: "adhoc.payments".parse().unwrap(),
        recipe: recipe.parse().unwrap(),
        attempt: 1,
        max_retries: 3,
        priority: Default::default(),
    }
}

/// Returns the failure and the whole log.
#[track_caller]
pub(crate) fn failure(ended: Ended) -> (String, String) {
    match ended {
        Ended::Failed { failure, logs } => {
            let logs: Vec<_> = logs.into_iter().map(|entry| entry.message).collect();
            (failure.to_string(), logs.join("\n"))
        }
        other => panic!("{other:?}"),
    }
}
