//! The background work of a worker's engine: it settles messages that are no work for the worker, extends leases, and looks for lost
//! URLs.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::info;
use trawl_common::batching::gather;
use trawl_common::events::{CrawlEvent, Event};
use trawl_common::ports::{Error, ErrorKind, Result};

use crate::member::Member;
use crate::outbox::{self, Tries};
use crate::own::Own;
use crate::settle::{BATCH, Plan};

/// Settles what is no work for a worker, in batches, until every sender is gone.
pub(crate) async fn settles_own(member: &Member, mut from: mpsc::Receiver<Own>) {
    let mut batch = Vec::with_capacity(BATCH);
    while gather(&mut from, &mut batch, BATCH).await > 0 {
        let mut plan = Plan::default();
        batch.drain(..).for_each(|own| plan.add_own(member, own));
        plan.carry_out(member).await;
    }
}

/// Extends the leases of what has been held for a while, until the task is cancelled. Most pages are settled before that. A lease lasts for
/// three periods and is extended in its first half, however it falls among the ticks: a worker, or Redis, may stand still for the other.
pub(crate) async fn extends_leases(member: &Member) {
    let period = member.lease_period();
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // That another worker has one by now is noticed when it is settled.
        member.extend(&member.in_flight.older_than(period / 2)).await;
    }
}

/// Looks for lost records, and sends their messages again, until the task is cancelled.
pub(crate) async fn sweeps(member: &Member) {
    loop {
        match sweep(member).await {
            Ok(rest) => {
                member.health.works("sweeping");
                sleep(rest).await;
            }
            Err(error) => {
                member.health.fails("sweeping", &error);
                // After an outage, others extend their leases first.
                sleep(member.settings.recovery.lost_after / 4).await;
            }
        }
    }
}

/// 1. Takes one step of the sweep.
/// 2. Sends a probe, if it is time.
/// 3. Sends the messages of lost records again.
/// 4. Records, for crawls that wait for it, how long the longest parked message takes.
/// 5. Publishes dead letters of what could not be read.
/// 6. Announces events of crawls and hosts; those of a crawl once the history has it. What is not announced yet is found again, and no
///    crawl is forgotten before its end was announced.
async fn sweep(member: &Member) -> Result<Duration> {
    let Member { records, broker, worker, .. } = member;
    let found = records.sweep(worker).await?;
    if let Some(crawl) = found.evicted.first() {
        let text = format!(
            "redis has thrown keys away while crawl {0} was open: what it lacks nobody knows, and it does not end by itself. \
             `redis-cli config set maxmemory-policy noeviction`, then `trawl cancel {0}`, and crawl again",
            crawl.id
        );
        let error = Error::new(ErrorKind::Corrupt, text);
        member.health.fails_lately("keeping records", &error, 2 * member.settings.recovery.lost_after);
    }
    if let Some(times) = found.probe {
        let returned = broker.probe(times).await?;
        records.probe_sent(times).await?;
        if !returned.is_empty() {
            records.probes_returned(&returned).await?;
        }
    }
    if !found.lost.is_empty() {
        info!(urls = found.lost.len(), "sending lost URLs on their way again");
        outbox::send(&**records, &**broker, found.lost, Tries::One).await?;
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

/// Stores the state of a crawl in the history, if there is one. Returns whether it is stored. A history that is away delays nothing else.
async fn is_kept(Member { history, health, .. }: &Member, event: &CrawlEvent) -> bool {
    let Some(history) = history else { return true };
    match history.keep_crawl(&event.stats).await {
        Ok(()) => {
            health.works(history.name());
            true
        }
        Err(error) => {
            health.fails(history.name(), &error);
            false
        }
    }
}
