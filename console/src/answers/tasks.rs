//! Tasks that have not ended, or have failed.

use serde::Deserialize;
use trawl_common::task_report::TaskPlace;
use trawl_common::text::printable;

use crate::address::{self, address};
use crate::shown::{Bytes, Number, Seconds, Text, Time};

/// Maximum length of a recipe in a list, in bytes; the API is asked for slightly more.
pub(crate) const MAX_LISTED_RECIPE: usize = 200;

/// A page of tasks.
#[derive(Deserialize)]
pub(crate) struct Tasks {
    pub(crate) tasks: Vec<Task>,
    pub(crate) next: Option<String>,
}

/// A task that has not ended, or has failed.
#[derive(Deserialize)]
pub(crate) struct Task {
    pub(crate) task: String,
    pub(crate) crawl: String,
    pub(crate) spider: String,
    pub(crate) place: TaskPlace,
    pub(crate) since: Option<Time>,
    pub(crate) until: Option<Time>,
    pub(crate) worker: Option<Text>,
    pub(crate) attempts: Number,
    pub(crate) error: Option<Text>,
    pub(crate) referrer: Option<String>,
    /// The recipe as it was written: only [`Task::line`] and the page of the task may show it.
    pub(crate) recipe: Option<String>,
    pub(crate) recipe_bytes: Bytes,
    pub(crate) unique: Option<Text>,
    pub(crate) priority: f64,
    pub(crate) retries: Option<Number>,
}

/// The result of a cancellation.
#[derive(Deserialize)]
pub(crate) struct CancelledTasks {
    pub(crate) cancelled: u64,
    pub(crate) next: Option<String>,
}

/// The result of a submission.
#[derive(Deserialize)]
pub(crate) struct SubmittedTasks {
    pub(crate) crawl: String,
}

/// A page of ended tasks.
#[derive(Deserialize)]
pub(crate) struct EndedTasks {
    pub(crate) tasks: Vec<EndedTask>,
    pub(crate) next: Option<String>,
}

/// A task that has ended.
#[derive(Deserialize)]
pub(crate) struct EndedTask {
    pub(crate) task: String,
    pub(crate) crawl: String,
    pub(crate) spider: String,
    pub(crate) outcome: Text,
    pub(crate) ended: Time,
    pub(crate) seconds: Option<Seconds>,
    pub(crate) worker: Text,
    pub(crate) attempts: Number,
    pub(crate) items: Number,
    pub(crate) error: Option<Text>,
    pub(crate) class: Option<Text>,
    recipe: String,
    recipe_bytes: Bytes,
}

impl EndedTask {
    /// The start of its recipe, on one line.
    pub(crate) fn line(&self) -> String {
        line(&self.recipe, self.recipe_bytes)
    }

    /// The address of its page.
    pub(crate) fn path(&self) -> String {
        address::task(&self.task, Some(&self.crawl))
    }
}

/// Returns the start of a recipe of this length on one line.
fn line(recipe: &str, bytes: Bytes) -> String {
    let line = printable(recipe, MAX_LISTED_RECIPE);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_cut = bytes.0 > recipe.len() as u64 || recipe.len() > MAX_LISTED_RECIPE;
    match (line.as_str(), is_cut) {
        ("", false) => "nothing that is seen".to_owned(),
        (line, true) => format!("{line}…"),
        (line, false) => line.to_owned(),
    }
}

impl Task {
    /// The start of its recipe, on one line.
    pub(crate) fn line(&self) -> String {
        match &self.recipe {
            Some(recipe) => line(recipe, self.recipe_bytes),
            None => "its recipe is lost".to_owned(),
        }
    }

    /// The address of its page.
    pub(crate) fn path(&self) -> String {
        address::task(&self.task, Some(&self.crawl))
    }

    /// The address of the page that asks before it is cancelled.
    pub(crate) fn cancel(&self) -> String {
        address("/tasks/cancel", [("task", &self.task), ("crawl", &self.crawl)])
    }

    /// The address to which the form for a retry is sent.
    pub(crate) fn retry(&self) -> String {
        address(&format!("/tasks/{}/retry", self.task), [("crawl", &self.crawl)])
    }

    /// The address of its dead letter.
    pub(crate) fn dead_letter(&self) -> String {
        address("/dead-letters/one", [("crawl", &self.crawl), ("url", &self.task)])
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.place == TaskPlace::Failed
    }

    /// The word before the time of its last change of state.
    pub(crate) fn since_word(&self) -> &'static str {
        if self.has_failed() { "at" } else { "since" }
    }
}
