//! One process of a program, from its start to its end.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use trawl_common::handler::Part;
use trawl_common::handler::stream::{
    self, Body, MAX_INLINE_BYTES, PROTOCOL, PageView, Parts, Request, StartMessage,
};

use super::driver::Requests;
use super::own_log::OwnLog;
use super::pipes::{Pipes, Said};
use super::{Asked, Came, Page, Response, Work};
use crate::ended::Ended;
use crate::program::Program;
use crate::supervised::{DRAIN_TIMEOUT, End, Supervised};

/// Time a program that has closed its standard output or its input is given to end by itself.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// Time between checks of whether callers still await the requests in flight.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum time that a request which is no longer awaited may delay others.
const MAX_UNWANTED_TIME: Duration = Duration::from_secs(5);

/// A process, and its requests.
pub(super) struct StreamSession {
    running: Supervised,
    pipes: Pipes,
    /// The requests in flight by id, in the order in which they were given.
    in_flight: BTreeMap<u64, InFlight>,
    /// When the first request in flight became the first: a program that does one after the other could not start it
    /// earlier.
    first_since: Instant,
    /// Whether the request in flight must be alone.
    is_alone: bool,
    concurrency: usize,
    limit: Duration,
    next_id: u64,
    has_answered: bool,
    log: OwnLog,
}

struct InFlight {
    asked: Asked,
    parts: Parts,
    /// The file with its body, if there is one.
    file: Option<PathBuf>,
}

/// A request without an answer when its process ended.
pub(super) struct Unfinished {
    pub(super) id: u64,
    pub(super) asked: Asked,
    pub(super) parts: Parts,
}

/// The reason why a process cannot go on.
pub(super) enum Broken {
    /// It took too long for this request.
    Overdue(u64, Duration),
    /// Its answer to this request is not valid, for this reason.
    Answer(u64, String),
    /// It sent something invalid that belongs to no request.
    Said(String),
    /// It has ended, or closed its output.
    Died,
    /// No caller awaits its requests in flight any more, or unwanted ones delay others.
    Unwanted,
    /// There are no more requests.
    NoMoreRequests,
}

impl Broken {
    pub(super) fn what(&self) -> &str {
        match self {
            Self::Overdue(..) => "it took too long",
            Self::Answer(_, what) | Self::Said(what) => what,
            Self::Died => "it ended by itself",
            Self::Unwanted => "nobody wants what it does any more",
            Self::NoMoreRequests => "there is nothing more to do",
        }
    }
}

impl StreamSession {
    /// Starts a process, and sends it the start message.
    pub(super) async fn start(program: &Program, concurrency: usize) -> io::Result<Self> {
        let (running, stdin, stdout) = Supervised::start(program, None, &[], &[])?;
        let pipes = Pipes::new(stdin, stdout);
        let secret: Value = serde_json::from_str(program.handler.secret.reveal()).unwrap_or_default();
        let (project, spider) = (&program.project, &program.spider);
        let parallel = program.handler.concurrency.is_some();
        let start =
            StartMessage { protocol: PROTOCOL, project, spider, concurrency, parallel, secret: &secret };
        pipes.say(Request::Start(start).to_line());
        let (in_flight, limit) = (BTreeMap::new(), program.handler.timeout);
        Ok(Self {
            running,
            pipes,
            in_flight,
            first_since: Instant::now(),
            is_alone: false,
            concurrency,
            limit,
            next_id: 1,
            has_answered: false,
            log: OwnLog::default(),
        })
    }

    /// Gives it requests and takes its answers until it cannot go on.
    pub(super) async fn run(&mut self, requests: &mut Requests) -> Broken {
        let mut is_open = true;
        loop {
            if !is_open && self.in_flight.is_empty() {
                return Broken::NoMoreRequests;
            }
            let has_place = match self.is_alone || requests.has_suspects() {
                true => self.in_flight.is_empty(),
                false => self.in_flight.len() < self.concurrency,
            };
            let (first, deadline) = (self.first(), self.first_since + self.limit);
            tokio::select! {
                biased;
                said = self.pipes.next() => {
                    let Some(said) = said else { return Broken::Died };
                    if let Err(broken) = self.take(said).await {
                        return broken;
                    }
                }
                () = self.running.gone() => return self.last_words().await,
                () = sleep_until(deadline), if first.is_some() => {
                    return Broken::Overdue(first.unwrap_or_default(), self.limit);
                }
                () = sleep(CHECK_INTERVAL), if first.is_some() => {
                    if self.is_unwanted() {
                        return Broken::Unwanted;
                    }
                }
                next = requests.next(), if is_open && has_place => match next {
                    Some((asked, is_alone)) => self.ask(asked, is_alone).await,
                    None => is_open = false,
                },
            }
        }
    }

    /// Waits until it cannot go on, though it is given no request.
    pub(super) async fn watch(&mut self) -> Broken {
        loop {
            tokio::select! {
                biased;
                said = self.pipes.next() => {
                    let Some(said) = said else { return Broken::Died };
                    if let Err(broken) = self.take(said).await {
                        return broken;
                    }
                }
                () = self.running.gone() => return self.last_words().await,
            }
        }
    }

    /// Takes the program's last messages after it has ended.
    async fn last_words(&mut self) -> Broken {
        while let Ok(Some(said)) = timeout(DRAIN_TIMEOUT, self.pipes.next()).await {
            if let Err(broken) = self.take(said).await {
                return broken;
            }
        }
        Broken::Died
    }

    /// Whether none of the requests in flight is awaited, or the first is not and has delayed others for
    /// [`MAX_UNWANTED_TIME`].
    fn is_unwanted(&self) -> bool {
        let mut all = self.in_flight.values().map(|in_flight| in_flight.asked.is_awaited());
        let is_first_wanted = all.next().unwrap_or(true);
        !is_first_wanted
            && (!all.any(|is_wanted| is_wanted) || self.first_since.elapsed() >= MAX_UNWANTED_TIME)
    }

    /// Returns the id of the oldest request in flight.
    fn first(&self) -> Option<u64> {
        self.in_flight.keys().next().copied()
    }

    async fn ask(&mut self, asked: Asked, is_alone: bool) {
        let id = self.next_id;
        let work = Arc::clone(&asked.work);
        let (line, file) = match &*work {
            Work::Task(task) => (Request::Task { id, task }.to_line(), None),
            Work::Page(page) => match self.page(id, page).await {
                Ok(said) => said,
                Err(error) => {
                    let what = format!("no file could be written for the program: {error}");
                    return asked.end(Ended::NotRun(what));
                }
            },
        };
        self.next_id += 1;
        self.is_alone = is_alone;
        if self.in_flight.is_empty() {
            self.first_since = Instant::now();
        }
        self.in_flight.insert(id, InFlight { asked, parts: Parts::default(), file });
        self.pipes.say(line);
    }

    /// Returns the message for a page, and the file with its body if it is large.
    async fn page(&self, id: u64, Page { head, came }: &Page) -> io::Result<(String, Option<PathBuf>)> {
        let line = |came| Request::Page { id, page: PageView { head, came } }.to_line();
        match came {
            Came::Failure(failure) => Ok((line(stream::Came::Failure { failure }), None)),
            Came::Response(response) => {
                let (body, file) = self.body(id, response).await?;
                Ok((line(stream::Came::Response { head: &response.head, body: &body }), file))
            }
        }
    }

    /// Returns a body, as a file if it has more than [`MAX_INLINE_BYTES`] bytes.
    async fn body(
        &self,
        id: u64,
        Response { bytes, text, .. }: &Response,
    ) -> io::Result<(Body, Option<PathBuf>)> {
        if bytes.len() > MAX_INLINE_BYTES {
            let file = self.running.folder().join(format!("page-{id}"));
            tokio::fs::write(&file, bytes).await?;
            return Ok((Body::File(file.to_string_lossy().into_owned()), Some(file)));
        }
        let body = match text {
            Some(text) => Body::Text(text.clone()),
            None => Body::Base64(BASE64.encode(bytes)),
        };
        Ok((body, None))
    }

    /// Takes a message. Further parts for a request that is already answered are ignored.
    async fn take(&mut self, said: Said) -> Result<(), Broken> {
        let (part, bytes) = match said {
            Said::Part(part, bytes) => (part, bytes),
            Said::Wrong(what) => return Err(Broken::Said(what)),
        };
        let Some(id) = part.id else { return self.take_log(part) };
        let was_first = self.first() == Some(id);
        let Some(mut in_flight) = self.in_flight.remove(&id) else {
            let what = format!("answered a request with the id {id}, which it was not given");
            return if id < self.next_id && id > 0 { Ok(()) } else { Err(Broken::Said(what)) };
        };
        match in_flight.parts.add(part, bytes) {
            Ok(None) => drop(self.in_flight.insert(id, in_flight)),
            Ok(Some(answer)) => {
                self.has_answered = true;
                self.log.answered();
                if was_first {
                    self.first_since = Instant::now();
                }
                self.is_alone = false;
                let InFlight { asked, file, .. } = in_flight;
                let taken = self.running.take_items(&answer);
                asked.end(Ended::answered(answer, taken));
                remove(file).await;
            }
            Err(error) => {
                self.in_flight.insert(id, in_flight);
                return Err(Broken::Answer(id, error.to_string()));
            }
        }
        Ok(())
    }

    /// Takes a part without an id, which may only contain log entries.
    fn take_log(&mut self, part: Part) -> Result<(), Broken> {
        let Part { id: _, verdict, logs, tasks, urls, items, items_file } = part;
        let yields_nothing = items.is_empty() && items_file.is_none() && tasks.is_empty() && urls.is_empty();
        if verdict.is_some() || !yields_nothing {
            return Err(Broken::Said("said something without the `id` of what it answers".to_owned()));
        }
        self.log.write(logs);
        Ok(())
    }

    /// Ends the process: one that has nothing to do by closing its input, any other by force. Returns how it ended, its
    /// unfinished requests, and whether it had answered any.
    pub(super) async fn end(self, broken: &Broken) -> (End, Vec<Unfinished>, bool) {
        let Self { mut running, pipes, in_flight, has_answered, .. } = self;
        drop(pipes);
        let may_end_by_itself = matches!(broken, Broken::Died | Broken::NoMoreRequests);
        let end = match may_end_by_itself {
            true => timeout(EXIT_GRACE, running.ended()).await.ok(),
            false => None,
        };
        let stopped = running.stop().await;
        let end = end.unwrap_or(stopped);
        let unfinished: Vec<_> = in_flight
            .into_iter()
            .map(|(id, InFlight { asked, parts, .. })| Unfinished { id, asked, parts })
            .collect();
        (end, unfinished, has_answered)
    }
}

async fn remove(file: Option<PathBuf>) {
    if let Some(file) = file {
        // The program may have removed it; else it goes with its folder.
        let _ = tokio::fs::remove_file(file).await;
    }
}
