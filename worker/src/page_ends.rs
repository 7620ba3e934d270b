//! How pages ended, for the history. It has that before the engine does: what it could not keep has not ended.

use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Outcome, Reason, Terminal};
use trawl_common::history::PageEnd;
use trawl_common::ports::Fatal;
use trawl_common::time::UnixMs;

use crate::settlement::Handled;
use crate::shared::Shared;

/// Keeps the ends among these, unless there is no history. One that is away is waited for, as sinks are: no page ends meanwhile.
/// What another worker holds by now is for that one to keep.
pub(crate) async fn keep(shared: &Shared, all: &[Handled]) -> Result<(), Fatal> {
    let Some(history) = &shared.ports.history else { return Ok(()) };
    let ends: Vec<(&Message, PageEnd)> =
        all.iter().filter_map(|handled| Some((&handled.message, end(shared, handled)?))).collect();
    if ends.is_empty() {
        return Ok(());
    }
    let messages: Vec<&Message> = ends.iter().map(|(message, _)| *message).collect();
    let held = shared.frontier.extend(&messages).await?;
    let held: Vec<PageEnd> =
        ends.into_iter().zip(held).filter_map(|((_, end), is_held)| is_held.then_some(end)).collect();
    let keeping = || history.keep_pages(&held);
    shared.health.retry_if(history.name(), |_| true, keeping).await.map_err(Fatal)
}

/// How a page or a task ended; `None` if it has not.
fn end(shared: &Shared, Handled { message, attempts, outcome, yielded, .. }: &Handled) -> Option<PageEnd> {
    let (terminal, reason, status, tried) = match outcome {
        Outcome::Done => (Terminal::Done, None, yielded.as_ref().and_then(|page| page.status), attempts + 1),
        Outcome::Skipped(skip) => (Terminal::Skipped, Some(skip.as_str()), None, *attempts),
        Outcome::Failed(_, reason @ Reason::Poison) => {
            (Terminal::Failed, Some(reason.as_str()), None, *attempts)
        }
        Outcome::Failed(failure, _) => {
            (Terminal::Failed, Some(Class::as_str(failure.class)), failure.status, attempts + 1)
        }
        Outcome::Expired => (Terminal::Expired, None, None, *attempts),
        Outcome::Retry(..)
        | Outcome::Deferred { .. }
        | Outcome::Unready { .. }
        | Outcome::SentAgain
        | Outcome::Released => return None,
    };
    let (items, bytes) =
        yielded.as_ref().map(|yielded| (yielded.items.total(), yielded.bytes)).unwrap_or_default();
    Some(PageEnd {
        crawl: message.crawl.clone(),
        key: message.key(),
        terminal,
        reason,
        status,
        attempts: tried,
        ended: UnixMs::now(),
        worker: shared.id.clone(),
        items,
        bytes,
    })
}
