//! The sweep: resets lost records to new, ends crawls that can end, clears up crawls that are over.
//!
//! One process of the fleet sweeps. Every few seconds it handles the small parts: probes, crawls that can end, those to
//! be forgotten (`sweeper.rs`). In between it searches the records of every running crawl, a thousand at a time with a
//! rest after each. The sweep position is kept in Redis, so that another process can continue from there.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::json;
use trawl_common::events::{CrawlEvent, HostEvent};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::{Key, Work};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;
use trawl_engine::{Probe, ProbeTimes, Recovery, Sweep};

use crate::redis::RedisRecords;
use crate::redis::keys::{self, CrawlKeys};
use crate::redis::recovery::sweep_position::{SweepPosition, Watermarks};
use crate::redis::script_calls::{by_crawl, corrupt};

/// Number of records that one step searches.
const STEP: u64 = 1000;

/// Maximum rest for Redis after a step.
const MAX_REST: Duration = Duration::from_millis(40);

/// The rest after a step is at least this many times the duration of the step, so a sweep takes at most a third of
/// Redis's time, and that much only with millions of records.
const REST_FACTOR: u32 = 2;

impl SweepPosition {
    /// Returns the rest for Redis after a step that took `took`, such that a round takes at most `lost_after` if Redis
    /// can afford it.
    fn rest(&self, took: Duration, lost_after: Duration) -> Duration {
        let steps = u32::try_from(self.records.div_ceil(STEP)).unwrap_or(u32::MAX);
        (lost_after / steps.max(1)).saturating_sub(took).min(MAX_REST).max(took * REST_FACTOR)
    }
}

#[async_trait]
impl Recovery for RedisRecords {
    /// Continues the round, or starts one, until a step has had records to search.
    async fn sweep(&self, worker: &WorkerId) -> Result<Sweep> {
        let mut turn = self.position.lock().await;
        let mut sweep = Sweep { rest: self.sweeper_interval(), ..Sweep::default() };
        let round = match turn.take() {
            Some(round) if round.looked.elapsed() < self.sweeper_interval() => Some(round),
            stale => self.run_sweeper(worker, stale, &mut sweep).await?,
        };
        let Some(mut round) = round else { return Ok(sweep) };
        while !(round.clearing.is_empty() && round.left.is_empty()) {
            let began = Instant::now();
            if self.step(&mut round, &mut sweep).await? {
                let rest = round.rest(began.elapsed(), self.lost_after);
                // Republishing takes time by itself.
                sweep.rest = if sweep.lost.is_empty() { rest } else { Duration::ZERO };
                *turn = Some(round);
                return Ok(sweep);
            }
        }
        self.drop_place().await?;
        Ok(sweep)
    }

    async fn probe_sent(&self, times: ProbeTimes) -> Result<()> {
        self.write(redis::cmd("HSET").arg(keys::WATERMARKS).arg("sent").arg(times.sent.0)).await
    }

    async fn probes_returned(&self, probes: &[Probe]) -> Result<()> {
        let mut call = self.scripts.watermark.key(keys::WATERMARKS);
        for probe in probes {
            call.arg(probe.source.as_str()).arg(probe.times.sent.0).arg(probe.times.previous.0);
        }
        self.redis.run(&call).await
    }

    async fn await_parked(&self, crawl: &CrawlRef, longest: Duration) -> Result<()> {
        let mut call = self.scripts.wait.on(&CrawlKeys::new(crawl));
        // A message that has left a rung and is not yet in `due_queue` is in neither.
        call.arg((longest + self.lost_after).as_millis() as u64);
        self.redis.run(&call).await
    }

    async fn dead_letters_published(&self, dead_letters: &[DeadLetter]) -> Result<()> {
        for (crawl, places) in by_crawl(dead_letters, |dead_letter| &dead_letter.crawl) {
            self.mark_reported(crawl, places.into_iter().map(|at| dead_letters[at].url.as_str())).await?;
        }
        Ok(())
    }

    async fn announced(&self, event: &CrawlEvent) -> Result<()> {
        if !event.kind.is_end() {
            return self.keep_announced(event).await;
        }
        let crawl = &event.stats.crawl_ref();
        self.write(redis::cmd("HSET").arg(CrawlKeys::new(crawl).crawl).arg("announced").arg(1)).await
    }

    async fn hosts_announced(&self, event: &HostEvent) -> Result<()> {
        match &self.backup {
            Some(backup) => backup.hosts.news_announced(event).await,
            None => Ok(()),
        }
    }
}

impl RedisRecords {
    /// Does one step in the next crawl. Returns whether there was anything to search.
    async fn step(&self, round: &mut SweepPosition, sweep: &mut Sweep) -> Result<bool> {
        if let Some((crawl, is_announced)) = round.clearing.front() {
            let cleared = self.clear_step(crawl).await;
            let left = self.unless_wrong_type(crawl, cleared).await?;
            if left == Some(0) && !is_announced {
                sweep.news.extend(self.news_of_end(crawl).await?);
            }
            let goes_on = left.is_some_and(|left| left > 0);
            if !goes_on {
                round.clearing.pop_front();
            }
            return Ok(goes_on);
        }
        let Some(crawl) = round.left.front().cloned() else { return Ok(false) };
        let searched = self.search(&crawl, round, sweep).await;
        round.cursor = self.unless_wrong_type(&crawl, searched).await?.unwrap_or_else(|| "0".to_owned());
        if round.cursor == "0" {
            round.left.pop_front();
        }
        Ok(round.cursor != "0" || !sweep.lost.is_empty())
    }

    /// Searches some records of a crawl for lost ones. Returns the cursor of the next step.
    pub(crate) async fn search(
        &self,
        crawl: &CrawlRef,
        round: &SweepPosition,
        sweep: &mut Sweep,
    ) -> Result<String> {
        let Watermarks { delivered, lost_before } = &round.watermarks;
        let by_queue = |known: &[u64; SourceQueue::ALL.len()]| -> HashMap<&str, u64> {
            SourceQueue::ALL.iter().map(|queue| (queue.as_str(), known[*queue as usize])).collect()
        };
        let ask = json!({
            "id": crawl.id.as_str(),
            "cursor": round.cursor,
            "count": STEP,
            "lost_after": self.lost_after.as_millis() as u64,
            "possession": self.possession().as_millis() as u64,
            "delivered": by_queue(delivered),
            "lost_before": by_queue(lost_before),
        });
        let mut call = self.scripts.sweep.on(&CrawlKeys::new(crawl));
        call.arg(ask.to_string());
        let answer: Vec<Vec<u8>> = self.redis.run(&call).await?;
        let Some((next, records)) = answer.split_first() else { return Err(corrupt("sweep")) };
        let mut unreadable = Vec::new();
        for record in records.chunks_exact(8) {
            match waiting_message(crawl, record) {
                Some(message) => sweep.lost.push(message),
                None => unreadable.push(record[0].clone()),
            }
        }
        self.quarantine(crawl, &unreadable).await?;
        Ok(String::from_utf8_lossy(next).into_owned())
    }

    /// Clears up a crawl that is over, or that has reached its page limit. Returns the number of records handled.
    pub(crate) async fn clear_step(&self, crawl: &CrawlRef) -> Result<u64> {
        let keys = CrawlKeys::new(crawl);
        let mut call = self.scripts.clear.on(&keys);
        call.arg(crawl.id.as_str()).arg(self.keep.failed.as_secs());
        let answer: Vec<String> = self.redis.run(&call).await?;
        let Some((left, gone)) = answer.split_first() else { return Err(corrupt("clear")) };
        self.forget(&keys, gone).await?;
        left.parse().map_err(|_| corrupt("clear"))
    }
}

/// Parses a record that a script returned, followed by the time since when it could have been fetched, into its message;
/// `None` if it cannot be read.
fn waiting_message(crawl: &CrawlRef, record: &[Vec<u8>]) -> Option<Message> {
    let (since, record) = record.split_last()?;
    let since = UnixMs(str::from_utf8(since).ok()?.parse().ok()?);
    Some(Message { since: Some(since), ..lost_message(crawl, record)? })
}

/// Parses a record that a script returned into its message; `None` if it cannot be read.
pub(crate) fn lost_message(crawl: &CrawlRef, record: &[Vec<u8>]) -> Option<Message> {
    let record: Vec<&str> = record.iter().map(|part| str::from_utf8(part).ok()).collect::<Option<_>>()?;
    let [key, lane, depth, deadline, referrer, until, payload] = record[..] else { return None };
    Some(Message {
        depth: depth.parse().ok()?,
        deadline: optional(deadline)?.map(UnixMs),
        until: optional(until)?.map(UnixMs),
        // Informational only.
        referrer: referrer.parse().ok(),
        ..Message::new(
            Work::stored(Key::recorded(key).ok()?, payload)?,
            crawl.clone(),
            lane.parse::<Lane>().ok()?,
        )
    })
}

/// Parses an optional part of a record; `None` if it is present and cannot be read.
fn optional<T: FromStr>(part: &str) -> Option<Option<T>> {
    if part == "-" { Some(None) } else { part.parse().ok().map(Some) }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn rest(records: u64, took_ms: u64) -> u128 {
        let round = SweepPosition {
            looked: Instant::now(),
            clearing: VecDeque::new(),
            left: VecDeque::new(),
            cursor: "0".to_owned(),
            records,
            watermarks: Watermarks::default(),
        };
        round.rest(Duration::from_millis(took_ms), Duration::from_secs(60)).as_millis()
    }

    #[test]
    fn a_round_is_over_within_the_patience_if_redis_can_afford_it() {
        assert_eq!(rest(0, 1), 40, "few records are in no hurry");
        assert_eq!(rest(1_000_000, 2), 40);
        assert_eq!(rest(5_000_000, 2), 10);
        assert_eq!(rest(50_000_000, 2), 4, "a third of Redis' time is the most");
    }
}
