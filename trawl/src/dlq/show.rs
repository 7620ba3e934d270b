//! `trawl dlq show`: shows all details of a dead letter.

use anstream::println;
use trawl_cli::{Fail, Outcome};
use trawl_common::dead_letters::{self, Failed};
use trawl_common::exit::Exit;
use trawl_common::frontier::{Key, Request, Work};
use trawl_common::names::CrawlRef;
use trawl_common::ports;
use trawl_common::request::{MAX_DATA_BYTES, MAX_REQUEST_BYTES, NewRequest};
use trawl_common::task::MAX_RECIPE_BYTES;
use trawl_common::text::printable;
use trawl_common::web::url::MAX_URL_BYTES;

use super::list::{as_json, asked};
use crate::backend::Backend;

/// The command-line arguments of `trawl dlq show`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The URL, the key of the request or the task, or the text that is none of them
    url: String,
    /// Print one JSON object for each crawl in which it failed
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, backend: &Backend) -> Outcome {
        let mut found = false;
        for stats in backend.stats.crawls().await? {
            let crawl = stats.crawl_ref();
            for failed in dead_letters::named(&*backend.control, &crawl, &self.url).await? {
                found = true;
                if self.json {
                    let work = asked(backend, &failed).await?;
                    println!("{}", as_json(&failed, work.as_ref(), MAX_REQUEST_BYTES));
                    continue;
                }
                print(&failed);
                if let Some(said) = said(backend, &crawl, failed.key()).await? {
                    println!("{said}\n");
                }
            }
        }
        match found {
            true => Ok(Exit::Ok),
            false => Err(Fail::usage(format!("{} is no dead letter of any crawl", self.url))),
        }
    }
}

/// Returns the recipe of a task or the contents of a request; `None` for a URL.
async fn said(backend: &Backend, crawl: &CrawlRef, key: Option<Key>) -> ports::Result<Option<String>> {
    let Some(key) = key else { return Ok(None) };
    Ok(match backend.control.work(crawl, &key).await? {
        Some(Work::Url(_)) => None,
        Some(Work::Request(request)) => Some(asks(&request)),
        Some(Work::Task(task)) => Some(printable(task.new.recipe.as_str(), MAX_RECIPE_BYTES)),
        None => Some("what it says is lost".to_owned()),
    })
}

/// Describes a request, with only the names of header fields and cookies: their values may be secrets.
fn asks(Request { url, new, .. }: &Request) -> String {
    let NewRequest { method, headers, cookies, body, data, .. } = new;
    let mut lines = vec![format!("{method} {url}")];
    for (what, pairs) in [("headers", headers), ("cookies", cookies)] {
        if pairs.names().next().is_some() {
            lines.push(format!("{what}: {}", pairs.names().collect::<Vec<_>>().join(", ")));
        }
    }
    lines.extend(data.as_ref().map(|data| printable(&format!("data: {data}"), MAX_DATA_BYTES)));
    match body.text() {
        Some("") => {}
        Some(text) => lines.push(printable(text, MAX_REQUEST_BYTES)),
        None => lines.push(format!("{body:?}")),
    }
    lines.join("\n")
}

fn print(failed: &Failed) {
    for (name, value) in lines(failed) {
        println!("{name:<10} {value}");
    }
    println!();
}

fn lines(Failed { crawl, url, note }: &Failed) -> [(&'static str, String); 13] {
    let cause = &note.cause;
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    [
        ("url", printable(url, MAX_URL_BYTES)),
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
    ]
}

#[cfg(test)]
mod tests {
    use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
    use trawl_common::frontier::outcome::Reason;
    use trawl_common::text::is_harmful;
    use trawl_common::time::UnixMs;

    use super::*;

    #[test]
    fn what_a_request_says_is_shown_without_the_values_of_its_fields() {
        let json = r#"{"url": "", "method": "POST", "headers": {"authorization": "S3"}, "cookies": {"id": "S3"}, "body": "b"}"#;
        let url = "http://a.example/".parse().unwrap();
        let request = Request::new(url, NewRequest::from_json(json).unwrap()).unwrap();
        assert_eq!(asks(&request), "POST http://a.example/\nheaders: authorization\ncookies: id\nb");
    }

    #[test]
    fn a_dead_letter_that_another_program_wrote_is_shown_harmlessly() {
        let error = "a\u{1b}[31m\u{9b}\n\u{202e}b";
        let note =
            DeadLetterEntry::new(Cause { attempts: 1, ..Cause::new(Reason::Final, error, UnixMs::now()) });
        let url = "https://example.com/\u{202e}\u{1b}\u{85}?\u{7f}\u{2028}".to_owned();
        let failed = Failed { crawl: CrawlRef::adhoc(), url, note };
        for (name, value) in lines(&failed) {
            assert!(!value.contains(is_harmful), "{name} {value:?}");
        }
        let json = as_json(&failed, None, MAX_REQUEST_BYTES);
        assert!(!json.contains(is_harmful), "{json:?}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["error"], failed.note.cause.error.as_str());
    }
}
