//! `trawl dlq list`: lists dead letters.

use std::collections::BTreeMap;

use anstream::println;
use anstyle::{AnsiColor, Style};
use futures::future::join_all;
use serde_json::{Value, json};
use trawl_cli::{Outcome, count, print_json};
use trawl_common::dead_letters::Failed;
use trawl_common::exit::Exit;
use trawl_common::frontier::Work;
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::outcome::{Class, Reason};
use trawl_common::ports;
use trawl_common::request::{NewRequest, RequestView};
use trawl_common::text::{escape_json, printable};
use trawl_common::web::url::MAX_URL_BYTES;

use super::dead_letters;
use super::filter::{Filter, Walk};
use crate::backend::Backend;

/// Maximum number of bytes of a body or a recipe that the list shows.
const MAX_SHOWN_BYTES: usize = 200;

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
            let works = join_all(page.iter().map(|failed| asked(backend, failed))).await;
            for (failed, work) in page.iter().zip(works) {
                let work = work?;
                match self.json {
                    true => println!("{}", as_json(failed, work.as_ref(), MAX_SHOWN_BYTES)),
                    false => print_line(failed, work.as_ref()),
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

/// Returns the request or the task of a dead letter; `None` for a URL, and if its content is lost.
pub(super) async fn asked(backend: &Backend, failed: &Failed) -> ports::Result<Option<Work>> {
    match failed.key() {
        Some(key) if key.url().is_none() => backend.control.readable_work(&failed.crawl, &key).await,
        _ => Ok(None),
    }
}

/// Formats a dead letter as JSON, with up to `most` bytes of its recipe or the body of its request.
pub(super) fn as_json(failed: &Failed, work: Option<&Work>, most: usize) -> String {
    let Failed { crawl, url, note } = failed;
    let mut object = json!({ "url": url, "crawl": crawl.id, "spider": crawl.spider });
    match work {
        Some(Work::Request(request)) => {
            object["request"] = json!(RequestView::from(&request.new));
            object["request"]["body"] = body(&request.new, most).into();
        }
        Some(Work::Task(task)) => object["recipe"] = printable(task.new.recipe.as_str(), most).into(),
        Some(Work::Url(_)) | None => {}
    }
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

/// Returns the start of a request's body; `None` if it has none, or one that is no text.
fn body(request: &NewRequest, most: usize) -> Option<String> {
    request.body.text().filter(|text| !text.is_empty()).map(|text| printable(text, most))
}

/// Returns what distinguishes a request or a task from others of its URL or spider.
fn in_short(work: &Work) -> Option<String> {
    match work {
        Work::Url(_) => None,
        Work::Request(request) => {
            let data = request.new.data.as_ref().filter(|_| request.new.body.is_empty());
            let said = body(&request.new, MAX_SHOWN_BYTES)
                .or_else(|| Some(printable(&data?.to_string(), MAX_SHOWN_BYTES)));
            let method = request.new.method;
            Some(said.map_or_else(|| method.to_string(), |said| format!("{method} {said}")))
        }
        Work::Task(task) => Some(printable(task.new.recipe.as_str(), MAX_SHOWN_BYTES)),
    }
}

fn print_line(failed: &Failed, work: Option<&Work>) {
    let cause = &failed.note.cause;
    let (dim, red) = (Style::new().dimmed(), Style::new().fg_color(Some(AnsiColor::Red.into())));
    println!(
        "{dim}{}{dim:#}  {red}{:<8}{red:#} {}{}  {}  {dim}{}{dim:#}",
        cause.failed_at,
        cause.reason.as_str(),
        // Other programs can write to the store.
        printable(&failed.url, MAX_URL_BYTES),
        work.and_then(in_short).map(|short| format!("  {short}")).unwrap_or_default(),
        printable(&cause.error, 1024),
        failed.crawl.id,
    );
}
