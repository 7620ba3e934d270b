//! The list of ended tasks, for people: how each of them ended.

use std::collections::HashMap;

use trawl_common::frontier::Key;
use trawl_common::frontier::outcome::Outcome;
use trawl_common::logs::{LogEntry, LogLevel, MAX_RECIPE_SHOWN, TaskEnd};
use trawl_common::names::CrawlRef;
use trawl_common::ports::Completion;
use trawl_common::text::start_of;

use super::{Settler, page_ends};
use crate::claimed::settlement::Handled;

/// The entries of tasks that are being settled. Each is written when its task has ended.
#[derive(Default)]
pub(super) struct EndedTasks(HashMap<(CrawlRef, Key), LogEntry>);

impl EndedTasks {
    /// Notes how a task ends, if it is a task and ends.
    pub(super) fn note(&mut self, settler: &Settler, handled: &Handled) {
        let Some(task) = handled.message.work.task().filter(|_| settler.ended_tasks.is_on()) else { return };
        let Some(end) = page_ends::end(settler, handled) else { return };
        let error = match &handled.result {
            Err(Outcome::Failed(failure, _)) => failure.detail.as_str(),
            _ => "",
        };
        let recipe = task.new.recipe.as_str();
        let ended = TaskEnd {
            outcome: end.terminal.as_str().to_owned(),
            took_ms: handled.took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            attempts: end.attempts,
            items: end.items,
            recipe: start_of(recipe, MAX_RECIPE_SHOWN).to_owned(),
            recipe_bytes: recipe.len(),
        };
        let entry = settler.ended_tasks.entry(LogLevel::Info, error).about_work(&handled.message);
        let entry = match end.reason {
            Some(reason) => entry.of_class(reason),
            None => entry,
        };
        let entry = LogEntry { ended: Some(ended), ..entry };
        self.0.insert((end.crawl, end.key), entry);
    }

    /// Writes those that have ended.
    pub(super) fn write(mut self, settler: &Settler, ended: &[Completion]) {
        for Completion { finish, .. } in ended {
            let of = (finish.claim.crawl.clone(), finish.claim.key.clone());
            if let Some(entry) = self.0.remove(&of) {
                settler.ended_tasks.write(entry);
            }
        }
    }
}
