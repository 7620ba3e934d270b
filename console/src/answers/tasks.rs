//! Tasks that are not done.

use serde::Deserialize;
use trawl_common::task::report::TaskPlace;
use trawl_common::text::printable;

use crate::address::{self, address};
use crate::shown::{Bytes, Number, Text, Time};

/// So much of a recipe is in a list, in bytes; the API is asked for as much and a little more.
pub(crate) const IN_LIST: usize = 200;

/// A page of tasks.
#[derive(Deserialize)]
pub(crate) struct Tasks {
    pub(crate) tasks: Vec<Task>,
    pub(crate) next: Option<String>,
}

/// A task that is not done.
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
    /// As it was written: only [`Task::line`] and the page of the task may show it.
    pub(crate) recipe: Option<String>,
    pub(crate) recipe_bytes: Bytes,
    pub(crate) unique: Option<Text>,
    pub(crate) priority: f64,
    pub(crate) retries: Option<Number>,
}

/// What was cancelled.
#[derive(Deserialize)]
pub(crate) struct CancelledTasks {
    pub(crate) cancelled: u64,
    pub(crate) next: Option<String>,
}

/// What was submitted.
#[derive(Deserialize)]
pub(crate) struct SubmittedTasks {
    pub(crate) crawl: String,
}

impl Task {
    /// The start of its recipe, on one line.
    pub(crate) fn line(&self) -> String {
        let Some(recipe) = &self.recipe else { return "its recipe is lost".to_owned() };
        let line = printable(recipe, IN_LIST);
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_cut = self.recipe_bytes.0 > recipe.len() as u64 || recipe.len() > IN_LIST;
        match (line.as_str(), is_cut) {
            ("", false) => "nothing that is seen".to_owned(),
            (line, true) => format!("{line}…"),
            (line, false) => line.to_owned(),
        }
    }

    /// Its page.
    pub(crate) fn path(&self) -> String {
        address::task(&self.task, Some(&self.crawl))
    }

    /// The page that asks before it is cancelled.
    pub(crate) fn cancel(&self) -> String {
        address("/tasks/cancel", [("task", &self.task), ("crawl", &self.crawl)])
    }

    /// Where a form goes that has it tried again.
    pub(crate) fn retry(&self) -> String {
        address(&format!("/tasks/{}/retry", self.task), [("crawl", &self.crawl)])
    }

    /// Its dead letter.
    pub(crate) fn dead_letter(&self) -> String {
        address("/dead-letters/one", [("crawl", &self.crawl), ("url", &self.task)])
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.place == TaskPlace::Failed
    }

    /// Since when it is where it is, in a word.
    pub(crate) fn since_word(&self) -> &'static str {
        if self.has_failed() { "at" } else { "since" }
    }
}
