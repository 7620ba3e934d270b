//! The sweep: records that were lost from sight become new again, what can end ends, what is over is cleared up.
//!
//! One process of the fleet does it, in rounds. A round goes through the records of every running crawl, some
//! hundred at a time with a rest after each, so that it costs Redis a few per cent however many there are.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;
use std::time::Duration;

use trawl_common::crawl::CrawlState;
use trawl_common::lane::Lane;
use trawl_common::line::Line;
use trawl_common::message::Message;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Mark, Result, Sweep};
use trawl_common::time::UnixMs;
use trawl_common::url::CanonicalUrl;

use super::frontier::corrupt;
use super::keys::{self, CrawlKeys};
use super::{RedisFrontier, failed};

/// What Redis is left alone for after some hundred records, which take it about a millisecond.
const BREATH: Duration = Duration::from_millis(40);

/// So many hundred records of a crawl that has done all that it may are skipped in one step of a round: a producer may
/// still be adding to them.
const CLEAR_STEPS: u32 = 100;

/// Where a round is.
pub(super) struct Round {
    left: VecDeque<CrawlRef>,
    /// The place among the records of the first of these; "0" is the start.
    cursor: String,
    tides: Tides,
}

/// What probes have told of each line, in the order of [`Line::ALL`].
struct Tides {
    /// When the last one was sent that came back.
    tide: [u64; Line::ALL.len()],
    /// When the last one was sent that came back without the one before it.
    gap: [u64; Line::ALL.len()],
}

impl Tides {
    fn earliest(&self) -> u64 {
        self.tide.into_iter().min().unwrap_or_default()
    }
}

impl RedisFrontier {
    /// Goes on with the round, or begins one, until there has been something to look through.
    pub(super) async fn sweep_step(&self, worker: &WorkerId) -> Result<Sweep> {
        let mut turn = self.round.lock().await;
        let mut sweep = Sweep { rest: self.patience / 12, ..Sweep::default() };
        if !self.is_sweeper(worker).await? {
            *turn = None;
            return Ok(sweep);
        }
        let mut round = match turn.take() {
            Some(round) => round,
            None => self.begin_round(&mut sweep).await?,
        };
        while let Some(crawl) = round.left.front().cloned() {
            let records = self.sweep_crawl(&crawl, &mut round, &mut sweep).await?;
            if round.cursor == "0" {
                round.left.pop_front();
            }
            if records {
                sweep.rest = if sweep.lost.is_empty() { BREATH } else { Duration::ZERO };
                *turn = Some(round);
                break;
            }
        }
        Ok(sweep)
    }

    async fn is_sweeper(&self, worker: &WorkerId) -> Result<bool> {
        let mut call = self.scripts.hold.key(keys::SWEEPER);
        call.arg(worker.as_str()).arg((self.patience / 2).as_millis() as u64);
        self.run(&call).await
    }

    async fn begin_round(&self, sweep: &mut Sweep) -> Result<Round> {
        let known: HashMap<String, u64> = self.query(redis::cmd("HGETALL").arg(keys::TIDES)).await?;
        let now = self.now().await?;
        // What lies ahead is from before the clock was set back.
        let of = |field: &str| known.get(field).copied().filter(|&at| at <= now.0).unwrap_or_default();
        let before = UnixMs(of("sent"));
        if before.plus(self.patience / 2) <= now {
            let () = self.query(redis::cmd("HSET").arg(keys::TIDES).arg("sent").arg(now.0)).await?;
            sweep.probe = Some(Mark { sent: now, before });
        }
        let tides = Tides {
            tide: Line::ALL.map(|line| of(line.as_str())),
            gap: Line::ALL.map(|line| of(&format!("gap:{line}"))),
        };
        Ok(Round { left: self.crawls_to_tend().await?, cursor: "0".to_owned(), tides })
    }

    /// The crawls that are not over, and those whose end has not been seen to: of all that ever were, a few.
    async fn crawls_to_tend(&self) -> Result<VecDeque<CrawlRef>> {
        let all = self.all_crawls().await?;
        if all.is_empty() {
            return Ok(VecDeque::new());
        }
        let mut pipeline = redis::pipe();
        for crawl in &all {
            pipeline.cmd("HMGET").arg(CrawlKeys::new(crawl).crawl).arg("cleared").arg("announced");
        }
        let seen_to: Vec<(Option<u8>, Option<u8>)> =
            pipeline.query_async(&mut self.redis.clone()).await.map_err(failed)?;
        let rest = all.into_iter().zip(seen_to).filter(|(_, seen_to)| *seen_to != (Some(1), Some(1)));
        Ok(rest.map(|(crawl, _)| crawl).collect())
    }

    /// One step through a crawl. Returns whether there was something to look through.
    async fn sweep_crawl(&self, crawl: &CrawlRef, round: &mut Round, sweep: &mut Sweep) -> Result<bool> {
        let fields = redis::cmd("HMGET")
            .arg(CrawlKeys::new(crawl).crawl)
            .arg("status")
            .arg("announced")
            .arg("cleared")
            .arg("done")
            .arg("max_pages")
            .to_owned();
        let (status, announced, cleared, done, most): Told = self.query(&fields).await?;
        let is_full = most.is_some() && done >= most;
        match status.and_then(|status| status.parse().ok()) {
            Some(CrawlState::Running) => {
                let mut steps = if is_full { CLEAR_STEPS } else { 0 };
                while steps > 0 && self.clear_step(crawl).await? > 0 {
                    steps -= 1;
                }
                self.search(crawl, round, sweep).await
            }
            Some(CrawlState::Finished | CrawlState::Cancelled) => {
                self.name_corrupt(crawl).await?;
                let left = if cleared.is_none() { self.clear_step(crawl).await? } else { 0 };
                if left == 0 && announced == Some(0) {
                    sweep.ended.extend(self.read_books(crawl).await?);
                }
                Ok(left > 0)
            }
            Some(CrawlState::Pending | CrawlState::Paused) | None => Ok(false),
        }
    }

    async fn search(&self, crawl: &CrawlRef, round: &mut Round, sweep: &mut Sweep) -> Result<bool> {
        let keys = CrawlKeys::new(crawl);
        if round.cursor == "0" {
            self.name_corrupt(crawl).await?;
        }
        if round.cursor == "0" && self.tend(crawl, &keys, &round.tides).await? {
            sweep.awaiting.push(crawl.clone());
        }
        let mut call = self.scripts.sweep.prepare_invoke();
        call.key(&keys.pending).key(&keys.outbox).arg(crawl.id.as_str()).arg(&round.cursor);
        call.arg(self.patience.as_millis() as u64).arg(self.possession().as_millis() as u64);
        for known in [round.tides.tide, round.tides.gap] {
            for line in [Line::Due, Line::Priority, Line::Bulk] {
                call.arg(known[line as usize]);
            }
        }
        let answer: Vec<Vec<u8>> = self.run(&call).await?;
        let Some((next, records)) = answer.split_first() else { return Err(corrupt("sweep")) };
        let mut unreadable = Vec::new();
        for record in records.chunks_exact(6) {
            match lost_message(crawl, record) {
                Some(message) => sweep.lost.push(message),
                None => unreadable.push(record[0].clone()),
            }
        }
        self.quarantine(crawl, &unreadable).await?;
        round.cursor = String::from_utf8_lossy(next).into_owned();
        Ok(round.cursor != "0" || !sweep.lost.is_empty())
    }

    /// Ends what can end. Returns whether the crawl waits for what is parked.
    async fn tend(&self, crawl: &CrawlRef, keys: &CrawlKeys, tides: &Tides) -> Result<bool> {
        let mut call = self.scripts.tend.prepare_invoke();
        call.key(&keys.crawl).key(&keys.pending).key(&keys.leases);
        call.arg(crawl.id.as_str()).arg(tides.earliest()).arg(self.patience.as_millis() as u64);
        let told: String = self.run(&call).await?;
        Ok(told == "await")
    }

    /// Clears up after a crawl that is over, or that has done all that it may. Returns how much there was to do.
    pub(super) async fn clear_step(&self, crawl: &CrawlRef) -> Result<u64> {
        let keys = CrawlKeys::new(crawl);
        let mut call = self.scripts.clear.prepare_invoke();
        call.key(&keys.crawl).key(&keys.pending).key(&keys.gone).key(&keys.outbox);
        call.key(&keys.own.plain).key(&keys.own.packed).key(&keys.begun).key(&keys.hosts);
        call.arg(crawl.id.as_str());
        let answer: Vec<String> = self.run(&call).await?;
        let Some((left, gone)) = answer.split_first() else { return Err(corrupt("clear")) };
        self.forget(&keys, gone).await?;
        left.parse().map_err(|_| corrupt("clear"))
    }
}

/// What is read of a crawl before a step through it: status, announced, cleared, done, max_pages.
type Told = (Option<String>, Option<u8>, Option<u8>, Option<u64>, Option<u64>);

/// The message of a record; `None` if it cannot be read.
fn lost_message(crawl: &CrawlRef, record: &[Vec<u8>]) -> Option<Message> {
    let record: Vec<&str> = record.iter().map(|part| str::from_utf8(part).ok()).collect::<Option<_>>()?;
    let [url, lane, depth, deadline, referrer, until] = record[..] else { return None };
    Some(Message {
        depth: depth.parse().ok()?,
        deadline: optional(deadline)?.map(UnixMs),
        until: optional(until)?.map(UnixMs),
        // A hint for people.
        referrer: referrer.parse().ok(),
        ..Message::seed(CanonicalUrl::recorded(url).ok()?, crawl.clone(), lane.parse::<Lane>().ok()?)
    })
}

/// A part of a record that may be absent; `None` if it is there and cannot be read.
fn optional<T: FromStr>(part: &str) -> Option<Option<T>> {
    if part == "-" { Some(None) } else { part.parse().ok().map(Some) }
}
