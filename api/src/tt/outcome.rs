//! The decision about a task that a drone has had, or could not have.

use std::time::Duration;

use trawl_common::frontier::dead_letter::Cause;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Outcome, Reason, Skip, Terminal};
use trawl_common::logs::{LogEntry, LogLevel, MAX_RECIPE_SHOWN, TaskEnd};
use trawl_common::names::WorkerId;
use trawl_common::ports::{Claim, Completion, Disposition, Finish};
use trawl_common::text::start_of;
use trawl_common::time::UnixMs;

/// Returns the decision for an outcome after this number of attempts; `Ok` for a task that is done.
pub(super) fn disposition(
    message: &Message,
    worker: &WorkerId,
    attempts: u32,
    outcome: Result<(), Outcome>,
) -> Disposition {
    let ended = |terminal| Completion::new(Finish::new(Claim::new(message), terminal));
    let finish = |completion| Disposition::Finish(Box::new(completion));
    let cause = |reason, class, error: String| Cause {
        class,
        attempts,
        worker: Some(worker.clone()),
        ..Cause::new(reason, error, UnixMs::now())
    };
    let dead = |terminal, cause| finish(ended(terminal).with_dead_letter(message, cause));
    match outcome {
        Ok(()) => finish(ended(Terminal::Done)),
        Err(Outcome::Skipped(skip)) => {
            let mut completion = ended(Terminal::Skipped);
            completion.finish.why = Some(Skip::as_str(skip));
            finish(completion)
        }
        Err(Outcome::Failed(failure, reason)) => {
            dead(Terminal::Failed, cause(reason, Some(failure.class), failure.detail))
        }
        Err(Outcome::Expired) => {
            let error = "its deadline passed before it could be done".to_owned();
            dead(Terminal::Expired, cause(Reason::Expired, None, error))
        }
        Err(Outcome::Retry { until, .. }) => Disposition::Retry { until },
        Err(Outcome::Snooze { until }) => Disposition::Snooze { until },
        Err(Outcome::Requeue { until }) => Disposition::Requeue { until },
        Err(Outcome::Republish) => Disposition::Republish,
        Err(Outcome::Release) => Disposition::Release,
    }
}

/// Returns the entry of a task that has ended for the list of such tasks.
pub(super) fn ended_task(
    worker: &WorkerId,
    message: &Message,
    Completion { finish, dead_letter, .. }: &Completion,
    took: Duration,
) -> LogEntry {
    let recipe = message.work.task().map_or("", |task| task.new.recipe.as_str());
    let ended = TaskEnd {
        outcome: finish.terminal.as_str().to_owned(),
        took_ms: Some(took.as_millis() as u64),
        attempts: dead_letter.as_ref().map_or(1, |cause| cause.attempts),
        items: 0,
        recipe: start_of(recipe, MAX_RECIPE_SHOWN).to_owned(),
        recipe_bytes: recipe.len(),
    };
    let error = dead_letter.as_ref().map_or("", |cause| &*cause.error);
    let entry = LogEntry::new(worker, LogLevel::Info, error).about_work(message);
    let entry = match finish.why {
        Some(reason) => entry.of_class(reason),
        None => entry,
    };
    LogEntry { ended: Some(ended), ..entry }
}
