//! `trawl url`: the state of a URL, the reason for it, and its next step.

use std::fmt::Display;

use anstream::println;
use anstyle::Style;
use serde_json::{Value, json};
use trawl_cli::{Fail, Global, Outcome, print_json};
use trawl_common::exit::Exit;
use trawl_common::explain::{InCrawl, OfSpider, RobotsVerdict, UrlReport};
use trawl_common::frontier::{Key, Record, State, TaskKey, UrlState};
use trawl_common::names::SpiderName;
use trawl_common::request::{MAX_DATA_BYTES, RequestView};
use trawl_common::spider::page_history::{Tally, Visited};
use trawl_common::text::printable;
use trawl_common::time::UnixMs;

use crate::backend::{Backend, Where};
use crate::dlq::note_as_json;

/// The command-line arguments of `trawl url`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The URL, in any form that stands for the same page, or the key of a request
    url: String,
    /// Only in crawls of this spider
    #[arg(long, value_name = "NAME")]
    spider: Option<SpiderName>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Where,
}

impl Args {
    /// Prints the state of a URL. The exit code is 3 if it is a dead letter in the newest crawl that has it.
    /// An unknown URL is an error.
    pub(crate) async fn run(self, global: Global) -> Outcome {
        if let Ok(task) = self.url.parse::<TaskKey>() {
            return Err(Fail::usage(format!("{task} is a task: `trawl task show {task}`")));
        }
        let backend = Backend::look(&global, &self.place).await?;
        let wrong = |reason: &dyn Display| Fail::usage(format!("{}: {reason}", self.url));
        let key: Key = self.url.parse().map_err(|reason| wrong(&reason))?;
        let url = key.page().ok_or_else(|| wrong(&"`trawl task show` shows where a task is"))?;
        let pages = backend.pages();
        let (url, key) = match key {
            Key::Url(_) => {
                let url = backend.settings.urls.canonical(url);
                (url.clone(), Key::from(url))
            }
            key => (url, key),
        };
        let mut report = backend.explainer(&*pages).url(&url, &key).await?;
        if let Some(spider) = &self.spider {
            report.crawls.retain(|known| known.crawl.spider == *spider);
            report.spiders.retain(|known| known.spider == *spider);
        }
        match self.json {
            true => print_json(&as_json(&report)),
            false => print(&report),
        }
        if !report.is_known() {
            return Err(Fail::usage(format!("no crawl and no spider knows {key}")));
        }
        let is_dead = report.crawls.first().is_some_and(|known| known.dead_letter.is_some());
        Ok(if is_dead { Exit::FailedUrls } else { Exit::Ok })
    }
}

fn print(report: &UrlReport) {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    println!("{bold}{}{bold:#}", report.key);
    let robots = match report.robots {
        RobotsVerdict::Allowed => "allows it",
        RobotsVerdict::Forbidden => "forbids it",
        RobotsVerdict::Unreadable => "could not be read, which forbids everything for now",
        RobotsVerdict::Unknown => "is not known; a worker asks for it first",
        RobotsVerdict::Ignored => "is not obeyed, as settings say",
    };
    println!("{dim}host{dim:#}    {}: `trawl hosts show {0}` says how it is asked", report.host);
    println!("{dim}robots{dim:#}  robots.txt {robots}");
    if let Some(request) = &report.request {
        let asks = RequestView::from(&request.new).to_string();
        println!("{dim}asks{dim:#}    {}", printable(&asks, MAX_DATA_BYTES));
    }
    for known in &report.crawls {
        println!("\n{dim}crawl{dim:#}   {} of {}, {}", known.crawl.id, known.crawl.spider, known.status);
        known.words.iter().for_each(|words| println!("        {words}"));
    }
    for known in &report.spiders {
        println!("\n{dim}spider{dim:#}  {}", known.spider);
        known.words.iter().for_each(|words| println!("        {words}"));
    }
}

/// Formats an instant as all JSON does.
fn shown(instant: UnixMs) -> String {
    instant.to_string()
}

fn as_json(report: &UrlReport) -> Value {
    let UrlReport { key, host, schedule, robots, request, crawls, spiders } = report;
    let backoff = schedule.as_ref().and_then(|schedule| schedule.backoff);
    json!({
        "url": key.as_str(),
        "host": host.as_str(),
        "blocked": schedule.as_ref().and_then(|schedule| schedule.blocked).map(shown),
        "backoff_until": backoff.map(|backoff| shown(backoff.until)),
        "robots": robots,
        "request": request.as_ref().map(|request| RequestView::from(&request.new)),
        "crawls": crawls.iter().map(crawl_json).collect::<Vec<_>>(),
        "spiders": spiders.iter().map(spider_json).collect::<Vec<_>>(),
    })
}

fn crawl_json(InCrawl { crawl, status, state, dead_letter, words, .. }: &InCrawl) -> Value {
    let (name, record) = match state {
        _ if dead_letter.is_some() => ("failed", None),
        UrlState::Unseen => ("unseen", None),
        UrlState::Ended => ("ended", None),
        UrlState::Pending(record) => ("pending", Some(record_json(record))),
    };
    json!({
        "crawl": crawl.id, "spider": crawl.spider, "status": status, "state": name, "record": record,
        "dead_letter": dead_letter.as_ref().map(note_as_json), "words": words,
    })
}

fn record_json(record: &Record) -> Value {
    let Record { state, lane, deadline, attempts, starts, .. } = record;
    let (place, since, until, worker, started) = match state {
        State::New { since } | State::Queued { since } => ("queued", Some(since), None, None, false),
        State::Parked { until, .. } => ("parked", None, Some(until), None, false),
        State::Held { by, since, has_started } => ("held", Some(since), None, Some(by), *has_started),
    };
    json!({
        "place": place, "since": since.filter(|since| since.0 > 0).copied().map(shown), "until": until.copied().map(shown), "worker": worker, "started": started,
        "lane": lane, "deadline": deadline.map(shown), "attempts": attempts, "starts": starts,
    })
}

fn spider_json(OfSpider { spider, seen, page, words }: &OfSpider) -> Value {
    let page = page.as_ref().map(|Visited { fetched_at, change, depth, items, answer, .. }| {
        let answer = answer.as_ref();
        json!({
            "fetched_at": fetched_at.to_string(), "change": change, "depth": depth, "items": items.as_ref().map(Tally::total),
            "status": answer.map(|answer| answer.status), "links": answer.map(|answer| answer.links),
            "final_url": answer.and_then(|answer| answer.landed.as_ref()),
        })
    });
    json!({ "spider": spider, "seen": seen, "page": page, "words": words })
}
