//! `trawl spider try`: one page, as a worker would fetch and read it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use trawl_cli::{Fail, Outcome, SpiderArg};
use trawl_common::exit::Exit;
use trawl_common::ports::Response;
use trawl_common::settings::Settings;
use trawl_common::url::CanonicalUrl;
use trawl_extract::{Extraction, Extractor, Link};
use trawl_web::Fetcher;

use super::examine::{Ready, load};
use super::show;

/// How long reading one page may take, as in a worker.
const READING: Duration = Duration::from_secs(10);

/// What to try on what.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The spider: its file, or its name
    #[arg(value_name = "FILE|NAME")]
    spider: SpiderArg,
    /// The page
    url: CanonicalUrl,
    /// List the page's links, and which of them are followed
    #[arg(long)]
    links: bool,
    /// Allow loopback, private and link-local addresses
    #[arg(long)]
    allow_private: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A page, and what was made of it.
pub(super) struct Tried {
    pub(super) url: CanonicalUrl,
    pub(super) response: Response,
    pub(super) took: Duration,
    pub(super) extraction: Extraction,
    /// The links, and whether each is followed.
    pub(super) links: Vec<(CanonicalUrl, bool)>,
}

impl Args {
    pub(super) async fn run(self, mut settings: Settings) -> Outcome {
        settings.fetch.allow_private |= self.allow_private;
        let (spider, Ready { extractor, scope, bans }) =
            load(&self.spider, &self.spider.folder(&settings), &settings)?;
        let fetcher = Fetcher::of(&spider, &settings.fetch)
            .map_err(|error| Fail::usage(format!("[fetch]: {error}")))?;
        let begun = Instant::now();
        let response = fetcher
            .fetch(&self.url)
            .await
            .map_err(|failure| Fail::run(format!("{}: {failure}", self.url)))?;
        let took = begun.elapsed();
        if let Some(ban) = bans.by_page(&response) {
            return Err(Fail::run(format!("{}: {ban}", self.url)));
        }
        if !extractor.reads(&response) {
            let kind = response.content_type().unwrap_or("no type").to_owned();
            return Err(Fail::run(format!("{}: {kind} is not what this spider reads", self.url)));
        }
        let landed = response.redirected_to.clone().unwrap_or_else(|| self.url.clone());
        let extraction = read(extractor, landed.clone(), response.clone()).await?;
        let follows = |Link { url, is_next }: &Link| {
            let is_followed = scope.follows(&landed, url, u16::from(!is_next));
            (url.clone(), is_followed)
        };
        let links = extraction.links.iter().map(follows).collect();
        let tried = Tried { url: self.url, response, took, extraction, links };
        if self.json {
            show::print_json(&tried)
        } else {
            show::print(&tried, self.links)
        }
        Ok(if tried.extraction.missing.is_empty() { Exit::Ok } else { Exit::FailedUrls })
    }
}

/// Reads the page on a thread of its own, which is told to give up when it takes too long.
async fn read(extractor: Extractor, url: CanonicalUrl, response: Response) -> Result<Extraction, Fail> {
    let given_up = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&given_up);
    let reading = tokio::task::spawn_blocking(move || extractor.extract(&url, &response, &told));
    let Ok(read) = tokio::time::timeout(READING, reading).await else {
        given_up.store(true, Ordering::Relaxed);
        return Err(Fail::run(format!("the page was not read within {READING:?}")));
    };
    read.map_err(Fail::run)?.map_err(Fail::run)
}
