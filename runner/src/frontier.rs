//! The frontier of a runner: claims and settles work by calls to the API.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::message::Message;
use trawl_common::health::Health;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{
    self, Activity, BeatReply, Claim, Claimed, Completion, Disposition, Error, ErrorKind, Fatal, Frontier,
    Heartbeat, Join, Joined, Joining, Settled, Settlement, one_each,
};
use trawl_common::relay::{
    self, EndedAt, Extend, HasSeen, Outcome, Progress, Recorded, Settle, Start, StartTask,
};
use trawl_common::web::url::CanonicalUrl;

use crate::link::{Link, Session};

/// Maximum number of links in one call that settles, unless one page has more.
const MAX_LINKS: usize = 2000;

/// The engine behind the API.
pub(crate) struct RelayEngine(pub(crate) Arc<Link>);

impl Join for RelayEngine {
    fn join(&self, Joining { settings, health, tasks, stop, .. }: Joining) -> Joined {
        let link = Arc::clone(&self.0);
        link.make_room(settings.worker.prefetch, tasks);
        let revoked = Arc::clone(&link);
        let maintenance = Box::pin(async move {
            revoked.revoked().await;
            Fatal(Error::new(ErrorKind::Refused, "the runner has no access any more"))
        });
        let (urls, tasks) = (Claims::new(false), Claims::new(true));
        Joined {
            frontier: Arc::new(RelayFrontier { link, health, stop: stop.child_token(), urls, tasks }),
            maintenance,
        }
    }
}

struct RelayFrontier {
    link: Arc<Link>,
    health: Arc<Health>,
    stop: CancellationToken,
    urls: Claims,
    tasks: Claims,
}

/// The claims of URLs, or those of tasks.
struct Claims {
    are_tasks: bool,
    state: Mutex<Claiming>,
}

/// The state that a cancelled call leaves to the next one.
#[derive(Default)]
struct Claiming {
    asked: Option<AbortOnDropHandle<Result<Vec<Claimed>, Fatal>>>,
    ready: VecDeque<Claimed>,
}

impl Claims {
    fn new(are_tasks: bool) -> Self {
        Self { are_tasks, state: Mutex::default() }
    }
}

impl RelayFrontier {
    /// Returns the next work of a kind; none once the runner is to stop.
    async fn claim_of(&self, claims: &Claims, most: usize) -> Result<Vec<Claimed>, Fatal> {
        let claimed = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            claimed = self.next(claims, most.max(1)) => Some(claimed),
        };
        match claimed {
            Some(claimed) => claimed,
            None => pending().await,
        }
    }

    async fn next(&self, claims: &Claims, most: usize) -> Result<Vec<Claimed>, Fatal> {
        let mut state = claims.state.lock().await;
        while state.ready.is_empty() {
            let asking = || AbortOnDropHandle::new(tokio::spawn(self.asking(claims.are_tasks, most)));
            let answered = state.asked.get_or_insert_with(asking).await;
            state.asked = None;
            // It is not aborted while it is awaited, and a panic was logged where it happened.
            state.ready.extend(answered.unwrap_or_else(|_| Ok(Vec::new()))?);
        }
        let count = most.min(state.ready.len());
        Ok(state.ready.drain(..count).collect())
    }

    /// Asks for work, which may be none. The number makes repeated calls one: a lost reply loses nothing.
    fn asking(&self, tasks: bool, most: usize) -> impl Future<Output = Result<Vec<Claimed>, Fatal>> + use<> {
        let (link, health, number) = (Arc::clone(&self.link), Arc::clone(&self.health), self.link.number());
        async move {
            let call = relay::Claim { tasks, most };
            let claiming = || async {
                let session = link.session().await?;
                let claimed = link.call_in(&session, &call, Some(number)).await?;
                session.take(&claimed);
                link.note_claimed(claimed.len());
                Ok(claimed)
            };
            health.insist(if tasks { "claiming tasks" } else { "claiming URLs" }, claiming).await
        }
    }

    /// Settles a part of a batch. What another session has handed out is not this runner's any more.
    async fn settle_part(&self, part: Vec<Settlement>, into: &mut Settled) -> Result<(), Fatal> {
        let number = self.link.number();
        let settling = || async {
            let session = self.link.session().await?;
            let mine: Vec<usize> = held(&session, &part);
            let batch = mine.iter().map(|&at| outcome(&part[at])).collect();
            let recorded = match mine.is_empty() {
                true => Recorded::default(),
                false => self.link.call_in(&session, &Settle { batch }, Some(number)).await?,
            };
            Ok((session, mine, recorded))
        };
        let (session, mine, Recorded { ended, not_stored }) =
            self.health.insist("settling", settling).await?;
        let mut part: Vec<Option<Settlement>> = part.into_iter().map(Some).collect();
        let mut take = |at: usize| mine.get(at).and_then(|&at| part[at].take());
        into.not_stored.extend(not_stored.into_iter().filter_map(&mut take));
        for EndedAt { at, finish, links } in ended {
            let Some(Settlement { message, disposition: Disposition::Finish(completion) }) = take(at) else {
                continue;
            };
            session.settle([&message]);
            let mut known = completion.links.into_iter().map(Some).collect::<Vec<_>>();
            let links = links.into_iter().filter_map(|at| known.get_mut(at).and_then(Option::take)).collect();
            into.ended.push(Completion { finish, links, ..*completion });
        }
        session.settle(part.iter().flatten().map(|settlement| &settlement.message));
        Ok(())
    }
}

/// Returns the positions of the settlements whose work a session has handed out.
fn held(session: &Session, part: &[Settlement]) -> Vec<usize> {
    let is_held = |settlement: &Settlement| session.holds(&Claim::new(&settlement.message));
    (0..part.len()).filter(|&at| is_held(&part[at])).collect()
}

fn outcome(Settlement { message, disposition }: &Settlement) -> Outcome {
    Outcome { claim: Claim::new(message), progress: Progress::new(message), disposition: disposition.clone() }
}

/// Divides a batch into parts with a bounded number of links.
fn parts(batch: Vec<Settlement>) -> Vec<Vec<Settlement>> {
    let links = |settlement: &Settlement| match &settlement.disposition {
        Disposition::Finish(completion) => completion.links.len() + completion.elsewhere.len(),
        _ => 0,
    };
    let (mut parts, mut room) = (Vec::<Vec<Settlement>>::new(), 0);
    for settlement in batch {
        // One for the settlement itself.
        let needed = 1 + links(&settlement);
        match parts.last_mut() {
            Some(part) if needed <= room => {
                room -= needed;
                part.push(settlement);
            }
            _ => {
                room = MAX_LINKS.saturating_sub(needed);
                parts.push(vec![settlement]);
            }
        }
    }
    parts
}

#[async_trait]
impl Frontier for RelayFrontier {
    async fn claim(&self, max: usize) -> Result<Vec<Claimed>, Fatal> {
        self.claim_of(&self.urls, max).await
    }

    async fn claim_tasks(&self, max: usize) -> Result<Vec<Claimed>, Fatal> {
        self.claim_of(&self.tasks, max).await
    }

    async fn start(&self, urls: &[Claim]) -> Result<Vec<StartReply>, Fatal> {
        let call = Start { claims: urls.to_vec() };
        let starting = async || one_each(self.link.call(&call).await?, urls.len(), "starts");
        self.health.insist("counting starts", starting).await
    }

    async fn start_task(&self, task: &Claimed) -> Result<Option<StartReply>, Fatal> {
        let call = StartTask { claim: Claim::new(&task.message) };
        let start = self.health.insist("counting a start", || self.link.call(&call)).await?;
        if start.is_none() {
            // It is handed out again, after the urgent one.
            self.link.session().await.map_err(Fatal)?.settle([&task.message]);
        }
        Ok(start)
    }

    async fn extend(&self, urls: &[&Message]) -> Result<Vec<bool>, Fatal> {
        let call = Extend { claims: urls.iter().map(|message| Claim::new(message)).collect() };
        let extending = async || one_each(self.link.call(&call).await?, urls.len(), "leases");
        self.health.insist("extending leases", extending).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Settled, Fatal> {
        let mut settled = Settled::default();
        for part in parts(batch) {
            self.settle_part(part, &mut settled).await?;
        }
        Ok(settled)
    }

    async fn release(&self) -> Result<(), Fatal> {
        self.stop.cancel();
        for claims in [&self.urls, &self.tasks] {
            *claims.state.lock().await = Claiming::default();
        }
        self.health.insist("giving back", || self.link.leave()).await
    }

    async fn has_seen(&self, crawl: &CrawlRef, url: &CanonicalUrl) -> Result<bool, Fatal> {
        let call = HasSeen { crawl: crawl.clone(), url: url.clone() };
        self.health.insist("looking for a URL", || self.link.call(&call)).await
    }

    async fn beat(&self, beat: &Heartbeat) -> ports::Result<BeatReply> {
        self.link.beat(beat).await
    }

    /// Messages of strangers are checked by the API.
    fn activity(&self) -> Activity {
        Activity { in_flight: self.link.in_flight(), unproven: 0 }
    }
}
