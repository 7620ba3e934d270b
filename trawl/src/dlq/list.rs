//! `trawl dlq list`: lists dead letters.

use std::collections::BTreeMap;

use anstream::println;
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use trawl_cli::{Outcome, count, print_json};
use trawl_common::dead_letters::Failed;
use trawl_common::exit::Exit;
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::outcome::{Class, Reason};
use trawl_common::text::{escape_json, printable};
use trawl_common::web::url::MAX_URL_BYTES;

use super::dead_letters;
use super::filter::{Filter, Walk};
use crate::backend::Backend;

/// The command-line arguments of `trawl dlq list`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Count them by reason, status and host instead
    #[arg(long)]
    group: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        if self.group { self.count(backend).await } else { self.list(backend).await }
    }

    async fn list(&self, backend: &Backend) -> Outcome {
        let mut walk = Walk::new(backend, &self.filter).await?;
        let mut listed = 0u64;
        while let Some((_, page)) = walk.next().await? {
            for failed in &page {
                match self.json {
                    true => println!("{}", as_json(failed)),
                    false => print_line(failed),
                }
            }
            listed += page.len() as u64;
        }
        if !self.json {
            backend.say(dead_letters(listed));
        }
        Ok(Exit::Ok)
    }

    async fn count(&self, backend: &Backend) -> Outcome {
        let mut groups: BTreeMap<(Reason, Option<Class>, Option<u16>, String), u64> = BTreeMap::new();
        let mut walk = Walk::new(backend, &self.filter).await?;
        while let Some((_, page)) = walk.next().await? {
            for failed in page {
                let (host, Cause { reason, class, status, .. }) = (failed.host(), failed.note.cause);
                *groups.entry((reason, class, status, host)).or_default() += 1;
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for ((reason, class, status, host), number) in groups {
            if self.json {
                print_json(&json!({
                    "reason": reason, "class": class, "status": status, "host": host, "letters": number,
                }));
                continue;
            }
            let status = status.map(|status| status.to_string());
            let how: Vec<&str> = class.map(Class::as_str).into_iter().chain(status.as_deref()).collect();
            println!("{:>10}  {:<8}  {:<12}  {host}", count(number), reason.as_str(), how.join(" "));
        }
        Ok(Exit::Ok)
    }
}

/// Formats a dead letter as JSON.
pub(super) fn as_json(failed: &Failed) -> String {
    let Failed { crawl, url, note } = failed;
    let mut object = json!({ "url": url, "crawl": crawl.id, "spider": crawl.spider });
    if let (Some(object), Value::Object(note)) = (object.as_object_mut(), note_as_json(note)) {
        object.extend(note);
    }
    escape_json(&object.to_string())
}

/// Formats a dead letter's note as JSON, with its time as all JSON has times.
pub(crate) fn note_as_json(note: &DeadLetterEntry) -> Value {
    let mut json = json!(note);
    json["failed_at"] = note.cause.failed_at.to_string().into();
    json
}

fn print_line(failed: &Failed) {
    let cause = &failed.note.cause;
    let (dim, red) = (Style::new().dimmed(), Style::new().fg_color(Some(AnsiColor::Red.into())));
    println!(
        "{dim}{}{dim:#}  {red}{:<8}{red:#} {}  {}  {dim}{}{dim:#}",
        cause.failed_at,
        cause.reason.as_str(),
        // Other programs can write to the store.
        printable(&failed.url, MAX_URL_BYTES),
        printable(&cause.error, 1024),
        failed.crawl.id,
    );
}
