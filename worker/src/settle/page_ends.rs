//! Keeps in the permanent history how pages ended, before the engine settles them: a page whose end could not be kept
//! has not ended.

use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Outcome, Reason, Terminal};
use trawl_common::history::PageEnd;
use trawl_common::ports::Fatal;
use trawl_common::time::UnixMs;

use super::Settler;
use crate::claimed::settlement::Handled;

/// Keeps the ends among these, unless there is no history. One that is away is waited for, as sinks are: no page ends
/// meanwhile. What another worker holds by now is for that one to keep.
pub(super) async fn keep(settler: &Settler, all: &[Handled]) -> Result<(), Fatal> {
    let Some(history) = &settler.history else { return Ok(()) };
    let ends: Vec<(&Message, PageEnd)> =
        all.iter().filter_map(|handled| Some((&handled.message, end(settler, handled)?))).collect();
    if ends.is_empty() {
        return Ok(());
    }
    let messages: Vec<&Message> = ends.iter().map(|(message, _)| *message).collect();
    let held = settler.frontier.extend(&messages).await?;
    let held: Vec<PageEnd> =
        ends.into_iter().zip(held).filter_map(|((_, end), is_held)| is_held.then_some(end)).collect();
    let keeping = || history.keep_pages(&held);
    settler.context.health.retry_if(history.name(), |_| true, keeping).await.map_err(Fatal)
}

/// Returns how a page or a task ended; `None` if it has not.
pub(super) fn end(settler: &Settler, handled: &Handled) -> Option<PageEnd> {
    let Handled { message, attempts, result, .. } = handled;
    let (terminal, reason, status, tried) = match result {
        Ok(output) => (Terminal::Done, None, output.status, attempts + 1),
        Err(Outcome::Skipped(skip)) => (Terminal::Skipped, Some(skip.as_str()), None, *attempts),
        Err(Outcome::Failed(_, reason @ Reason::Poison)) => {
            (Terminal::Failed, Some(reason.as_str()), None, *attempts)
        }
        Err(Outcome::Failed(failure, _)) => {
            (Terminal::Failed, Some(Class::as_str(failure.class)), failure.status, attempts + 1)
        }
        Err(Outcome::Expired) => (Terminal::Expired, None, None, *attempts),
        Err(
            Outcome::Retry { .. }
            | Outcome::Snooze { .. }
            | Outcome::Requeue { .. }
            | Outcome::Republish
            | Outcome::Release,
        ) => return None,
    };
    let (items, bytes) =
        handled.output().map(|output| (output.items.total(), output.bytes)).unwrap_or_default();
    Some(PageEnd {
        crawl: message.crawl.clone(),
        key: message.key(),
        terminal,
        reason,
        status,
        attempts: tried,
        ended: UnixMs::now(),
        worker: settler.context.id.clone(),
        items,
        bytes,
    })
}
