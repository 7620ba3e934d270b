//! Orders about crawls, hosts and dead letters while a fleet works, and checks of their effects.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::beside::Beside;
use super::fleet::Programs;
use super::ledger::{Quiet, Replay, SETTLING};
use super::order::order;
use super::scenario::CRAWL;

/// The host of every site here.
const HOST: &str = "127.0.0.1";
/// Time for which a slot of a host that was granted before a block remains usable.
pub(super) const HAD_LEAVE: Duration = Duration::from_secs(1);

/// Gives orders, and records them.
pub struct Operator {
    start: Instant,
    /// The periods in which no page of the crawl may be requested.
    pub quiet: Vec<Quiet>,
    /// The pages that were replayed.
    pub replays: Vec<Replay>,
    /// The crawls that run beside the crawl under test, or did.
    beside: Vec<Beside>,
}

impl Operator {
    /// Returns an operator without orders. Times are since `start`.
    pub fn new(start: Instant) -> Self {
        Self { start, quiet: Vec::new(), replays: Vec::new(), beside: Vec::new() }
    }

    /// Pauses the crawl.
    pub async fn pause(&mut self, programs: &Programs) -> io::Result<()> {
        order(programs, &["pause", CRAWL]).await?;
        self.begin_quiet("paused", Duration::ZERO);
        Ok(())
    }

    /// Resumes the crawl.
    pub async fn resume(&mut self, programs: &Programs) -> io::Result<()> {
        self.end_quiet();
        order(programs, &["resume", CRAWL]).await.map(drop)
    }

    /// Blocks the host of all pages.
    pub async fn block(&mut self, programs: &Programs) -> io::Result<()> {
        order(programs, &["hosts", "block", HOST]).await?;
        self.begin_quiet("blocked", HAD_LEAVE);
        Ok(())
    }

    /// Lifts the block, and replays the skipped URLs.
    pub async fn unblock(&mut self, programs: &Programs) -> io::Result<()> {
        self.end_quiet();
        order(programs, &["hosts", "unblock", HOST]).await?;
        let skipped = ["--crawl", CRAWL, "--reason", "blocked"];
        loop {
            // A worker that learnt of the block just before it was lifted skips its URL a moment later.
            sleep(SETTLING).await;
            order(programs, &[&["dlq", "replay"], &skipped[..]].concat()).await?;
            if order(programs, &[&["dlq", "list", "--json"], &skipped[..]].concat()).await?.is_empty() {
                return Ok(());
            }
        }
    }

    /// Replays every dead letter of the crawl.
    pub async fn replay(&mut self, programs: &Programs) -> io::Result<()> {
        let listed = order(programs, &["dlq", "list", "--json", "--crawl", CRAWL]).await?;
        let dead_letters = listed.lines().map(|line| Ok(serde_json::from_str::<Value>(line)?["url"].clone()));
        let urls: io::Result<Vec<Value>> = dead_letters.collect();
        let urls: Vec<String> = urls?.iter().filter_map(|url| url.as_str().map(str::to_owned)).collect();
        if urls.is_empty() {
            return Ok(());
        }
        let at = self.start.elapsed();
        self.replays.extend(urls.iter().map(|url| Replay { url: url.clone(), at }));
        let words = ["dlq", "replay", "--crawl", CRAWL].into_iter().chain(urls.iter().map(String::as_str));
        order(programs, &words.collect::<Vec<_>>()).await.map(drop)
    }

    /// Starts a crawl beside, and cancels it half-way.
    pub async fn cancel(&mut self, programs: &Programs) -> io::Result<()> {
        let beside = Beside::cancelled(programs, self.start, self.beside.len()).await?;
        self.beside.push(beside);
        Ok(())
    }

    /// Runs a crawl beside whose sink takes nothing for `time`.
    pub async fn stick(&mut self, programs: &Programs, time: Duration) -> io::Result<()> {
        let beside = Beside::stuck(programs, self.start, self.beside.len(), time).await?;
        self.beside.push(beside);
        Ok(())
    }

    /// Runs a crawl beside whose sink is on a disk that is full for `time`.
    pub async fn fill(&mut self, programs: &Programs, time: Duration) -> io::Result<()> {
        let beside = Beside::full(programs, self.start, self.beside.len(), time).await?;
        self.beside.push(beside);
        Ok(())
    }

    /// Whether `url` is a page of a crawl that ran beside.
    pub fn is_beside(&self, url: &str) -> bool {
        self.beside.iter().any(|crawl| crawl.has(url))
    }

    /// Returns the problems of the crawls that ran beside.
    pub async fn problems(&self, programs: &Programs) -> Vec<String> {
        let mut problems = Vec::new();
        for crawl in &self.beside {
            problems.extend(crawl.problem(programs).await);
        }
        problems
    }

    fn begin_quiet(&mut self, why: &'static str, after: Duration) {
        let from = self.start.elapsed() + after;
        self.quiet.push(Quiet { why, from, to: from });
    }

    fn end_quiet(&mut self) {
        if let Some(quiet) = self.quiet.last_mut() {
            quiet.to = self.start.elapsed();
        }
    }
}
