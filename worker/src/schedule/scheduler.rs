//! Decides which claimed URLs may be fetched now.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::time::DelayQueue;
use trawl_common::frontier::SUSPECT_STARTS;
use trawl_common::frontier::outcome::{Class, Failure, Outcome, Skip};
use trawl_common::host_schedules::{Decision, HostPermit, HostRequest};
use trawl_common::politeness::gcra::Standing;
use trawl_common::politeness::waiting::{NEAR, SOON, is_near, max_waiting};
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_common::web::url::Origin;

use super::Scheduling;
use super::due::Due;
use super::exchange::Rank;
use super::ready::{Next, Permits, Ready};
use super::request::{NoHostRequest, ask_hosts, decided, prepare};
use super::robots::Learnt;
use super::unknown_robots::UnknownRobots;
use crate::claim::Claims;
use crate::claimed::ClaimedUrl;
use crate::claimed::FailureForProgram;
use crate::claimed::settlement::Settlement;
use crate::schedule::backoff::refused;
use crate::schedule::blameless::wanting_until;
use crate::schedule::domains::{Away, Candidate, SLOW_PAGE};
use crate::schedule::sessions::{Hold, Sessions};
use crate::telemetry::idle_reasons::Why;

/// Approximate number of urgent URLs of a host that may stay off its waitlist at once.
const MAX_AHEAD: usize = 8;

/// Approximate time within which the suspects of a crashed worker are claimed: it may have snoozed some of
/// them.
const SUSPECT_TIME: Duration = Duration::from_secs(5);

/// Returns the rank of a URL.
fn rank(claimed: &ClaimedUrl) -> Rank {
    Rank::OfCrawl(claimed.message.work.priority())
}

/// The channels for scheduled URLs.
pub(crate) struct Exits {
    /// URLs that may start.
    pub(crate) ready: mpsc::Sender<Vec<Ready>>,
    pub(crate) settle: mpsc::Sender<Settlement>,
}

/// Owns all URLs that wait in a worker before they are fetched, and alone decides which of them goes when.
///
/// 1. A URL waits for a fetch permit, then asks its host for a slot; one without either waits here or goes
///    back to the broker.
/// 2. A URL whose reserved slot is near waits here, without a permit.
/// 3. A URL with an unknown robots.txt waits here, for a while.
/// 4. If its host shares an address with many others, a URL whose host admits it also waits for a slot of the
///    address. If the slot of its host has passed by then, or no permit is free, it asks only its host once
///    more.
/// 5. While this machine lacks resources for requests, nothing is claimed or started.
/// 6. A URL whose session logs in waits here if there is room.
/// 7. A URL whose slot is due may exchange it with a request of a program, or with a more urgent URL, and
///    waits for that one's slot.
pub(crate) struct Scheduler {
    scheduling: Arc<Scheduling>,
    sessions: Arc<Sessions>,
    exits: Exits,
    claims: Claims,
    due: Due,
    /// URLs that start one at a time: each may crash workers.
    suspects: Due,
    /// Suspects that were in flight at a further crash. They take no space from the URLs before them.
    last_suspects: DelayQueue<ClaimedUrl>,
    /// URLs whose slot is near.
    reserved: DelayQueue<ClaimedUrl>,
    unknown_robots: UnknownRobots,
    /// URLs that wait for their hosts' addresses. `None` if the worker is stopping.
    at_addresses: JoinSet<(ClaimedUrl, Option<Result<Decision>>)>,
    /// Urgent URLs that wait for their slot, or for that of another URL. `None` if the worker is stopping.
    going_ahead: JoinSet<(ClaimedUrl, Option<UnixMs>)>,
    /// Stops the scheduler.
    stop: CancellationToken,
}

impl Scheduler {
    pub(crate) fn new(
        scheduling: Arc<Scheduling>,
        sessions: Arc<Sessions>,
        exits: Exits,
        claims: Claims,
        stop: CancellationToken,
    ) -> Self {
        let ceiling = &scheduling.asker.schedules.ceiling;
        let due = Due::new(scheduling.context.settings.worker.concurrency.into(), ceiling);
        let suspects = Due::new(1, ceiling);
        let unknown_robots = UnknownRobots::new(scheduling.context.settings.worker.prefetch);
        let (last_suspects, reserved, at_addresses, going_ahead) = Default::default();
        Self {
            scheduling,
            sessions,
            exits,
            claims,
            due,
            suspects,
            last_suspects,
            reserved,
            unknown_robots,
            at_addresses,
            going_ahead,
            stop,
        }
    }

    /// Schedules claimed URLs until `stop`, then releases those that have not started. Stops the worker if a
    /// port fails permanently.
    pub(crate) async fn run(mut self) {
        if let Err(error) = self.schedule().await {
            return self.scheduling.context.health.abort(error);
        }
        while let Some(Ok((claimed, _))) = self.at_addresses.join_next().await {
            self.settle(claimed, Outcome::Release).await;
        }
        while let Some(Ok((claimed, _))) = self.going_ahead.join_next().await {
            self.settle(claimed, Outcome::Release).await;
        }
        let waiting = [&mut self.reserved, &mut self.last_suspects];
        let mut held: Vec<ClaimedUrl> =
            waiting.into_iter().flat_map(|queue| std::iter::from_fn(|| take_any(queue))).collect();
        held.extend(self.unknown_robots.take_all());
        held.extend(self.due.urls.drain(..).chain(self.suspects.urls.drain(..)));
        for claimed in held {
            self.settle(claimed, Outcome::Release).await;
        }
    }

    async fn schedule(&mut self) -> Result<()> {
        let stop = self.stop.clone();
        loop {
            let (crowded, slow) = (self.unknown_robots.crowded_until(), self.unknown_robots.some_slow_at());
            let wanting = wanting_until(&self.scheduling);
            let claims = Some(&mut self.claims).filter(|_| crowded.is_none());
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                Some(due) = self.reserved.next(), if !self.reserved.is_empty() => {
                    self.enqueue(due.into_inner());
                    while let Some(Some(due)) = self.reserved.next().now_or_never() {
                        self.enqueue(due.into_inner());
                    }
                }
                Some(due) = self.last_suspects.next(), if !self.last_suspects.is_empty() => self.enqueue(due.into_inner()),
                (urls, learnt) = self.unknown_robots.next() => self.learnt(urls, learnt).await?,
                Some(Ok((claimed, decision))) = self.at_addresses.join_next() => match decision {
                    Some(decision) => self.go_on(claimed, decision?).await,
                    None => self.settle(claimed, Outcome::Release).await,
                },
                Some(Ok((claimed, slot))) = self.going_ahead.join_next() => match slot {
                    Some(slot) => self.schedule_in(claimed, slot),
                    None => self.settle(claimed, Outcome::Release).await,
                },
                () = sleep_until(crowded.unwrap_or_else(Instant::now)), if crowded.is_some() => {}
                () = sleep_until(slow.unwrap_or_else(Instant::now)), if slow.is_some() => self.send_away().await,
                () = sleep_until(wanting.unwrap_or_else(Instant::now)), if wanting.is_some() => {}
                Ok(Some(urls)) = self.suspects.next(None), if wanting.is_none() => self.ask(urls).await?,
                urls = self.due.next(claims), if wanting.is_none() => match urls? {
                    Some(mut urls) => {
                        urls.extract_if(.., |claimed| claimed.is_suspect()).for_each(|claimed| self.suspect(claimed));
                        self.ask(urls).await?;
                    }
                    // The settler has panicked, which ends the worker.
                    None => return Ok(()),
                },
            }
        }
    }

    /// Asks the hosts of URLs for slots, and continues each URL according to the decision. There is a permit
    /// for each URL.
    async fn ask(&mut self, urls: Vec<ClaimedUrl>) -> Result<()> {
        let now = UnixMs::now();
        let (mut asking, mut requests) = (Vec::with_capacity(urls.len()), Vec::with_capacity(urls.len()));
        for mut claimed in urls {
            let ahead = self.scheduling.context.settings.worker.prefetch;
            let hold = self.sessions.hold(&claimed, || self.has_space());
            if let Some(Hold::Here(wait)) = hold {
                claimed.message.slot = None;
                self.reserved.insert(claimed, wait);
                continue;
            }
            if let Some(until) = hold.and_then(Hold::away).or_else(|| claimed.spider.backlog.put_off(ahead)) {
                self.pass_on(Settlement::snooze(claimed, until)).await;
                continue;
            }
            if let Some(away) = self.scheduling.domains.keeps_away(&Candidate::new(&claimed)) {
                let key = claimed.spider.politeness.host_policy(&claimed.target().host()).key;
                self.put_off(claimed, &key, away).await;
                continue;
            }
            match prepare(&self.scheduling, &claimed, now) {
                Ok(request) => match self.scheduling.asker.exchange.exchange(&request, rank(&claimed), now) {
                    Some(later) => self.wait_for_slot(claimed, later.slot, later.wait()).await,
                    None => {
                        requests.push(self.placed(&claimed, request));
                        asking.push(claimed);
                    }
                },
                Err(NoHostRequest::Reserved { slot, until }) => {
                    self.wait_for_slot(claimed, slot, until.wait_from(UnixMs::now())).await;
                }
                Err(NoHostRequest::PutAside(until)) => self.settle(claimed, Outcome::Snooze { until }).await,
                Err(NoHostRequest::Robots(origin)) => self.wait_for_robots(origin, claimed).await,
                Err(NoHostRequest::Never(outcome)) => self.settle(claimed, outcome).await,
            }
        }
        let decisions = ask_hosts(&self.scheduling, &requests).await?;
        let mut ready = Vec::with_capacity(asking.len());
        for ((mut claimed, request), decision) in asking.into_iter().zip(requests).zip(decisions) {
            match decision {
                Decision::Go(permit) if self.has_to_wait_at_address(&mut claimed, &permit) => {
                    self.wait_at_address(claimed, request, permit);
                }
                Decision::At { wait, slot } if request.standing == Standing::Aside && self.has_space() => {
                    self.go_ahead(claimed, request.key, slot, wait);
                }
                // It has no position in the waitlist.
                Decision::Later { wait, .. } if request.standing == Standing::Aside => {
                    ready.extend(
                        self.begin_or_wait(claimed, Decision::Crowded { wait: wait.max(SOON) }).await,
                    );
                }
                decision => ready.extend(self.begin_or_wait(claimed, decision).await),
            }
        }
        self.hand_on(ready).await;
        Ok(())
    }

    /// Returns the request of a URL. An urgent URL stays off the waitlist, where it would come after all URLs
    /// of its host. If many urgent URLs wait, further ones queue like others: each that finds no slot would
    /// ask again every second.
    fn placed(&self, claimed: &ClaimedUrl, request: HostRequest) -> HostRequest {
        if claimed.message.work.priority().is_urgent()
            && self.scheduling.asker.exchange.waiting(&request.key) < MAX_AHEAD
        {
            return HostRequest { standing: Standing::Aside, ..request };
        }
        request
    }

    /// Makes an urgent URL wait for its slot, or for that of another URL of its host.
    fn go_ahead(&mut self, claimed: ClaimedUrl, host: HostKey, slot: UnixMs, wait: Duration) {
        let (scheduling, stop) = (Arc::clone(&self.scheduling), self.stop.clone());
        self.going_ahead.spawn(async move {
            let waiting = scheduling.asker.exchange.wait(&host, rank(&claimed), slot, wait);
            let slot = stop.run_until_cancelled(waiting).await;
            (claimed, slot)
        });
    }

    /// Makes an urgent URL due in this slot.
    fn schedule_in(&mut self, mut claimed: ClaimedUrl, slot: UnixMs) {
        (claimed.message.slot, claimed.message.turn) = (Some(slot), None);
        self.enqueue(claimed);
    }

    /// Continues a URL that has waited for its host's addresses.
    async fn go_on(&mut self, claimed: ClaimedUrl, decision: Decision) {
        let ready = self.begin_or_wait(claimed, decision).await;
        self.hand_on(ready.into_iter().collect()).await;
    }

    /// Starts a URL, makes it wait for its slot, or settles it.
    async fn begin_or_wait(&mut self, mut claimed: ClaimedUrl, decision: Decision) -> Option<Ready> {
        if let Decision::At { wait, slot } = decision {
            self.wait_for_slot(claimed, slot, wait).await;
            return None;
        }
        match decided(&mut claimed, decision) {
            Ok(permit) => self.begin(claimed, permit).await,
            Err(outcome) => {
                self.settle(claimed, outcome).await;
                None
            }
        }
    }

    /// Makes a URL wait for its slot: here if that is near, otherwise at the broker.
    async fn wait_for_slot(&mut self, mut claimed: ClaimedUrl, slot: UnixMs, wait: Duration) {
        (claimed.message.slot, claimed.message.turn) = (Some(slot), None);
        if is_near(wait, self.has_space()) {
            self.reserved.insert(claimed, wait);
        } else {
            self.settle(claimed, Outcome::Snooze { until: UnixMs::now().plus(wait) }).await;
        }
    }

    /// Starts a URL, if there is a permit for it that pages of other domains do not need.
    async fn begin(&mut self, mut claimed: ClaimedUrl, host_permit: HostPermit) -> Option<Ready> {
        let is_alone = claimed.is_suspect();
        let due = if is_alone { &mut self.suspects } else { &mut self.due };
        let Some(fetch_permit) = due.permits.take() else {
            // It has waited for an address, and asks its host once more when there is a permit.
            (claimed.message.slot, claimed.waits_for_host_only) = (Some(UnixMs::now()), true);
            self.enqueue(claimed);
            return None;
        };
        match self.scheduling.domains.begin(Candidate::new(&claimed)) {
            Ok(under_way) => {
                claimed.message.since = None;
                // URLs that delay others wait, unless they run alone anyway.
                let fetch_permit = Some(fetch_permit).filter(|_| is_alone || under_way.needs_permit());
                let permits = Permits { host_permit, fetch_permit, under_way, is_alone };
                Some(Ready { claimed, next: Next::Fetch(Box::new(permits)) })
            }
            Err(away) => {
                due.permits.give_back(fetch_permit);
                self.put_off(claimed, host_permit.host(), away).await;
                None
            }
        }
    }

    /// Whether a URL has to wait for its host's addresses: many hosts share one of them, or they are not
    /// known yet.
    fn has_to_wait_at_address(&self, claimed: &mut ClaimedUrl, permit: &HostPermit) -> bool {
        if std::mem::take(&mut claimed.waits_for_host_only) {
            return false;
        }
        let addresses = claimed.spider.fetcher.known_addresses(&claimed.target().host());
        let is_shared = |addresses: Vec<_>| {
            !self.scheduling.asker.schedules.addresses.shared(permit.host(), &addresses).is_empty()
        };
        addresses.is_none_or(is_shared)
    }

    /// Makes a URL that its host admits wait for the host's addresses, without a fetch permit.
    fn wait_at_address(&mut self, mut claimed: ClaimedUrl, mut request: HostRequest, permit: HostPermit) {
        let most = if self.has_space() { NEAR } else { Duration::ZERO };
        let (scheduling, stop) = (Arc::clone(&self.scheduling), self.stop.clone());
        self.at_addresses.spawn(async move {
            let key = permit.host().clone();
            let elsewhere = async {
                let addresses = claimed.spider.fetcher.addresses(&claimed.target().host()).await;
                scheduling.asker.schedules.at_addresses(&key, &addresses, most).await
            };
            let waiting = scheduling.asker.schedules.wait_elsewhere(&mut request, permit, elsewhere);
            let decision = stop.run_until_cancelled(waiting).await;
            claimed.waits_for_host_only = request.waits_for_host_only;
            (claimed, decision)
        });
    }

    /// Settles a URL whose domain has no place for it.
    async fn put_off(&self, claimed: ClaimedUrl, host: &HostKey, away: Away) {
        self.scheduling.idle_reasons.note_wait(host, away.until(), Why::Slow);
        self.pass_on(away.settle(claimed)).await;
    }

    /// Whether another URL can wait here. Slow pages in flight count like waiting URLs, so that the broker
    /// sends no more. URLs with an unknown robots.txt have room of their own.
    fn has_space(&self) -> bool {
        let elsewhere = self.at_addresses.len() + self.going_ahead.len();
        let due = self.due.urls.len() + self.suspects.urls.len();
        self.reserved.len() + elsewhere + due + self.scheduling.domains.slow()
            < max_waiting(self.scheduling.context.settings.worker.prefetch)
    }

    /// Snoozes URLs that wait for slow files, which would keep out the URLs of other hosts.
    async fn send_away(&mut self) {
        for claimed in self.unknown_robots.take_slow() {
            self.settle(claimed, Outcome::Snooze { until: UnixMs::now().plus(SLOW_PAGE) }).await;
        }
    }

    async fn wait_for_robots(&mut self, origin: Origin, claimed: ClaimedUrl) {
        if let Some((claimed, away)) = self.unknown_robots.add(&self.scheduling, origin, claimed) {
            self.settle(claimed, Outcome::Snooze { until: UnixMs::now().plus(away.max(SOON)) }).await;
        }
    }

    /// Continues URLs that waited for a robots.txt.
    async fn learnt(&mut self, urls: Vec<ClaimedUrl>, learnt: Learnt) -> Result<()> {
        for mut claimed in urls {
            let outcome = match &learnt {
                Learnt::Known => {
                    self.enqueue(claimed);
                    continue;
                }
                Learnt::Refused(failure, until) => {
                    refused(&self.scheduling.context.settings.retry, &mut claimed, failure.clone(), *until)
                }
                Learnt::Later(until) => Outcome::Snooze { until: *until },
                Learnt::Blocked => Outcome::Skipped(Skip::Blocked),
                Learnt::Failed(_) => Outcome::Release,
                Learnt::Panicked => {
                    let failure = Failure::new(Class::Robots, "robots.txt: reading it made the worker panic");
                    claimed.failed(&self.scheduling.context.settings.retry, failure)
                }
            };
            self.settle(claimed, outcome).await;
        }
        if let Learnt::Failed(error) = learnt { Err(error) } else { Ok(()) }
    }

    /// Delays a suspect that was in flight at a further crash, so that other suspects about to be claimed go
    /// first.
    fn suspect(&mut self, claimed: ClaimedUrl) {
        match claimed.starts > SUSPECT_STARTS {
            true => drop(self.last_suspects.insert(claimed, SUSPECT_TIME)),
            false => self.enqueue(claimed),
        }
    }

    /// Queues a URL. Among suspects, the one with the fewest starts goes first, so that no page is the only
    /// suspect at two crashes while others were at none.
    fn enqueue(&mut self, claimed: ClaimedUrl) {
        if !claimed.is_suspect() {
            return self.due.urls.push_back(claimed);
        }
        let at = self.suspects.urls.partition_point(|other| other.starts <= claimed.starts);
        self.suspects.urls.insert(at, claimed);
    }

    async fn hand_on(&self, ready: Vec<Ready>) {
        if !ready.is_empty() {
            // Closed only when the dispatcher is gone, which ends after this.
            let _ = self.exits.ready.send(ready).await;
        }
    }

    async fn settle(&self, claimed: ClaimedUrl, outcome: Outcome) {
        match FailureForProgram::new(&claimed, outcome) {
            Ok(failure) => {
                self.hand_on(vec![Ready { claimed, next: Next::HandOver(Box::new(failure)) }]).await
            }
            Err(outcome) => self.pass_on(Settlement::from_url(claimed, outcome)).await,
        }
    }

    async fn pass_on(&self, settlement: Settlement) {
        // Closed only when the settler is gone, which ends after this.
        let _ = self.exits.settle.send(settlement).await;
    }
}

fn take_any(queue: &mut DelayQueue<ClaimedUrl>) -> Option<ClaimedUrl> {
    let key = queue.peek()?;
    Some(queue.remove(&key).into_inner())
}
