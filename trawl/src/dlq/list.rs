//! `trawl dlq list`.

use std::collections::BTreeMap;

use anstream::println;
use anstyle::{AnsiColor, Style};
use serde_json::json;
use trawl_cli::{Outcome, count};
use trawl_common::exit::Exit;
use trawl_common::outcome::Reason;
use trawl_common::text::{escape_json, printable};
use trawl_common::url::MAX_URL_BYTES;

use super::filter::{Filter, Walk};
use super::{Failed, letters};
use crate::desk::Desk;

/// Which to list, and how.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Count them by reason and host instead
    #[arg(long)]
    group: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, desk: &Desk) -> Outcome {
        if self.group { self.count(desk).await } else { self.list(desk).await }
    }

    async fn list(&self, desk: &Desk) -> Outcome {
        let mut walk = Walk::new(desk, &self.filter).await?;
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
            anstream::eprintln!("{}", letters(listed));
        }
        Ok(Exit::Ok)
    }

    async fn count(&self, desk: &Desk) -> Outcome {
        let mut groups: BTreeMap<(Reason, String), u64> = BTreeMap::new();
        let mut walk = Walk::new(desk, &self.filter).await?;
        while let Some((_, page)) = walk.next().await? {
            for failed in page {
                *groups.entry((failed.note.cause.reason, failed.host())).or_default() += 1;
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, letters)| std::cmp::Reverse(*letters));
        for ((reason, host), letters) in groups {
            match self.json {
                true => println!("{}", json!({"reason": reason, "host": host, "letters": letters})),
                false => println!("{:>10}  {:<8}  {host}", count(letters), reason.as_str()),
            }
        }
        Ok(Exit::Ok)
    }
}

/// A letter as programs read it.
pub(super) fn as_json(failed: &Failed) -> String {
    let Failed { crawl, url, note } = failed;
    let mut object = json!({ "url": url, "crawl": crawl.id, "spider": crawl.spider });
    if let (Some(object), Ok(serde_json::Value::Object(note))) =
        (object.as_object_mut(), serde_json::to_value(note))
    {
        object.extend(note);
    }
    escape_json(&object.to_string())
}

fn print_line(failed: &Failed) {
    let cause = &failed.note.cause;
    let (dim, red) = (Style::new().dimmed(), Style::new().fg_color(Some(AnsiColor::Red.into())));
    println!(
        "{dim}{}{dim:#}  {red}{:<8}{red:#} {}  {}  {dim}{}{dim:#}",
        cause.failed_at,
        cause.reason.as_str(),
        // A store can be written by others.
        printable(&failed.url, MAX_URL_BYTES),
        printable(&cause.error, 1024),
        failed.crawl.id,
    );
}
