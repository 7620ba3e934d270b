//! Keeps a program alive, and decides which requests have failed when it dies.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::warn;
use trawl_common::text::printable;

use super::Asked;
use super::session::{Broken, Session, Unfinished};
use crate::ended::Ended;
use crate::once::overdue;
use crate::program::Program;
use crate::supervised::End;

/// Shortest and longest delay before restarting a program that died without answering anything. It doubles each time.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// Keeps a program alive while there may be requests.
pub(super) struct Driver {
    program: Arc<Program>,
    concurrency: usize,
    pub(super) requests: Requests,
    /// Number of deaths without an answer in a row.
    deaths: u32,
}

/// The requests to give to the program, in order.
pub(super) struct Requests {
    new: mpsc::Receiver<Asked>,
    /// Requests that were in flight when the program was ended because of another one.
    again: VecDeque<Asked>,
    /// Requests that were in flight together when the program died: each is given to it alone, to find the one that
    /// kills it.
    suspects: VecDeque<Asked>,
}

impl Requests {
    /// Returns the next request that is still awaited and whether it must run alone, or `None` if there will be none.
    /// Cancel safe.
    pub(super) async fn next(&mut self) -> Option<(Asked, bool)> {
        loop {
            let (asked, is_suspect) = match self.suspects.pop_front() {
                Some(suspect) => (suspect, true),
                None => match self.again.pop_front() {
                    Some(asked) => (asked, false),
                    None => (self.new.recv().await?, false),
                },
            };
            if asked.is_awaited() {
                return Some((asked, is_suspect));
            }
        }
    }

    /// Whether the next request must run alone.
    pub(super) fn has_suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    fn put_back(&mut self, first: Asked, is_suspect: bool) {
        if is_suspect { self.suspects.push_front(first) } else { self.again.push_front(first) }
    }
}

impl Driver {
    pub(super) fn new(program: Arc<Program>, concurrency: usize, new: mpsc::Receiver<Asked>) -> Self {
        let (again, suspects) = Default::default();
        Self { program, concurrency, requests: Requests { new, again, suspects }, deaths: 0 }
    }

    /// Runs until there are no more requests. Starts the program when there is a request and it is not running.
    pub(super) async fn run(mut self) {
        while let Some((first, is_suspect)) = self.requests.next().await {
            self.back_off().await;
            match Session::start(&self.program, self.concurrency).await {
                Ok(session) => {
                    self.requests.put_back(first, is_suspect);
                    self.live(session).await;
                }
                Err(error) => {
                    self.deaths += 1;
                    first.ends(Ended::NotRun(error.to_string()));
                }
            }
        }
    }

    async fn back_off(&self) {
        if let Some(doublings) = self.deaths.checked_sub(1) {
            sleep((BACKOFF.0 * 2u32.saturating_pow(doublings.min(16))).min(BACKOFF.1)).await;
        }
    }

    /// Gives requests to one process until it ends, and settles the ones that it left unfinished.
    async fn live(&mut self, mut session: Session) {
        let broken = session.run(&mut self.requests).await;
        let (end, unfinished, has_answered) = session.end(&broken).await;
        let is_at_fault = !matches!(broken, Broken::NoMoreRequests | Broken::Unwanted);
        self.deaths = if has_answered || !is_at_fault { 0 } else { self.deaths + 1 };
        if is_at_fault {
            let (spider, how) = (&self.program.spider, end.how());
            let stderr = printable(&String::from_utf8_lossy(&end.stderr), 1024);
            warn!(%spider, how, why = broken.what(), stderr, "the spider's program ended, and is started again");
        }
        self.settle(&broken, &end, unfinished);
    }

    /// Fails the request that is at fault, and queues the others again. If any of several may be at fault, each is to
    /// run alone.
    fn settle(&mut self, broken: &Broken, end: &End, unfinished: Vec<Unfinished>) {
        let is_alone = unfinished.len() == 1;
        for Unfinished { id, asked, parts } in unfinished {
            match broken {
                Broken::Overdue(culprit, limit) if *culprit == id => {
                    asked.ends(Ended::failed(&overdue(*limit), end, parts.into_logs()));
                }
                Broken::Answer(culprit, what) if *culprit == id => {
                    asked.ends(Ended::failed(what, end, parts.into_logs()));
                }
                // A request that is no longer awaited is dropped when its turn comes.
                Broken::Overdue(..) | Broken::Answer(..) | Broken::Unwanted => {
                    self.requests.again.push_back(asked);
                }
                Broken::Said(_) | Broken::Died if !is_alone => self.requests.suspects.push_back(asked),
                Broken::Said(what) => asked.ends(Ended::failed(what, end, parts.into_logs())),
                Broken::Died | Broken::NoMoreRequests => {
                    asked.ends(Ended::failed(&end.how(), end, parts.into_logs()));
                }
            }
        }
    }
}
