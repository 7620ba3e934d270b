//! The background work of a worker's engine: settles messages that the worker need not see, extends leases,
//! and looks for lost URLs.

use std::time::Duration;

use moka::sync::Cache;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::{info, warn};
use trawl_common::batching::gather;
use trawl_common::events::{CrawlEvent, Event};
use trawl_common::frontier::fingerprint;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::ports::{Error, ErrorKind, Fatal};
use trawl_common::web::url::Fingerprint;

use crate::claiming::Claiming;
use crate::internal_message::InternalMessage;
use crate::member::Member;
use crate::outbox::{self, Tries};
use crate::settle::{BATCH, Plan};

/// Settles the engine's own messages in batches, until every sender is gone.
pub(crate) async fn settle_internal(
    member: &Member,
    mut from: mpsc::Receiver<InternalMessage>,
) -> Result<(), Fatal> {
    let mut batch = Vec::with_capacity(BATCH);
    while gather(&mut from, &mut batch, BATCH).await > 0 {
        let mut plan = Plan::default();
        batch.drain(..).for_each(|own| plan.add_internal(member, own));
        plan.carry_out(member).await?;
    }
    Ok(())
}

/// Extends the leases that are about half a period old or older, until the task is cancelled. Most pages are
/// settled before that. A lease lasts three periods and is extended in its first half, however it falls among
/// the ticks: a worker, or Redis, may stall for the other half.
pub(crate) async fn extend_leases(member: &Member) -> Result<(), Fatal> {
    let period = member.lease_period();
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // If another worker has taken over a lease, settling the URL will show it.
        member.extend(&member.held.older_than(period / 2)).await?;
    }
}

/// Looks for lost records and sends their messages again, until the task is cancelled.
pub(crate) async fn sweep(member: &Member) -> Result<(), Fatal> {
    let mut resent = Resent::new(member.settings.recovery.lost_after);
    loop {
        match sweep_once(member, &mut resent).await {
            Ok(rest) => {
                member.health.report_ok("sweeping");
                sleep(rest).await;
            }
            Err(Failed::Fatally(error)) => return Err(error),
            Err(Failed::ForNow(error)) => {
                member.health.report_failure("sweeping", &error);
                // After an outage, let others extend their leases first.
                sleep(member.settings.recovery.lost_after / 4).await;
            }
        }
    }
}

/// Why a sweep was not completed.
enum Failed {
    /// It is repeated.
    ForNow(Error),
    /// The worker ends.
    Fatally(Fatal),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::ForNow(error)
    }
}

impl From<Fatal> for Failed {
    fn from(error: Fatal) -> Self {
        Self::Fatally(error)
    }
}

/// Sweeps once and returns the time until the next sweep.
///
/// 1. Takes one step of the sweep.
/// 2. Sends a probe, if it is time.
/// 3. Sends the messages of lost records again, and claims the records for which that was in vain.
/// 4. Records, for crawls that wait for it, how long the longest parked message takes.
/// 5. Publishes dead letters for records that could not be read.
/// 6. Announces events of crawls and hosts; those of a crawl only once the history has it. An event that is
///    not announced yet is found again, and no crawl is forgotten before its end was announced.
async fn sweep_once(member: &Member, resent: &mut Resent) -> Result<Duration, Failed> {
    let Member { records, broker, worker, .. } = member;
    let found = records.sweep(worker).await?;
    if let Some(crawl) = found.evicted.first() {
        let text = format!(
            "redis has thrown keys away while crawl {0} was open: what it lacks nobody knows, and it does not end by itself. \
             `redis-cli config set maxmemory-policy noeviction`, then `trawl cancel {0}`, and crawl again",
            crawl.id
        );
        let error = Error::new(ErrorKind::Corrupt, text);
        member.health.report_recent_failure(
            "keeping records",
            &error,
            2 * member.settings.recovery.lost_after,
        );
    }
    if let Some(times) = found.probe {
        let returned = broker.probe(times).await?;
        records.probe_sent(times).await?;
        if !returned.is_empty() {
            records.probes_returned(&returned).await?;
        }
    }
    let (claimed, lost): (Vec<_>, Vec<_>) =
        found.lost.into_iter().partition(|message| resent.is_in_vain(message) && take(member, message));
    if !lost.is_empty() {
        info!(urls = lost.len(), "sending lost URLs on their way again");
        outbox::send(&**records, &**broker, lost, Tries::One).await?;
    }
    if !claimed.is_empty() {
        warn!(
            urls = claimed.len(),
            "the messages of these URLs were lost {MAX_RESENT} times: does another program take from trawl's queues? Claiming them \
             without a message"
        );
        Claiming { member }.claim(claimed.clone()).await?;
        outbox::confirm(&**records, &claimed, Tries::One).await?;
    }
    for crawl in &found.awaiting {
        records.await_parked(crawl, broker.longest_parked().await?).await?;
    }
    if !found.corrupt.is_empty() {
        broker.dead_letter(&found.corrupt).await?;
        records.dead_letters_published(&found.corrupt).await?;
    }
    for event in found.news {
        if !is_kept(member, &event).await {
            continue;
        }
        info!(crawl = %event.stats.crawl, event = event.name(), "announcing");
        broker.announce(&Event::Crawl(event.clone())).await?;
        records.announced(&event).await?;
    }
    for event in found.hosts {
        info!(hosts = event.news().len(), event = event.name(), "announcing");
        broker.announce(&Event::Host(event.clone())).await?;
        records.hosts_announced(&event).await?;
    }
    Ok(found.rest)
}

/// Holds a URL or a task without a message, if this worker may take one more of its kind.
fn take(member: &Member, message: &Message) -> bool {
    let is_done_here = message.lane != Lane::Task || member.tasks > 0;
    // A parked one waits for its time.
    let may_take =
        is_done_here && message.until.is_none() && !member.is_full() && !member.stop.is_cancelled();
    may_take && member.held.take(message, None)
}

/// A URL whose message was lost this many times is claimed without one.
const MAX_RESENT: u8 = 3;

/// The number of times that each URL's message was sent again lately. A fleet has one sweeper, so this is
/// complete.
struct Resent(Cache<Fingerprint, u8>);

impl Resent {
    /// Maximum number of URLs to track.
    const MAX_TRACKED: u64 = 100_000;

    fn new(lost_after: Duration) -> Self {
        Self(Cache::builder().max_capacity(Self::MAX_TRACKED).time_to_idle(lost_after * 20).build())
    }

    /// Whether the lost message of a URL was sent often enough already. If not, counts one more time.
    fn is_in_vain(&mut self, message: &Message) -> bool {
        let url = fingerprint(&message.crawl, message.work.as_str());
        let resent = self.0.get(&url).unwrap_or_default();
        self.0.insert(url, (resent + 1).min(MAX_RESENT));
        resent >= MAX_RESENT
    }
}

/// Stores the state of a crawl in the history, if there is one, and returns whether that succeeded. A history
/// that is unavailable delays nothing else.
async fn is_kept(Member { history, health, .. }: &Member, event: &CrawlEvent) -> bool {
    let Some(history) = history else { return true };
    match history.keep_crawl(&event.stats).await {
        Ok(()) => {
            health.report_ok(history.name());
            true
        }
        Err(error) => {
            health.report_failure(history.name(), &error);
            false
        }
    }
}
