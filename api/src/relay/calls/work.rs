//! The calls about work: it is handed out, started, held, settled and given back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::warn;
use trawl_common::clock;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::ladder::until_another_worker;
use trawl_common::frontier::message::Message;
use trawl_common::names::SpiderName;
use trawl_common::ports::{
    BeatReply, Claim as HeldClaim, Claimed, Completion, Disposition, ErrorKind, OpenCrawl, Settled,
    Settlement, one_each,
};
use trawl_common::relay::{
    Beat, Beaten, Call, Claim, EndedAt, Extend, HasSeen, Leave, Outcome, POLL, Recorded, Settle, Start,
    StartTask,
};
use trawl_common::time::UnixMs;

use super::{MAX_THINGS, Result, Serve, at_most, may_see};
use crate::relay::guard;
use crate::relay::projects::OfWork;
use crate::relay::replies;
use crate::relay::session::{Held, Session};

/// Number of pieces of work for others after which a claim waits. What waits behind them may be the runner's own.
const MANY: usize = 256;

/// Shortest and longest wait after that many.
const FOREIGN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

#[async_trait]
impl Serve for Claim {
    /// Waits for work of the runner's projects. Other work that comes is left to others, and much of it slows the runner
    /// down: it is not to go through a queue that is not for it.
    async fn serve(self, session: &Arc<Session>) -> Result<Vec<Claimed>> {
        let until = Instant::now() + POLL;
        let (mut pause, mut passed) = (FOREIGN.0, 0);
        let most = self.most.clamp(1, MAX_THINGS);
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
                passed += foreign.len();
                session.frontier.settle(foreign.into_iter().map(leave_to_others).collect()).await?;
            }
            // It may have ended meanwhile; then nobody settles these.
            if !mine.is_empty() && !session.ended.is_cancelled() {
                return Ok(mine);
            }
            if passed < MANY {
                continue;
            }
            if Instant::now() + pause >= until {
                return Ok(Vec::new());
            }
            sleep(pause).await;
            (pause, passed) = ((pause * 2).min(FOREIGN.1), 0);
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
        let OfWork { project, of_crawl } = session.engine.projects.of_work(message).await?;
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
        let (asked, messages) = among_held(session, &self.claims);
        let held: Vec<HeldClaim> = messages.iter().map(HeldClaim::new).collect();
        let started = match held.is_empty() {
            true => Vec::new(),
            false => one_each(session.frontier.start(&held).await?, held.len(), "starts")?,
        };
        Ok(at_their_places(self.claims.len(), asked, started, StartReply::Lost))
    }
}

/// Returns the messages of those of the claims that the runner holds, with the positions of these claims.
fn among_held(session: &Session, claims: &[HeldClaim]) -> (Vec<usize>, Vec<Message>) {
    claims.iter().enumerate().filter_map(|(at, claim)| Some((at, session.held(claim)?.message))).unzip()
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
        let (asked, messages) = among_held(session, &self.claims);
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
        let handed_to = spiders_handed_to(&self.batch);
        at_most(handed_to.len(), MAX_THINGS)?;
        let owners = session.engine.projects.owners(handed_to).await?;
        let (mut places, mut named, mut batch) = (Vec::new(), Vec::new(), Vec::new());
        for (at, mut outcome) in self.batch.into_iter().enumerate() {
            let Some(held) = session.held(&outcome.claim) else { continue };
            if !seen.insert(outcome.claim.clone()) {
                continue;
            }
            if let Disposition::Finish(completion) = &mut outcome.disposition {
                let (by, requests) = (&held.message.crawl.spider, &session.relay.requests);
                // Whether a spider is known is looked up once, as that reads a file.
                let mut known = HashMap::new();
                completion.elsewhere.retain(|(to, _)| {
                    let accepts = || owners.contains_key(to) || requests.accepts(to, by);
                    *known.entry(to.clone()).or_insert_with(accepts)
                });
            }
            let spider = Arc::clone(&held.spider);
            named.push(match &outcome.disposition {
                Disposition::Finish(completion) => completion.links.clone(),
                _ => Vec::new(),
            });
            batch.push(guard::settlement(held, &spider, &runner, &owners, &session.worker, outcome)?);
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

/// Returns the other spiders to which outcomes hand work.
fn spiders_handed_to(batch: &[Outcome]) -> BTreeSet<SpiderName> {
    let completions = batch.iter().filter_map(|outcome| match &outcome.disposition {
        Disposition::Finish(completion) => Some(completion),
        _ => None,
    });
    completions.flat_map(|completion| completion.elsewhere.iter().map(|(spider, _)| spider.clone())).collect()
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
