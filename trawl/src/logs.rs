//! `trawl logs`: the fleet's log of failures, retries and other problems.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use trawl_cli::{CrawlArg, Fail, Global, Outcome, Signals};
use trawl_common::duration;
use trawl_common::exit::Exit;
use trawl_common::fleet_log::{newer, newest};
use trawl_common::health::Health;
use trawl_common::logs::{LogEntry, LogFilter, LogLevel};
use trawl_common::names::{CrawlId, SpiderName};
use trawl_common::ports::{self, LogLine, LogPart, LogPlace, Logs};
use trawl_common::text::escape_json;
use trawl_common::time::UnixMs;

use crate::backend::{Backend, Where};

/// Interval at which the log is read for new entries.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The command-line arguments of `trawl logs`.
///
/// Prints the last entries, the newest last. Entries are kept up to `log.keep`; the oldest are removed first.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only those of this crawl: its id, the beginning of it, or `latest`
    #[arg(long, value_name = "ID")]
    crawl: Option<CrawlArg>,
    /// Only those of this spider
    #[arg(long, value_name = "NAME")]
    spider: Option<SpiderName>,
    /// Only those with HOST
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only those as grave as LEVEL, or graver: fatal, panic, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL")]
    level: Option<LogLevel>,
    /// Only those about this URL, or about the task with this key
    #[arg(long, value_name = "KEY")]
    task: Option<String>,
    /// Only those that are no older than AGE: 30m, 2h, 1d
    #[arg(long, value_name = "AGE", value_parser = duration::parse)]
    since: Option<Duration>,
    /// Print the last N
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Then print what comes, as it comes
    #[arg(long)]
    follow: bool,
    /// Print one JSON object an entry
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

/// The reason why printing stops.
enum Stop {
    /// The log cannot be read.
    Log(ports::Error),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<ports::Error> for Stop {
    fn from(error: ports::Error) -> Self {
        Self::Log(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Args {
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let backend = Backend::look(&global, &self.place).await?;
        let filter = self.filter(&backend).await?;
        let signals = Signals::listen().map_err(Fail::run)?;
        let ended = tokio::select! {
            ended = self.print(&*backend.logs, &filter) => match ended {
                Ok(()) => Ok(Exit::Ok),
                // The reader of the output has closed it.
                Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Ok),
                Err(Stop::Output(error)) => Err(Fail::run(format!("cannot write: {error}"))),
                Err(Stop::Log(error)) => Err(error.into()),
            },
            () = signals.stop().cancelled() => Ok(Exit::Ok),
        };
        ended.map(|exit| signals.exit().unwrap_or(exit))
    }

    async fn filter(&self, backend: &Backend) -> Result<LogFilter, Fail> {
        let ago = |age: Duration| UnixMs(UnixMs::now().0.saturating_sub(age.as_millis() as u64));
        Ok(LogFilter {
            crawl: match &self.crawl {
                Some(arg) => Some(crawl(arg, backend).await?),
                None => None,
            },
            spider: self.spider.clone(),
            host: self.host.clone(),
            level: self.level,
            key: self.task.clone(),
            since: self.since.map(ago),
        })
    }

    /// Prints the last entries; with `--follow`, also new ones, waiting for a server that is unavailable.
    async fn print(&self, logs: &dyn Logs, filter: &LogFilter) -> Result<(), Stop> {
        let (mut lines, mut place) = self.last(logs, filter).await?;
        lines.reverse();
        self.write(&lines)?;
        if !self.follow {
            return Ok(());
        }
        let health = Health::default();
        loop {
            let read = health.retry("reading the log", || newer(logs, filter, place)).await?;
            let LogPart { lines, next, has_more } = read;
            place = next;
            self.write(&lines)?;
            if !has_more {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// Returns the last entries that match, the newest first, and the position after all entries.
    async fn last(&self, logs: &dyn Logs, filter: &LogFilter) -> ports::Result<(Vec<LogLine>, LogPlace)> {
        let page = newest(logs, filter, LogPlace::END, self.limit).await?;
        let (mut lines, mut older, end) = (page.lines, page.older, page.end);
        while lines.len() < self.limit
            && let Some(before) = older
        {
            let page = newest(logs, filter, before, self.limit - lines.len()).await?;
            lines.extend(page.lines);
            older = page.older;
        }
        Ok((lines, end))
    }

    fn write(&self, lines: &[LogLine]) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        for LogLine { entry, .. } in lines {
            match self.json {
                true => writeln!(out, "{}", escape_json(&serde_json::to_string(entry)?))?,
                false => write_entry(&mut out, entry)?,
            }
        }
        out.flush()
    }
}

/// Returns the id of the crawl that the argument names. A forgotten crawl may still have entries; it is named
/// by its whole id.
async fn crawl(arg: &CrawlArg, backend: &Backend) -> Result<CrawlId, Fail> {
    match (arg.crawl_stats(&*backend.stats).await?, arg) {
        (None, CrawlArg::Named(id)) => Ok(id.clone()),
        _ => Ok(backend.crawl(arg).await?.crawl),
    }
}

/// Writes an entry for people. The lines of a message after the first are indented, so that none can be taken
/// for an entry.
fn write_entry(out: &mut impl Write, entry: &LogEntry) -> io::Result<()> {
    const DIM: Style = Style::new().dimmed();
    let LogEntry { time, level, worker, spider, crawl, host, key, class, message, ended: _ } = entry;
    let (first, rest) = message.first_line();
    let style = style(*level);
    write!(out, "{DIM}{time}{DIM:#} {style}{level:<5}{style:#} {first}")?;
    if let Some(about) = key.as_ref().or(host.as_ref()) {
        write!(out, "  {about}")?;
    }
    write!(out, "{DIM}")?;
    let spider = spider.as_ref().filter(|_| crawl.is_none()).map(|spider| ("spider", spider.as_str()));
    let crawl = crawl.as_ref().map(|crawl| ("crawl", crawl.as_str()));
    let class = class.as_ref().map(|class| ("class", class.as_str()));
    for (name, value) in [class, crawl, spider, Some(("worker", worker.as_str()))].into_iter().flatten() {
        write!(out, " {name}={value}")?;
    }
    writeln!(out, "{DIM:#}")?;
    rest.into_iter().flat_map(str::lines).try_for_each(|line| writeln!(out, "    {line}"))
}

fn style(level: LogLevel) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match level {
        LogLevel::Fatal | LogLevel::Panic => colour(AnsiColor::Red).bold(),
        LogLevel::Error => colour(AnsiColor::Red),
        LogLevel::Warn => colour(AnsiColor::Yellow),
        LogLevel::Info => colour(AnsiColor::Green),
        LogLevel::Debug => colour(AnsiColor::Blue),
        LogLevel::Trace => Style::new().dimmed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(entry: &LogEntry) -> String {
        let mut out = Vec::new();
        write_entry(&mut out, entry).unwrap();
        anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string()
    }

    fn entry(text: &str) -> LogEntry {
        let worker = "w-1".parse().unwrap();
        LogEntry { time: UnixMs(1_700_000_000_123), ..LogEntry::new(&worker, LogLevel::Error, text) }
    }

    #[test]
    fn an_entry_is_a_line_and_what_follows_is_set_in() {
        let failed = entry("status 404").about("http://a.example/").with_host("a.example").of_class("http");
        assert_eq!(
            shown(&failed),
            "2023-11-14T22:13:20.123Z error status 404  http://a.example/ class=http worker=w-1\n"
        );
        let forged = entry("it broke\n2023-11-14T22:13:20.123Z fatal all is lost\n\u{1b}[2J");
        assert_eq!(
            shown(&forged),
            "2023-11-14T22:13:20.123Z error it broke worker=w-1\n    2023-11-14T22:13:20.123Z fatal all is lost\n     [2J\n"
        );
    }
}
