//! The calls, each by the ports of the engine.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};
use trawl_common::clock;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::ladder::until_another_worker;
use trawl_common::logs::LogEntry;
use trawl_common::names::CrawlRef;
use trawl_common::politeness::gcra::{BackoffTerms, Pace, Slot, SlotRequest};
use trawl_common::ports::{
    BackoffRequest, BeatReply, Claim as HeldClaim, Claimed, Completion, Disposition, Error, ErrorKind,
    HostSlotRequest, OpenCrawl, Page, RobotsEntry, Settled, Settlement, StoredSession, one_each,
};
use trawl_common::relay::{
    Beat, Beaten, Call, Claim, EndedAt, Extend, GiveUpRobots, HasSeen, KeepRobots, Late, Leave, LeaveHosts,
    Log, Look, POLL, Pause, PushBack, Put, ReadSession, Recorded, Reserve, Robots, Settle, Start, StartTask,
    Stay, Text, WriteSession,
};
use trawl_common::session::{SessionId, SessionOwner};
use trawl_common::spider::page_history::Visited;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

use super::done;
use super::guard::{self, Refusal};
use super::replies;
use super::session::{Held, Session};
use super::spiders::CrawlSpider;
use crate::problem::Problem;

/// Maximum number of things that one call is about.
const MAX_THINGS: usize = 1000;

/// Maximum number of pages of one call that stores items.
const MAX_PAGES: usize = 256;

/// Maximum number of items of a page.
const MAX_ITEMS: usize = 10_000;

/// Maximum time for which a request counts as in flight, or a robots.txt as being fetched.
const MAX_LAPSE: Duration = Duration::from_secs(600);

/// Maximum time for which a robots.txt is kept.
const MAX_ROBOTS_TTL: Duration = Duration::from_secs(7 * 24 * 3600);

/// Maximum size of a robots.txt, in bytes.
const MAX_ROBOTS: usize = 600 * 1024;

/// Longest time between two requests to a host: a longer one would keep others from it.
const MAX_INTERVAL: Duration = Duration::from_secs(300);

/// Maximum number of claims at a time while the work that comes is for others.
const FEW: usize = 4;

/// Shortest and longest wait after work that is for others.
const FOREIGN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

type Result<T> = std::result::Result<T, Refusal>;

/// A call that the API serves.
#[async_trait]
pub(super) trait Serve: Call {
    /// Carries the call out.
    async fn serve(self, session: &Arc<Session>) -> Result<Self::Reply>;

    /// Returns where its reply is kept, if it is.
    fn slot(&self) -> Option<replies::Slot> {
        None
    }

    /// Returns the body of the response.
    async fn answer(self, session: Arc<Session>) -> std::result::Result<Bytes, Problem> {
        match self.serve(&session).await {
            Ok(reply) => Ok(done(Ok(reply))),
            Err(Refusal::Port(error)) => Ok(done::<Self::Reply>(Err(error))),
            Err(Refusal::Forbidden(why)) => {
                session.log_refusal(Self::NAME, why);
                Err(Problem::malformed(format_args!("{}: {why}", Self::NAME)))
            }
        }
    }
}

/// Checks that a call is about no more than it may be.
fn at_most(count: usize, most: usize) -> Result<()> {
    if count <= most { Ok(()) } else { Err(Refusal::Forbidden("it is about too much at once")) }
}

fn check(may: bool, why: &'static str) -> Result<()> {
    if may { Ok(()) } else { Err(Refusal::Forbidden(why)) }
}

#[async_trait]
impl Serve for Claim {
    /// Waits for work of the runner's projects. Other work that comes is left to others, and slows the runner down: it is
    /// not to go through a queue that is not for it.
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<Claimed>> {
        let until = Instant::now() + POLL;
        let mut pause = FOREIGN.0;
        let mut most = self.most.clamp(1, MAX_THINGS);
        loop {
            let claiming = async {
                match self.tasks {
                    true => session.frontier.claim_tasks(most).await,
                    false => session.frontier.claim(most).await,
                }
            };
            let claimed = tokio::select! {
                biased;
                () = session.ended.cancelled() => return Ok(Vec::new()),
                claimed = timeout_at(until, claiming) => claimed,
            };
            let Ok(claimed) = claimed else { return Ok(Vec::new()) };
            let claimed = claimed?;
            let messages: Vec<_> = claimed.iter().map(|claimed| claimed.message.clone()).collect();
            let (mine, foreign) = match divide(session, claimed).await {
                Ok(divided) => divided,
                Err(error) => {
                    let release = |message| Settlement { message, disposition: Disposition::Release };
                    session.frontier.settle(messages.into_iter().map(release).collect()).await?;
                    return Err(error);
                }
            };
            if !foreign.is_empty() {
                session.frontier.settle(foreign.into_iter().map(leave_to_others).collect()).await?;
                most = most.min(FEW);
            }
            // It may have ended meanwhile; then nobody settles these.
            if !mine.is_empty() && !session.ended.is_cancelled() {
                return Ok(mine);
            }
            if Instant::now() + pause >= until {
                return Ok(Vec::new());
            }
            sleep(pause).await;
            pause = (pause * 2).min(FOREIGN.1);
        }
    }

    fn slot(&self) -> Option<replies::Slot> {
        let name = if self.tasks { "claim tasks" } else { "claim" };
        Some(replies::Slot { name, most: 1 })
    }
}

/// Divides work into that which is handed out to the runner, and the rest.
async fn divide(session: &Session, claimed: Vec<Claimed>) -> Result<(Vec<Claimed>, Vec<Claimed>)> {
    let (mut mine, mut held, mut foreign) = (Vec::new(), Vec::new(), Vec::new());
    let runner = session.runner();
    for mut claimed in claimed {
        let message = &claimed.message;
        let of_crawl = session.engine.projects.of(&message.crawl).await?;
        let own = message.work.task().and_then(|task| task.new.project.clone());
        let project = own.unwrap_or_else(|| of_crawl.clone());
        if !runner.is_assigned(&project) {
            foreign.push(claimed);
            continue;
        }
        match session.engine.spiders.of(&message.crawl).await {
            // Nobody here knows its bounds and its sinks.
            Ok(spider) if claimed.crawl.terms.file.is_some() && spider.file.is_none() => {
                foreign.push(claimed)
            }
            Ok(spider) => {
                // So the runner asks for the file: it has none of its own.
                claimed.crawl.terms.file = claimed.crawl.terms.file.or(spider.file);
                held.push(Held { message: message.clone(), project, of_crawl, spider });
                mine.push(claimed);
            }
            Err(error) if error.kind == ErrorKind::Refused => {
                warn!(%error, crawl = %message.crawl.id, "work is left to others than runners");
                foreign.push(claimed);
            }
            Err(error) => return Err(error.into()),
        }
    }
    session.hand_out(held);
    Ok((mine, foreign))
}

fn leave_to_others(Claimed { message, .. }: Claimed) -> Settlement {
    let until = UnixMs::now().plus(until_another_worker(message.left));
    Settlement { message, disposition: Disposition::Requeue { until } }
}

#[async_trait]
impl Serve for Start {
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<StartReply>> {
        at_most(self.claims.len(), MAX_THINGS)?;
        let (asked, held) = among_held(session, &self.claims);
        let started = match held.is_empty() {
            true => Vec::new(),
            false => one_each(session.frontier.start(&held).await?, held.len(), "starts")?,
        };
        Ok(at_their_places(self.claims.len(), asked, started, StartReply::Lost))
    }
}

/// Returns those of the claims that the runner holds, with their positions.
fn among_held(session: &Session, claims: &[HeldClaim]) -> (Vec<usize>, Vec<HeldClaim>) {
    claims
        .iter()
        .enumerate()
        .filter(|(_, claim)| session.held(claim).is_some())
        .map(|(at, claim)| (at, claim.clone()))
        .unzip()
}

/// Returns a value for each of `count` things: these at these positions, and `otherwise` elsewhere.
fn at_their_places<T: Copy>(count: usize, places: Vec<usize>, values: Vec<T>, otherwise: T) -> Vec<T> {
    let mut all = vec![otherwise; count];
    for (place, value) in places.into_iter().zip(values) {
        all[place] = value;
    }
    all
}

#[async_trait]
impl Serve for StartTask {
    async fn serve(self, session: &Arc<Session>) -> Result<Option<StartReply>> {
        let Some(Held { message, .. }) = session.held(&self.claim) else { return Ok(Some(StartReply::Lost)) };
        let crawl = OpenCrawl { terms: Default::default(), started: UnixMs(0) };
        let claimed = Claimed { message, attempts: 0, starts: 0, is_beyond_limit: false, crawl };
        let started = session.frontier.start_task(&claimed).await?;
        if started.is_none() {
            session.put_down([&self.claim]);
        }
        Ok(started)
    }
}

#[async_trait]
impl Serve for Extend {
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<bool>> {
        at_most(self.claims.len(), MAX_THINGS)?;
        let held =
            self.claims.iter().enumerate().filter_map(|(at, claim)| Some((at, session.held(claim)?.message)));
        let (asked, messages): (Vec<usize>, Vec<_>) = held.unzip();
        let extended = match messages.is_empty() {
            true => Vec::new(),
            false => session.frontier.extend(&messages.iter().collect::<Vec<_>>()).await?,
        };
        Ok(at_their_places(self.claims.len(), asked, extended, false))
    }
}

#[async_trait]
impl Serve for Settle {
    /// Settles what the runner holds. The rest was handed out again, or has an outcome.
    async fn serve(self, session: &Arc<Session>) -> Result<Recorded> {
        at_most(self.batch.len(), MAX_THINGS)?;
        let (runner, mut seen) = (session.runner(), HashSet::new());
        let (mut places, mut named, mut batch) = (Vec::new(), Vec::new(), Vec::new());
        for (at, outcome) in self.batch.into_iter().enumerate() {
            let Some(held) = session.held(&outcome.claim) else { continue };
            if !seen.insert(outcome.claim.clone()) {
                continue;
            }
            let spider = Arc::clone(&held.spider);
            named.push(match &outcome.disposition {
                Disposition::Finish(completion) => completion.links.clone(),
                _ => Vec::new(),
            });
            batch.push(guard::settlement(held, &spider, &runner, &session.worker, outcome)?);
            places.push(at);
        }
        if batch.is_empty() {
            return Ok(Recorded::default());
        }
        let claims: Vec<HeldClaim> =
            batch.iter().map(|settlement| HeldClaim::new(&settlement.message)).collect();
        let Settled { ended, not_stored } = session.frontier.settle(batch).await?;
        let not_stored: HashSet<HeldClaim> =
            not_stored.iter().map(|left| HeldClaim::new(&left.message)).collect();
        session.put_down(claims.iter().filter(|claim| !not_stored.contains(claim)));
        let index: BTreeMap<_, usize> =
            claims.iter().enumerate().map(|(number, claim)| ((&claim.crawl, &claim.key), number)).collect();
        let ended = ended.into_iter().filter_map(|Completion { finish, links, .. }| {
            let number = *index.get(&(&finish.claim.crawl, &finish.claim.key))?;
            Some(EndedAt { at: places[number], links: guard::positions(&named[number], &links), finish })
        });
        let ended = ended.collect();
        let left = claims.iter().zip(&places).filter(|(claim, _)| not_stored.contains(claim));
        Ok(Recorded { ended, not_stored: left.map(|(_, at)| *at).collect() })
    }

    fn slot(&self) -> Option<replies::Slot> {
        Some(replies::Slot { name: Self::NAME, most: 32 })
    }
}

#[async_trait]
impl Serve for Leave {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        session.end().await;
        Ok(())
    }
}

#[async_trait]
impl Serve for HasSeen {
    async fn serve(self, session: &Arc<Session>) -> Result<bool> {
        Ok(may_see(session, &self.crawl).await? && session.frontier.has_seen(&self.crawl, &self.url).await?)
    }
}

#[async_trait]
impl Serve for Beat {
    async fn serve(self, session: &Arc<Session>) -> Result<Beaten> {
        let beat = guard::beat(&session.worker, session.frontier.activity().in_flight, self.beat);
        match session.frontier.beat(&beat).await {
            Ok(reply) => Ok(Beaten { reply, now_micros: clock::now_micros() }),
            // This machine's clock is the API's business.
            Err(error) if error.kind == ErrorKind::Refused => {
                warn!(%error, "the clock of the API");
                Ok(Beaten { reply: BeatReply::GoOn, now_micros: clock::now_micros() })
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl Serve for Reserve {
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<Slot>> {
        at_most(self.asks.len(), MAX_THINGS)?;
        let asks: Vec<HostSlotRequest> = self.asks.into_iter().map(bounded).collect();
        Ok(session.engine.ports.hosts.reserve(&asks).await?)
    }
}

/// Returns a request for a slot that keeps others from the host for no longer than an honest one might.
fn bounded(HostSlotRequest { key, request }: HostSlotRequest) -> HostSlotRequest {
    let pace = Pace { interval: request.pace.interval.min(MAX_INTERVAL), ..request.pace };
    HostSlotRequest { key, request: SlotRequest { pace, lapse: request.lapse.min(MAX_LAPSE), ..request } }
}

#[async_trait]
impl Serve for Stay {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        at_most(self.visits.len(), MAX_THINGS)?;
        Ok(session.engine.ports.hosts.stay(&self.visits, self.lapse.min(MAX_LAPSE)).await?)
    }
}

#[async_trait]
impl Serve for LeaveHosts {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        at_most(self.ended.len(), MAX_THINGS)?;
        Ok(session.engine.ports.hosts.leave(&self.ended).await?)
    }
}

#[async_trait]
impl Serve for Late {
    async fn serve(mut self, session: &Arc<Session>) -> Result<()> {
        at_most(self.sent.len(), MAX_THINGS)?;
        self.sent.iter_mut().for_each(|sent| sent.next_after = sent.next_after.min(MAX_INTERVAL));
        Ok(session.engine.ports.hosts.sent_late(&self.sent).await?)
    }
}

#[async_trait]
impl Serve for PushBack {
    async fn serve(self, session: &Arc<Session>) -> Result<Duration> {
        let politeness = &session.relay.settings.politeness;
        let BackoffRequest { status, terms, crawl } = self.refusal;
        let most = politeness.max_backoff;
        let base = terms.base.min(most);
        let terms = BackoffTerms {
            asked: terms.asked.map(|asked| asked.min(most)),
            base,
            jitter: terms.jitter,
            most,
        };
        let crawl = crawl.filter(|crawl| session.holds_of(crawl));
        let refusal = BackoffRequest { status, terms, crawl };
        let until = session.engine.ports.hosts.push_back(&self.key, &refusal).await?;
        Ok(until.wait_from(UnixMs::now()))
    }
}

#[async_trait]
impl Serve for Robots {
    async fn serve(self, session: &Arc<Session>) -> Result<RobotsEntry> {
        let entry = session.engine.ports.hosts.robots(&self.key, self.lease.min(MAX_LAPSE)).await?;
        if entry == RobotsEntry::Yours {
            session.note_robots(&self.key);
        }
        Ok(entry)
    }
}

#[async_trait]
impl Serve for KeepRobots {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        let Self { key, file, ttl } = self;
        check(file.body.len() <= MAX_ROBOTS, "a robots.txt is smaller")?;
        if !session.fetches_robots(&key) {
            return Ok(());
        }
        Ok(session.engine.ports.hosts.keep_robots(&key, &file, ttl.min(MAX_ROBOTS_TTL)).await?)
    }
}

#[async_trait]
impl Serve for GiveUpRobots {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        if !session.fetches_robots(&self.key) {
            return Ok(());
        }
        Ok(session.engine.ports.hosts.give_up_robots(&self.key).await?)
    }
}

#[async_trait]
impl Serve for Look {
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<Option<Visited>>> {
        at_most(self.urls.len(), MAX_THINGS)?;
        match session.works_for(&self.spider) {
            true => Ok(session.engine.ports.pages.look(&self.spider, &self.urls).await?),
            false => Ok(vec![None; self.urls.len()]),
        }
    }
}

/// Checks that a session at a site is one of a spider that the runner works for. In a new session it may have to wait for
/// work of that spider.
fn check_session(session: &Session, id: &SessionId) -> Result<()> {
    let is_one = match &id.owner {
        SessionOwner::Spider(spider) => session.works_for(spider),
        SessionOwner::Shared(_) => session.holds_session(&id.owner),
    };
    let none = || Error::new(ErrorKind::Unavailable, "the runner has no work of a spider with that session");
    if is_one { Ok(()) } else { Err(none().into()) }
}

#[async_trait]
impl Serve for ReadSession {
    async fn serve(self, session: &Arc<Session>) -> Result<Option<StoredSession>> {
        check_session(session, &self.session)?;
        Ok(session.engine.ports.sessions.read(&self.session, self.known).await?)
    }
}

#[async_trait]
impl Serve for WriteSession {
    async fn serve(self, session: &Arc<Session>) -> Result<Option<u64>> {
        let Self { session: id, expected, state } = self;
        check_session(session, &id)?;
        Ok(session.engine.ports.sessions.write(&id, expected, &state).await?)
    }
}

#[async_trait]
impl Serve for Pause {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        let Self { crawl, why } = self;
        if !session.holds_of(&crawl) {
            return Err(not_its_own(&crawl).into());
        }
        let name = session.runner().name.clone();
        info!(runner = %name, crawl = %crawl.id, "a runner pauses a crawl");
        let why = format!("{} (the runner {name})", printable(&why, 1024));
        Ok(session.engine.ports.control.hold(&crawl, &why).await?)
    }
}

#[async_trait]
impl Serve for Text {
    async fn serve(self, session: &Arc<Session>) -> Result<Option<String>> {
        if !may_see(session, &self.crawl).await? {
            return Err(not_its_own(&self.crawl).into());
        }
        let spider = match session.spider_of(&self.crawl) {
            Some(spider) => spider,
            None => match session.engine.spiders.of(&self.crawl).await {
                // The runner holds nothing of it any more, and nobody works by a file that cannot be used.
                Err(error) if error.kind == ErrorKind::Refused => return Ok(None),
                spider => spider?,
            },
        };
        Ok(spider.text.clone())
    }
}

/// Whether a runner may read what a crawl has: it holds work of it, or may be given some.
async fn may_see(session: &Session, crawl: &CrawlRef) -> Result<bool> {
    Ok(session.holds_of(crawl) || session.runner().is_assigned(&session.engine.projects.of(crawl).await?))
}

/// Returns the error for a crawl of which a runner holds nothing, or nothing any more.
fn not_its_own(crawl: &CrawlRef) -> Error {
    Error::new(ErrorKind::Stale, format_args!("the runner holds nothing of the crawl {}", crawl.id))
}

#[async_trait]
impl Serve for Put {
    /// Stores pages in the sinks of their spiders. Pages that the runner holds no more are left out: another fetches them.
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        at_most(self.pages.len(), MAX_PAGES)?;
        let mut by_spider: Vec<(Arc<CrawlSpider>, Vec<Page>)> = Vec::new();
        for page in self.pages {
            at_most(page.items.len(), MAX_ITEMS)?;
            let claim = HeldClaim { crawl: page.crawl.clone(), key: page.key.clone() };
            let Some(held) = session.held(&claim) else {
                check(session.knows(&claim), "it does not hold the page of these items")?;
                continue;
            };
            let spider = Arc::clone(&held.spider);
            let page = guard::page(&held, page)?;
            match by_spider.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &spider)) {
                Some((_, pages)) => pages.push(page),
                None => by_spider.push((spider, vec![page])),
            }
        }
        for (spider, pages) in by_spider {
            for sink in &spider.sinks {
                sink.put(&pages).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Serve for Log {
    async fn serve(self, session: &Arc<Session>) -> Result<()> {
        let Self { entries, are_ends } = self;
        at_most(entries.len(), MAX_THINGS)?;
        let entries: Vec<LogEntry> =
            entries.into_iter().filter_map(|entry| logged(session, entry, are_ends)).collect();
        if entries.is_empty() {
            return Ok(());
        }
        let ports = &session.engine.ports;
        let log = if are_ends { &ports.ended_tasks } else { &ports.logs };
        Ok(log.append(&entries).await?)
    }
}

/// Returns an entry of the log as the runner may write it: in the name of its worker, about its own work.
fn logged(session: &Session, entry: LogEntry, is_end: bool) -> Option<LogEntry> {
    let LogEntry { spider, crawl, key, host, class, ended, .. } = entry;
    let spider = spider.filter(|spider| session.works_for(spider));
    let crawl = crawl.filter(|_| spider.is_some());
    let claim = || {
        Some(HeldClaim {
            crawl: CrawlRef { id: crawl.clone()?, spider: spider.clone()? },
            key: key.as_deref()?.parse().ok()?,
        })
    };
    if is_end && !claim().is_some_and(|claim| session.knows(&claim)) {
        return None;
    }
    let text = |text: String| printable(&text, 8 * 1024);
    Some(LogEntry {
        time: entry.time.min(UnixMs::now()),
        level: entry.level,
        worker: session.worker.clone(),
        spider,
        crawl,
        host: host.map(text),
        key: key.map(text),
        class: class.map(text),
        message: entry.message,
        ended: ended.filter(|_| is_end),
    })
}
