//! `trawl events`: the events of crawls, jobs and hosts, kept for subscribers that may connect later.

use std::fmt;
use std::io::{self, Write};

use serde::Deserialize;
use serde_json::Value;
use tracing::{debug, warn};
use trawl_backends::rabbitmq::{EventQueue, EventQueues, Received};
use trawl_cli::{Fail, Global, Outcome, Signals, counted};
use trawl_common::backoff::Backoff;
use trawl_common::events::Pattern;
use trawl_common::exit::Exit;
use trawl_common::names::SubscriberName;
use trawl_common::ports;
use trawl_common::text::{escape_json, printable};

use crate::backend::Where;

/// Maximum length of a line printed for people.
const MAX_LINE_BYTES: usize = 2048;

/// The command-line arguments of `trawl events`.
///
/// The first call creates a queue of this name, which keeps events from then on: the last 100,000. Each event
/// is printed once, by the first reader; after a crash, perhaps once more.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The name of the reader: events that were read under this name are not printed again
    #[arg(long, value_name = "NAME")]
    name: SubscriberName,
    /// The events that the queue keeps from now on, besides those of earlier calls: `crawl.finished`, `host.*`, or `#`
    /// for all
    #[arg(long = "type", value_name = "PATTERN", default_value_t = Pattern::all())]
    pattern: Pattern,
    /// Wait for more when all is read
    #[arg(long)]
    follow: bool,
    /// Keep events for this name no longer: delete its queue with all that is in it
    #[arg(long, conflicts_with_all = ["follow", "pattern"])]
    forget: bool,
    /// Print one JSON object an event
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

/// The reason why reading stops.
#[derive(Debug, thiserror::Error)]
enum Stop {
    /// The connection broke, or the broker is unavailable.
    #[error(transparent)]
    Lost(#[from] ports::Error),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let settings = global.load(&global.source())?;
        if self.place.is_file() {
            let text = "a state file has no events: `trawl crawl` ends with its crawl, and `trawl wait --state` waits for that";
            return Err(Fail::usage(text));
        }
        let queues = EventQueues::new(&settings.rabbitmq, &settings.queues)?;
        if self.forget {
            return match queues.forget(&self.name).await? {
                true => Ok(Exit::Ok),
                false => Err(Fail::usage(format!("nobody reads events as {}", self.name))),
            };
        }
        let signals = Signals::listen().map_err(Fail::run)?;
        let ended = tokio::select! {
            ended = self.read(&queues) => ended,
            () = signals.stop().cancelled() => Ok(Exit::Ok),
        };
        ended.map(|exit| signals.exit().unwrap_or(exit))
    }

    /// Reads until the queue is empty; with `--follow`, waits for more, and for a broker that is unavailable.
    async fn read(&self, queues: &EventQueues) -> Outcome {
        let mut queue = queues.open(&self.name, &self.pattern).await?;
        let mut strange = 0;
        loop {
            match self.print(&mut queue, &mut strange).await {
                Ok(()) => break,
                // The reader of the output has closed it.
                Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => break,
                Err(Stop::Output(error)) => return Err(Fail::run(format!("cannot write: {error}"))),
                Err(Stop::Lost(error)) if self.follow && error.is_temporary() => {
                    warn!(%error, "reading broke off; going on when the broker is back");
                    queue = self.reopen(queues).await?;
                }
                Err(Stop::Lost(error)) => return Err(error.into()),
            }
        }
        queue.close().await;
        if strange > 0 {
            anstream::eprintln!(
                "warning: left out of the queue: {} that are no events",
                counted(strange, "message")
            );
        }
        Ok(Exit::Ok)
    }

    /// Retries until the queue can be opened.
    async fn reopen(&self, queues: &EventQueues) -> Result<EventQueue, ports::Error> {
        let mut backoff = Backoff::default();
        loop {
            backoff.pause().await;
            match queues.open(&self.name, &self.pattern).await {
                Err(error) if error.is_temporary() => debug!(%error, "not yet"),
                opened => return opened,
            }
        }
    }

    /// Prints the events received, and counts the messages that are not events. An event is acknowledged once
    /// its line is written.
    async fn print(&self, queue: &mut EventQueue, strange: &mut u64) -> Result<(), Stop> {
        while let Some(received) = self.next(queue).await? {
            match self.line(&received.body) {
                Some(line) => {
                    let mut out = io::stdout().lock();
                    writeln!(out, "{line}")?;
                    out.flush()?;
                }
                None => *strange += 1,
            }
            queue.done(&received).await?;
        }
        Ok(())
    }

    async fn next(&self, queue: &mut EventQueue) -> ports::Result<Option<Received>> {
        if self.follow { queue.next().await.map(Some) } else { queue.get().await }
    }

    /// Formats an event; `None` if it is not one, since anyone may publish.
    fn line(&self, body: &[u8]) -> Option<String> {
        let event: Value = serde_json::from_slice(body).ok()?;
        let shown: Shown = Deserialize::deserialize(&event).ok()?;
        match self.json {
            true => Some(escape_json(&event.to_string())),
            false => Some(printable(&shown.to_string(), MAX_LINE_BYTES)),
        }
    }
}

/// An event, formatted for people.
#[derive(Deserialize)]
struct Shown {
    time: String,
    #[serde(rename = "type")]
    name: String,
    #[serde(flatten)]
    what: What,
}

/// The subject of an event.
#[derive(Deserialize)]
#[serde(untagged)]
enum What {
    Hosts(Hosts),
    Job(JobEvent),
    Crawl(Crawl),
}

#[derive(Deserialize)]
struct Hosts {
    /// The crawl that asked the hosts, if known.
    crawl: Option<String>,
    hosts: Vec<Host>,
}

#[derive(Deserialize)]
struct Host {
    host: String,
    until: Option<String>,
    status: Option<u16>,
}

#[derive(Deserialize)]
struct JobEvent {
    /// The id of the job, which is that of its crawl.
    crawl: String,
    spider: String,
    problem: String,
}

#[derive(Deserialize)]
struct Crawl {
    crawl: String,
    spider: String,
    admitted: u64,
    done: u64,
    failed: u64,
    skipped: u64,
    expired: u64,
    pending: u64,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time, name, what } = self;
        write!(f, "{time} {name:<15} ")?;
        match what {
            What::Crawl(crawl) => crawl.fmt(f),
            What::Hosts(hosts) => hosts.fmt(f),
            What::Job(JobEvent { crawl, spider, problem }) => write!(f, "{crawl} {spider}: {problem}"),
        }
    }
}

impl fmt::Display for Crawl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crawl, spider, admitted, done, failed, skipped, expired, pending } = self;
        write!(f, "{crawl} {spider}: {admitted} admitted, {done} done, {failed} failed, ")?;
        write!(f, "{skipped} skipped, {expired} expired, {pending} pending")
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(crawl) = &self.crawl {
            write!(f, "{crawl}: ")?;
        }
        for (at, Host { host, until, status }) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if at > 0 { ", " } else { "" })?;
            if let (Some(until), Some(status)) = (until, status) {
                write!(f, " until {until} ({status})")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    fn line(words: &[&str], body: &str) -> Option<String> {
        let words = ["events", "--name", "a"].iter().chain(words);
        let Program { args } = Program::parse_from(words);
        args.line(body.as_bytes())
    }

    const EVENT: &str = r#"{"id":"c.finished","type":"crawl.finished","time":"2026-01-01T00:00:00.000Z","crawl":"c","spider":"docs",
        "admitted":9,"done":5,"failed":1,"skipped":2,"expired":1,"cancelled":0,"pending":0,"more":[1]}"#;

    #[test]
    fn people_read_what_happened_when_to_which_crawl_and_how_it_stands() {
        assert_eq!(
            line(&[], EVENT).unwrap(),
            "2026-01-01T00:00:00.000Z crawl.finished  c docs: 9 admitted, 5 done, 1 failed, 2 skipped, 1 expired, 0 pending"
        );
    }

    #[test]
    fn people_read_which_hosts_want_to_be_left_alone_until_when() {
        let event = r#"{"id":"host.backoff.1","type":"host.backoff","time":"2026-01-01T00:00:00.000Z","crawl":"c","spider":"docs",
            "hosts":[{"host":"a.example","time":"2026-01-01T00:00:00.000Z","until":"2026-01-01T00:02:00.000Z","status":429},
            {"host":"b.example","time":"2026-01-01T00:00:00.000Z"}]}"#;
        assert_eq!(
            line(&[], event).unwrap(),
            "2026-01-01T00:00:00.000Z host.backoff    c: a.example until 2026-01-01T00:02:00.000Z (429), b.example"
        );
    }

    #[test]
    fn people_read_which_job_has_failed_and_why() {
        let event = r#"{"id":"j.job.failed","type":"job.failed","time":"2026-01-01T00:00:00.000Z","crawl":"j","spider":"docs",
            "project":"default","status":"failed","problem":"there is no spider docs here"}"#;
        assert_eq!(
            line(&[], event).unwrap(),
            "2026-01-01T00:00:00.000Z job.failed      j docs: there is no spider docs here"
        );
    }

    #[test]
    fn programs_read_the_event_as_it_is_on_one_line() {
        let line = line(&["--json"], EVENT).unwrap();
        assert!(!line.contains('\n'), "{line}");
        let [read, sent]: [Value; 2] = [line.as_str(), EVENT].map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(read, sent);
    }

    #[test]
    fn what_a_stranger_publishes_is_no_event_and_harms_no_terminal() {
        for strange in ["", "http://a.example/", "{}", "[]"] {
            assert_eq!(line(&[], strange), None, "{strange}");
        }
        let harmful = EVENT.replace("docs", r"\u001b[2J");
        for words in [&["--json"][..], &[]] {
            assert!(!line(words, &harmful).unwrap().contains('\u{1b}'), "{words:?}");
        }
    }
}
