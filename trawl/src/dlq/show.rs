//! `trawl dlq show`.

use anstream::println;
use trawl_cli::{Fail, Outcome};
use trawl_common::exit::Exit;
use trawl_common::text::printable;
use trawl_common::url::CanonicalUrl;

use super::Failed;
use super::list::as_json;
use crate::desk::Desk;

/// Which to show.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The URL
    url: CanonicalUrl,
    /// Print one JSON object for each crawl in which it failed
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, desk: &Desk) -> Outcome {
        let mut found = false;
        for books in desk.frontier.crawls().await? {
            let crawl = books.crawl_ref();
            if let Some(note) = desk.control.failure(&crawl, &self.url).await? {
                found = true;
                let failed = Failed { crawl, url: self.url.clone(), note };
                if self.json { println!("{}", as_json(&failed)) } else { print(&failed) }
            }
        }
        match found {
            true => Ok(Exit::Ok),
            false => Err(Fail::usage(format!("{} is no dead letter of any crawl", self.url))),
        }
    }
}

fn print(Failed { crawl, url, note }: &Failed) {
    let cause = &note.cause;
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let lines = [
        ("url", url.to_string()),
        ("crawl", crawl.id.to_string()),
        ("spider", crawl.spider.to_string()),
        ("reason", cause.reason.to_string()),
        ("class", optional(cause.class.map(|class| class.to_string()))),
        ("status", optional(cause.status.map(|status| status.to_string()))),
        ("error", printable(&cause.error, 1024)),
        ("attempts", cause.attempts.to_string()),
        ("worker", optional(cause.worker.as_ref().map(ToString::to_string))),
        ("failed at", cause.failed_at.to_string()),
        ("lane", note.lane.to_string()),
        ("depth", note.depth.to_string()),
        ("referrer", optional(note.referrer.as_ref().map(ToString::to_string))),
    ];
    for (name, value) in lines {
        println!("{name:<10} {value}");
    }
    println!();
}
