//! Keeps a program alive, and decides which requests have failed when it dies.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::warn;
use trawl_common::text::printable;

use super::Asked;
use super::session::{Broken, StreamSession, Unfinished};
use super::trouble::Trouble;
use crate::ended::{Ended, with_last_line};
use crate::exec::Report;
use crate::once::overdue;
use crate::program::Program;
use crate::supervised::End;

/// Shortest and longest delay before restarting a program that died without answering anything. It doubles each time.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(30));

/// Maximum time that a program is watched before it is given anything.
const WATCH_TIME: Duration = Duration::from_secs(10);

/// Keeps a program alive while there may be requests.
pub(super) struct Driver {
    program: Arc<Program>,
    concurrency: usize,
    pub(super) requests: Requests,
    /// Number of deaths without an answer in a row.
    deaths: u32,
    /// The time for which the next process must live before it is given anything, as the last one died without an
    /// answer: whether a request killed it shows only then.
    watch: Option<Duration>,
    /// The earliest time of the next start.
    next_start: Instant,
    trouble: Arc<Trouble>,
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
    pub(super) fn new(
        program: Arc<Program>,
        concurrency: usize,
        new: mpsc::Receiver<Asked>,
        trouble: Arc<Trouble>,
    ) -> Self {
        let (again, suspects) = Default::default();
        let requests = Requests { new, again, suspects };
        Self { program, concurrency, requests, deaths: 0, watch: None, next_start: Instant::now(), trouble }
    }

    /// Runs until there are no more requests. Starts the program when there is a request and it is not running.
    pub(super) async fn run(mut self) {
        while let Some((first, is_suspect)) = self.requests.next().await {
            if let Some(why) = self.trouble.now() {
                first.end(Ended::NotRun(why));
                continue;
            }
            self.requests.put_back(first, is_suspect);
            match self.start().await {
                Ok(session) => self.live(session).await,
                Err(why) => {
                    self.note_death();
                    self.trouble.begin(self.next_start, why);
                }
            }
        }
    }

    /// Counts a death without an answer, and sets when the program may be started next.
    fn note_death(&mut self) {
        let pause = BACKOFF.0 * 2u32.saturating_pow(self.deaths.min(16));
        self.next_start = Instant::now() + pause.min(BACKOFF.1);
        self.deaths += 1;
    }

    /// Starts the program, or returns the reason why it cannot be given anything.
    async fn start(&self) -> Result<StreamSession, String> {
        sleep_until(self.next_start).await;
        let started = StreamSession::start(&self.program, self.concurrency).await;
        let mut session = started.map_err(|error| error.to_string())?;
        let Some(watch) = self.watch else { return Ok(session) };
        let Ok(broken) = timeout(watch, session.watch()).await else { return Ok(session) };
        let (end, ..) = session.end(&broken).await;
        let what = match &broken {
            Broken::Said(what) => what.clone(),
            _ => unanswered(&end),
        };
        Err(format!("its program fails before it is given anything: {}", with_last_line(&what, &end)))
    }

    /// Gives requests to one process until it ends, and settles the ones that it left unfinished.
    async fn live(&mut self, mut session: StreamSession) {
        let begun = Instant::now();
        let broken = session.run(&mut self.requests).await;
        let lived = begun.elapsed();
        let (end, unfinished, has_answered) = session.end(&broken).await;
        let is_at_fault = !matches!(broken, Broken::NoMoreRequests | Broken::Unwanted);
        match has_answered || !is_at_fault {
            true => self.deaths = 0,
            false => self.note_death(),
        }
        let may_have_died_by_itself = matches!(broken, Broken::Died | Broken::Said(_)) && !has_answered;
        self.watch = may_have_died_by_itself.then(|| (lived * 2 + BACKOFF.0).min(WATCH_TIME));
        let how = if has_answered { end.how() } else { unanswered(&end) };
        if is_at_fault {
            let spider = &self.program.spider;
            let stderr = printable(&String::from_utf8_lossy(&end.stderr), 1024);
            warn!(%spider, how, why = broken.what(), stderr, "the spider's program ended, and is started again");
        }
        self.settle(&broken, &end, &how, unfinished);
    }

    /// Fails the request that is at fault, and queues the others again. If any of several may be at fault, each is to
    /// run alone.
    fn settle(&mut self, broken: &Broken, end: &End, how: &str, unfinished: Vec<Unfinished>) {
        // Of several that nothing was started for, none can be at fault either.
        let is_alone = unfinished.len() == 1 || matches!(end.report, Some(Report::NotStarted(_)));
        for Unfinished { id, asked, parts } in unfinished {
            match broken {
                Broken::Overdue(culprit, limit) if *culprit == id => {
                    asked.end(Ended::failed(&overdue(*limit), end, parts.into_logs()));
                }
                Broken::Answer(culprit, what) if *culprit == id => {
                    asked.end(Ended::failed(what, end, parts.into_logs()));
                }
                // A request that is no longer awaited is dropped when its turn comes.
                Broken::Overdue(..) | Broken::Answer(..) | Broken::Unwanted => {
                    self.requests.again.push_back(asked);
                }
                Broken::Said(_) | Broken::Died if !is_alone => self.requests.suspects.push_back(asked),
                Broken::Said(what) => asked.end(Ended::failed(what, end, parts.into_logs())),
                Broken::Died | Broken::NoMoreRequests => {
                    asked.end(Ended::failed(how, end, parts.into_logs()));
                }
            }
        }
    }
}

/// Describes the end of a program that has answered nothing.
fn unanswered(end: &End) -> String {
    match end.report {
        Some(Report::Exited(0)) => {
            "exited with status 0 and answered nothing: does it lack `run()`?".to_owned()
        }
        _ => end.how(),
    }
}
