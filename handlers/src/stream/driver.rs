//! Who keeps a program alive, and says what has failed when it dies.

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

/// How long a program that died before it had answered anything is left alone, at first and at most. It doubles each time.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// Keeps a program alive as long as anybody may ask for something.
pub(super) struct Driver {
    program: Arc<Program>,
    concurrency: usize,
    pub(super) requests: Requests,
    /// How often in a row it has died without an answer.
    deaths: u32,
}

/// What is to be done, in order.
pub(super) struct Requests {
    new: mpsc::Receiver<Asked>,
    /// What was in flight when the program was ended for another's sake.
    again: VecDeque<Asked>,
    /// What was in flight together when the program died: each is given to it alone, so that the one that kills it is found.
    suspects: VecDeque<Asked>,
}

impl Requests {
    /// The next one; `None` when there will be none. Whether it is to be alone. Cancelling the call loses nothing.
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

    /// Whether the next one is to be alone.
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

    /// Starts the program whenever there is something to do and it does not live.
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

    /// Has one process do what comes, and says of what it left unfinished what becomes of it.
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

    /// Who is to blame fails; what was with it is done again. If it may be any of several, each is tried alone.
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
                // Which is wanted by nobody is left out when it comes to it.
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
