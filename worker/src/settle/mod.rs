//! Settles URLs: passes their outcomes to the engine.

mod ended_tasks;
mod page_ends;
mod retries;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::debug;
use trawl_common::batching::gather;
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Reason, Skip, Terminal};
use trawl_common::metrics;
use trawl_common::ports::{
    self, Claim, Completion, Disposition, Error, Fatal, Finish, Frontier, History, PageVisit, Settled,
};
use trawl_common::spider::ItemCounts;
use trawl_common::spider::page_history::Visited;
use trawl_common::time::UnixMs;
use trawl_common::trace::Attempt;
use trawl_common::web::host::HostKey;

use self::ended_tasks::EndedTasks;
pub(crate) use self::retries::Retries;
use crate::claimed::led_by;
use crate::claimed::page_output::PageOutput;
use crate::claimed::settlement::{Handled, MANY_LINKS, Settlement};
use crate::context::Context;
use crate::fetch::known_links::KnownLinks;
use crate::telemetry::idle_reasons::{IdleReasons, Why};
use crate::telemetry::lateness::Lateness;
use crate::telemetry::tally::Tally;
use crate::telemetry::url_log::UrlLog;

/// Maximum number of outcomes that are settled in one step.
const BATCH: usize = 256;

/// The state by which URLs are settled.
pub(crate) struct Settler {
    pub(crate) context: Arc<Context>,
    pub(crate) frontier: Arc<dyn Frontier>,
    /// The permanent history, if there is one.
    pub(crate) history: Option<Arc<dyn History>>,
    /// The list of ended tasks.
    pub(crate) ended_tasks: LogWriter,
    pub(crate) tally: Arc<Tally>,
    pub(crate) known_links: Arc<KnownLinks>,
    pub(crate) url_log: Arc<UrlLog>,
    pub(crate) idle_reasons: Arc<IdleReasons>,
    pub(crate) lateness: Arc<Lateness>,
    pub(crate) retries: Retries,
}

/// Settles what comes, in batches, until every sender is gone. Pages with many links are settled beside the others, one
/// after the other. What there is no room for in a full store is held back, and keeps no other from its end.
pub(crate) async fn run(settler: Arc<Settler>, settlements: mpsc::Receiver<Settlement>) {
    if let Err(error) = settle_all(&settler, settlements).await {
        settler.context.health.abort(error);
    }
}

async fn settle_all(
    settler: &Arc<Settler>,
    mut settlements: mpsc::Receiver<Settlement>,
) -> Result<(), Fatal> {
    let mut batch = Vec::with_capacity(BATCH);
    let (mut held_back, mut linking, mut is_open) = (HeldBack::default(), JoinSet::new(), true);
    let turn = Arc::new(Mutex::new(()));
    loop {
        tokio::select! {
            count = gather(&mut settlements, &mut batch, BATCH), if is_open && !held_back.is_crowded() => {
                is_open = count > 0;
            }
            Some(settled) = linking.join_next() => match settled {
                Ok(not_stored) => held_back.add(settler, not_stored?),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // Only ever with this task.
                    Err(_) => return Ok(()),
                },
            },
            () = held_back.due(), if !held_back.settlements.is_empty() => {}
            else => return Ok(()),
        }
        let batch: Vec<Handled> = batch.drain(..).map(Settlement::into_handled).collect();
        page_ends::keep(settler, &batch).await?;
        let (now, apart) = by_links(batch);
        for pages in apart {
            let (settler, turn) = (Arc::clone(settler), Arc::clone(&turn));
            linking.spawn(async move {
                let has_many = pages.iter().any(|page| page.links() > MANY_LINKS);
                let _turn = OptionFuture::from(has_many.then(|| turn.lock())).await;
                settle(&settler, Vec::new(), pages).await
            });
        }
        let due = held_back.take_due();
        if !now.is_empty() || !due.is_empty() {
            let not_stored = settle(settler, due, now).await?;
            held_back.add(settler, not_stored);
        }
    }
}

/// Divides pages into those to settle now and others to settle beside them: each part has up to [`MANY_LINKS`], or is a
/// single page.
fn by_links(batch: Vec<Handled>) -> (Vec<Handled>, Vec<Vec<Handled>>) {
    let (mut now, mut apart) = (Vec::with_capacity(batch.len()), Vec::<Vec<Handled>>::new());
    let (mut room_now, mut room_apart) = (MANY_LINKS, 0);
    for handled in batch {
        let links = handled.links();
        match apart.last_mut() {
            _ if links <= room_now => {
                room_now -= links;
                now.push(handled);
            }
            Some(part) if links <= room_apart => {
                room_apart -= links;
                part.push(handled);
            }
            _ => {
                room_apart = MANY_LINKS.saturating_sub(links);
                apart.push(vec![handled]);
            }
        }
    }
    (now, apart)
}

/// Settles what was held back and what comes after it. Returns what there is no room for.
async fn settle(
    settler: &Settler,
    mut rulings: Vec<ports::Settlement>,
    batch: Vec<Handled>,
) -> Result<Vec<ports::Settlement>, Fatal> {
    let (mut held, mut attempts, mut tasks) = (Vec::new(), Vec::new(), EndedTasks::default());
    for mut handled in batch {
        settler.url_log.log_settlement(&handled);
        tasks.note(settler, &handled);
        held.push((handled.alone.take(), handled.place.take()));
        attempts.extend(attempt(&handled));
        rulings.push(ruling(settler, handled));
    }
    let begun = Instant::now();
    let Settled { ended, not_stored } = settler.frontier.settle(rulings).await?;
    attempts.into_iter().for_each(|attempt| attempt.end(begun.elapsed()));
    tasks.write(settler, &ended);
    for Completion { finish, links, .. } in &ended {
        settler.tally.count(finish.terminal);
        metrics::url_ended(finish.terminal);
        metrics::items(finish.claim.crawl.spider.as_str(), &finish.items.by_kind);
        let pages = links.iter().filter(|link| link.work.page().is_some());
        pages.for_each(|page| settler.known_links.add(&finish.claim.crawl, page.work.as_str()));
    }
    Ok(not_stored)
}

/// URLs that have ended, but for what a full store has no room for: what their pages link to, and what is to be
/// remembered of them.
struct HeldBack {
    settlements: Vec<ports::Settlement>,
    again: Instant,
}

impl Default for HeldBack {
    fn default() -> Self {
        Self { settlements: Vec::new(), again: Instant::now() }
    }
}

impl HeldBack {
    /// Name of the failing operation while there are any.
    const WHAT: &str = "taking in what pages link to";
    /// Interval of retries.
    const RETRY_INTERVAL: Duration = Duration::from_secs(1);

    /// Whether there are so many that no more outcomes are accepted.
    fn is_crowded(&self) -> bool {
        self.settlements.len() >= BATCH
    }

    /// Waits until they may be retried.
    async fn due(&self) {
        sleep_until(self.again).await;
    }

    fn take_due(&mut self) -> Vec<ports::Settlement> {
        if self.again <= Instant::now() { std::mem::take(&mut self.settlements) } else { Vec::new() }
    }

    fn add(&mut self, settler: &Settler, settlements: Vec<ports::Settlement>) {
        if !settlements.is_empty() {
            self.again = Instant::now() + Self::RETRY_INTERVAL;
            self.settlements.extend(settlements);
        }
        match self.settlements.is_empty() {
            true => settler.context.health.report_ok(Self::WHAT),
            false => settler.context.health.report_failure(Self::WHAT, &Error::full()),
        }
    }
}

/// Returns the attempt that is settled, if its URL is traced.
fn attempt(Handled { message, result, .. }: &Handled) -> Option<Attempt> {
    let (outcome, error) = match result {
        Ok(_) => ("done", None),
        Err(Outcome::Skipped(_)) => ("skipped", None),
        Err(Outcome::Retry { failure, .. }) => ("retried", Some(failure.class)),
        Err(Outcome::Failed(failure, _)) => ("failed", Some(failure.class)),
        Err(Outcome::Snooze { .. }) => ("put aside", None),
        Err(Outcome::Requeue { .. }) => ("left to others", None),
        Err(Outcome::Expired) => ("expired", None),
        Err(Outcome::Republish) => ("sent again", None),
        Err(Outcome::Release) => ("released", None),
    };
    Attempt::new(message, outcome, error.map(Class::as_str))
}

/// Returns the decision about a URL for the engine.
fn ruling(settler: &Settler, handled: Handled) -> ports::Settlement {
    let Handled { message, attempts, result, memory, .. } = handled;
    let completion =
        |terminal| Completion { memory, ..Completion::new(Finish::new(Claim::new(&message), terminal)) };
    let disposition = match result {
        Ok(output) => {
            let PageOutput { links, elsewhere, left_out, landed, bytes, missing, items, .. } = output;
            let ended = completion(Terminal::Done);
            let finish = Finish { landed, bytes, missing, left_out, items, ..ended.finish };
            finish_with(Completion { finish, links, elsewhere, ..ended })
        }
        Err(Outcome::Skipped(skip)) => {
            debug!(url = %message.work, reason = skip.as_str(), "skipped");
            let mut completion = completion(Terminal::Skipped);
            if let Some(PageVisit::Visited(Visited { items: Some(tally), .. })) = &completion.memory {
                completion.finish.items = ItemCounts::unchanged(tally.total());
            }
            completion.finish.why = Some(skip.as_str());
            completion.finish.note = (skip == Skip::Blocked)
                .then(|| DeadLetterEntry::from_message(&message, blocked(settler, attempts)));
            finish_with(completion)
        }
        Err(Outcome::Failed(failure, reason)) => {
            let attempts = if reason == Reason::Poison { attempts } else { attempts + 1 };
            let cause = failed(settler, failure, reason, attempts);
            dead_letter(settler, &message, completion(Terminal::Failed), cause)
        }
        Err(Outcome::Expired) => {
            dead_letter(settler, &message, completion(Terminal::Expired), expired(settler, attempts))
        }
        Err(Outcome::Retry { failure, until, .. }) => {
            let (interval, now) = (settler.lateness.interval(), UnixMs::now());
            let space =
                |domain| settler.retries.space(domain, until.wait_from(now), interval, Instant::now());
            let until = led_by(&message).map_or(until, |domain| now.plus(space(domain)));
            if let Some(target) = message.target() {
                settler.idle_reasons.note_wait(
                    &HostKey::host(&target.host()),
                    until,
                    Why::Retry(failure.class),
                );
            }
            settler.tally.retried();
            metrics::url_retried(failure.class);
            Disposition::Retry { until }
        }
        Err(Outcome::Snooze { until }) => {
            settler.tally.parked();
            metrics::url_parked();
            Disposition::Snooze { until }
        }
        Err(Outcome::Requeue { until }) => Disposition::Requeue { until },
        Err(Outcome::Republish) => Disposition::Republish,
        Err(Outcome::Release) => Disposition::Release,
    };
    ports::Settlement { message, disposition }
}

fn finish_with(completion: Completion) -> Disposition {
    Disposition::Finish(Box::new(completion))
}

/// Returns the decision about a URL that becomes a dead letter.
fn dead_letter(settler: &Settler, message: &Message, completion: Completion, cause: Cause) -> Disposition {
    settler.url_log.dead_letter(message, &cause);
    finish_with(completion.with_dead_letter(message, cause))
}

fn failed(settler: &Settler, failure: Failure, reason: Reason, attempts: u32) -> Cause {
    let unasked = unasked(settler, reason, failure.detail, attempts);
    Cause { class: Some(failure.class), status: failure.status, ..unasked }
}

fn expired(settler: &Settler, attempts: u32) -> Cause {
    unasked(settler, Reason::Expired, "its deadline passed before it could be fetched", attempts)
}

fn blocked(settler: &Settler, attempts: u32) -> Cause {
    unasked(settler, Reason::Blocked, "its host, or one that it redirects to, is blocked", attempts)
}

fn unasked(settler: &Settler, reason: Reason, error: impl Into<String>, attempts: u32) -> Cause {
    let worker = Some(settler.context.id.clone());
    Cause { attempts, worker, ..Cause::new(reason, error, UnixMs::now()) }
}
