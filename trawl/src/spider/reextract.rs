//! `trawl reextract`: makes items anew from archived responses, without asking their sites.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::thread::available_parallelism;

use futures::{Stream, StreamExt, stream};
use serde::Serialize;
use tokio::sync::mpsc;
use trawl_backends::sinks::{Archived, Noted, Sinks, Unreadable, WarcReader, warc_files};
use trawl_cli::{ArgumentFlags, Fail, Global, Outcome, Progress, SpiderArg, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::frontier::{Key, Request};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Page, Sink, SinkFactory};
use trawl_common::request::NewRequest;
use trawl_common::spider::item::Item;
use trawl_common::spider::{Render, Required, SpiderOverrides};
use trawl_common::web::response::Response;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};
use trawl_extract::{Extracted, Extraction, ItemPage, Missing, Tried, Untried};
use trawl_web::{MemoryBudget, read_archived};

use super::trial::Trial;
use crate::state;

/// Number of archived responses that wait to be read.
const AHEAD: usize = 16;

/// Maximum size of the header of an archived response, in bytes, beside its body.
const MAX_HEADER: u64 = 256 << 10;

/// The command-line arguments of `trawl reextract`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The spider: its file, or its name
    #[arg(value_name = "FILE|NAME")]
    spider: SpiderArg,
    /// WARC files, plain or compressed by gzip, or folders of them
    #[arg(required = true, value_name = "ARCHIVE")]
    archives: Vec<PathBuf>,
    /// Append items to FILE [default: standard output, as JSON Lines]; its ending says how: .jsonl, .csv (then .gz or
    /// .zst), .parquet (a folder); may be repeated
    #[arg(long, value_name = "FILE")]
    out: Vec<PathBuf>,
    /// Put items into the sinks of the spider, or of the settings
    #[arg(long, conflicts_with = "out")]
    sinks: bool,
    #[command(flatten)]
    arguments: ArgumentFlags,
    /// Also read pages that another spider has archived
    #[arg(long)]
    any_spider: bool,
    /// Print what was read as JSON at the end
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Exits with 1 if an archive is broken, and with 3 if pages could not be read.
    pub(crate) async fn run(self, global: Global) -> Outcome {
        let settings = global.load(&global.source())?;
        let files = self.files()?;
        let mut out = self.out.clone();
        if out.is_empty() && !self.sinks {
            out.push("-".into());
        }
        let outs = state::sinks_of(&out, self.json)?;
        let overrides = SpiderOverrides {
            render: Some(Render::Never),
            sinks: (!self.sinks).then_some(outs),
            ..SpiderOverrides::default()
        };
        let folder = self.spider.folder(&settings, self.arguments.arguments()?)?.with_overrides(overrides);
        let default = state::default_sinks(&settings);
        let memory = MemoryBudget::new(settings.worker.half_page_memory());
        let max_body = settings.fetch.max_body.as_u64();
        let trial = Trial::begin(&self.spider, &folder, settings)?;
        let sinks =
            Sinks::new(WorkerId::of_this_machine(), default).open(&trial.spider).map_err(Fail::usage)?;
        let sinks = sinks.into_iter().filter(|sink| !sink.keeps_responses()).collect();
        let reader = ArchiveReader { trial: &trial, memory, max_body, any_spider: self.any_spider };
        let mut run =
            Run { reader: &reader, sinks, counts: Counts::default(), seen: HashSet::new(), global: &global };
        let progress = global.progress();
        for file in &files {
            run.read(file, &progress).await?;
        }
        progress.clear();
        let counts = run.end().await?;
        trial.end().await;
        match self.json {
            true => print_json(&counts),
            false => global.say(counts.in_words()),
        }
        Ok(counts.exit())
    }

    fn files(&self) -> Result<Vec<PathBuf>, Fail> {
        let mut all = Vec::new();
        for path in &self.archives {
            let found =
                warc_files(path).map_err(|error| Fail::usage(format!("{}: {error}", path.display())))?;
            if found.is_empty() {
                return Err(Fail::usage(format!(
                    "{}: no finished .warc or .warc.gz is in it",
                    path.display()
                )));
            }
            all.extend(found);
        }
        Ok(all)
    }
}

/// The numbers of things read.
#[derive(Default, Serialize)]
struct Counts {
    pages: u64,
    items: u64,
    /// Number of pages that could not be read.
    failed: u64,
    /// Number of responses that are no pages of the spider, by reason.
    skipped: BTreeMap<&'static str, u64>,
    /// Number of archives that are broken.
    broken: u64,
}

impl Counts {
    fn in_words(&self) -> String {
        let mut text = format!("{}, {}", counted(self.pages, "page"), counted(self.items, "item"));
        let skipped: u64 = self.skipped.values().sum();
        if skipped > 0 {
            let reasons = self.skipped.iter().map(|(reason, number)| format!("{reason} {number}"));
            text += &format!("; {skipped} skipped ({})", reasons.collect::<Vec<_>>().join(", "));
        }
        if self.failed > 0 {
            text += &format!("; {} failed", counted(self.failed, "page"));
        }
        text
    }

    fn exit(&self) -> Exit {
        match (self.broken, self.failed) {
            (0, 0) => Exit::Ok,
            (0, _) => Exit::FailedUrls,
            _ => Exit::Failed,
        }
    }
}

/// A run over archives.
struct Run<'a> {
    reader: &'a ArchiveReader<'a>,
    sinks: Vec<Arc<dyn Sink>>,
    counts: Counts,
    /// The pages of crawls so far, also by the canonical URLs that they stand for.
    seen: HashSet<Fingerprint>,
    global: &'a Global,
}

impl Run<'_> {
    /// Reads a file to its end, or to where it is broken.
    async fn read(&mut self, file: &Path, progress: &Progress) -> Result<(), Fail> {
        let shown = file.display();
        let ahead = 2 * available_parallelism().map_or(1, NonZero::get);
        let reader = self.reader;
        let most = reader.max_body.saturating_add(MAX_HEADER);
        let read = responses(file, most).map(|response| reader.read(response)).buffered(ahead);
        let mut results = pin!(read);
        while let Some(result) = results.next().await {
            match result {
                Ok(read) => self.store(read).await?,
                Err(End::Skipped(reason)) => *self.counts.skipped.entry(reason).or_default() += 1,
                Err(End::Failed(url, why)) => {
                    self.counts.failed += 1;
                    self.global.say(format_args!("{url}: {why}"));
                }
                Err(End::Broken(why)) => {
                    self.counts.broken += 1;
                    self.global.say(format_args!("{shown}: {why}; the rest of the file is not read"));
                }
            }
            let Counts { pages, items, .. } = self.counts;
            progress.show(format!("{shown}: {}, {}", counted(pages, "page"), counted(items, "item")));
        }
        Ok(())
    }

    async fn store(&mut self, read: ReadPage) -> Result<(), Fail> {
        let ReadPage { url, key, noted, tried: Tried { response, extraction, .. } } = read;
        let Extraction { items, canonical, path, .. } = extraction;
        let crawl = &noted.crawl;
        let of_crawl = |url: &CanonicalUrl| Fingerprint::from_text(&format!("{} {url}", crawl.id));
        let scope = &self.reader.trial.scope;
        let canonical =
            canonical.filter(|other| !key.is_request() && *other != url && scope.follows(&url, other, 0));
        self.counts.pages += 1;
        let shown = match canonical {
            Some(canonical) if !self.seen.insert(of_crawl(&canonical)) => return Ok(()),
            Some(canonical) => canonical,
            None => url.clone(),
        };
        if self.reader.trial.spider.follow.as_ref().is_some_and(|follow| follow.canonical) {
            self.seen.insert(of_crawl(&url));
        }
        let name = if key.is_request() { key.as_str() } else { shown.as_str() };
        let page = ItemPage {
            crawl,
            key: name,
            url: &shown,
            admitted: &url,
            response: &response,
            depth: noted.depth,
        };
        let referrer = noted.referrer.as_ref().filter(|_| path.is_some()).map(Key::page_or_task);
        let item = |extracted: Extracted| Item {
            path: path.clone(),
            referrer: referrer.clone(),
            ..extracted.into_item(&page)
        };
        let items: Vec<Item> = items.into_iter().map(item).collect();
        self.counts.items += items.len() as u64;
        if items.is_empty() {
            return Ok(());
        }
        let page = Page { key, crawl: crawl.clone(), referrer: noted.referrer, items, exchange: None };
        for sink in &self.sinks {
            sink.put(std::slice::from_ref(&page))
                .await
                .map_err(|error| Fail::run(format!("{}: {error}", sink.name())))?;
        }
        Ok(())
    }

    async fn end(self) -> Result<Counts, Fail> {
        for sink in &self.sinks {
            sink.close().await.map_err(|error| Fail::run(format!("{}: {error}", sink.name())))?;
        }
        Ok(self.counts)
    }
}

/// Reads archived responses by a spider.
struct ArchiveReader<'a> {
    trial: &'a Trial,
    memory: MemoryBudget,
    /// `fetch.max_body`.
    max_body: u64,
    any_spider: bool,
}

/// An archived page, and what the spider makes of it.
struct ReadPage {
    url: CanonicalUrl,
    key: Key,
    noted: Noted,
    tried: Tried,
}

/// The reason why there is no page.
enum End {
    /// The response is none of the spider's pages.
    Skipped(&'static str),
    /// The page at this URL could not be read.
    Failed(String, String),
    /// The file cannot be read further.
    Broken(Unreadable),
}

impl ArchiveReader<'_> {
    async fn read(&self, archived: Result<Archived, Unreadable>) -> Result<ReadPage, End> {
        let Archived { target, fetched_at, message, noted } = archived.map_err(End::Broken)?;
        let spider = &self.trial.spider;
        let failed = |why: &dyn std::fmt::Display| End::Failed(target.clone(), why.to_string());
        if noted.as_ref().is_some_and(|noted| noted.crawl.spider != spider.name && !self.any_spider) {
            return Err(End::Skipped("spider"));
        }
        let landed: CanonicalUrl = target.parse().map_err(|error| failed(&error))?;
        let landed = spider.urls.canonical(landed);
        let noted = noted.unwrap_or_else(|| Noted {
            key: landed.clone().into(),
            crawl: CrawlRef::adhoc_of(spider.name.clone()),
            referrer: None,
            depth: 0,
            data: None,
        });
        let Some(url) = noted.key.page().filter(|url| self.trial.scope.takes(url)) else {
            return Err(End::Skipped("domain"));
        };
        let Some(message) = message else { return Err(End::Skipped("size")) };
        let read = read_archived(message.into(), self.max_body, &self.memory).await;
        let (status, headers, body) = read.map_err(|failure| failed(&failure))?;
        if !(200..300).contains(&status) {
            return Err(End::Skipped("status"));
        }
        let redirected_to = Some(landed).filter(|landed| *landed != url);
        let response = Response { status, headers, redirected_to, fetched_at, address: None, body };
        let request = match noted.key {
            Key::Request(_) => {
                let new = NewRequest { data: noted.data.clone(), ..NewRequest::get(url.as_str()) };
                let request = Request::new(url.clone(), new).map_err(|error| failed(&error))?;
                Some(Arc::new(request))
            }
            _ => None,
        };
        let tried = self.trial.read(&url, response, request).await.map_err(|untried| match untried {
            Untried::Skipped(skip, _) => End::Skipped(skip.as_str()),
            Untried::Failed(failure) => failed(&failure),
        })?;
        if let Some(Missing { field, .. }) = lacking(&tried.extraction.missing) {
            return Err(failed(&format_args!("the page has no `{field}`")));
        }
        Ok(ReadPage { key: noted.key.clone(), url, noted, tried })
    }
}

/// Returns a missing field without which a page fails.
fn lacking(missing: &[Missing]) -> Option<&Missing> {
    missing.iter().find(|missing| matches!(missing.required, Required::Retry | Required::Fail))
}

/// Reads the responses in a file, in a thread of its own.
fn responses(file: &Path, most: u64) -> impl Stream<Item = Result<Archived, Unreadable>> + use<> {
    let file = file.to_owned();
    let (send, receive) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let opened = WarcReader::open(&file, most).map_err(|error| Unreadable::Broken(0, error));
        let mut reader = match opened {
            Ok(reader) => reader,
            Err(error) => return drop(send.blocking_send(Err(error))),
        };
        while let Some(next) = reader.next_response().transpose() {
            let is_last = next.is_err();
            if send.blocking_send(next).is_err() || is_last {
                return;
            }
        }
    });
    stream::unfold(receive, async |mut receive| Some((receive.recv().await?, receive)))
}
