//! `trawl spider try`: fetches and reads one page as a worker would, or reads a saved one.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use trawl_backends::embedded::Embedded;
use trawl_cli::{ArgumentFlags, Fail, Outcome, SpiderArg};
use trawl_common::exit::Exit;
use trawl_common::frontier::Request;
use trawl_common::request::NewRequest;
use trawl_common::settings::Settings;
use trawl_common::spider::{Bans, Carried, Scope};
use trawl_common::task::Recipe;
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::url::{CanonicalUrl, InvalidUrl};
use trawl_extract::Ready;
use trawl_web::Fetcher;
use trawl_worker::{HandlerProxy, PageReader, TrialSession};

use super::examine::load;
use super::{attempt_task, show};

/// The command-line arguments of `trawl spider try`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The spider: its file, or its name
    #[arg(value_name = "FILE|NAME")]
    spider: SpiderArg,
    /// The page: its URL, or a file in which it was saved
    #[arg(value_name = "URL|FILE", required_unless_present = "task")]
    page: Option<Place>,
    /// In place of a page: a task for the spider's program, as its recipe
    #[arg(long, value_name = "RECIPE", conflicts_with_all = ["page", "url", "links", "from", "carry"])]
    task: Option<Recipe>,
    #[command(flatten)]
    arguments: ArgumentFlags,
    /// The URL that a saved page is from: what its links are relative to
    #[arg(long, value_name = "URL")]
    url: Option<CanonicalUrl>,
    /// List the page's links, and which of them are followed
    #[arg(long)]
    links: bool,
    /// Read the page as if a page of this kind, or a rule of this name, had led to it
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// A value that the page is given by those that led to it, as text; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    carry: Vec<Pair>,
    /// Allow loopback, private and link-local addresses
    #[arg(long)]
    allow_private: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A name and a value.
#[derive(Clone, Debug)]
struct Pair(String, String);

impl FromStr for Pair {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        pair.map(|(name, value)| Self(name.to_owned(), value.to_owned())).ok_or("write NAME=VALUE")
    }
}

/// The location of a page.
#[derive(Clone, Debug)]
enum Place {
    Web(CanonicalUrl),
    File(PathBuf),
}

impl FromStr for Place {
    type Err = InvalidUrl;

    /// Parses a text with a scheme as a URL, any other as a path.
    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        if text.contains("://") { text.parse().map(Self::Web) } else { Ok(Self::File(text.into())) }
    }
}

impl Args {
    pub(super) async fn run(self, mut settings: Settings) -> Outcome {
        settings.fetch.allow_private |= self.allow_private;
        let folder = self.spider.folder(&settings, self.arguments.arguments()?)?;
        let (spider, Ready { extractor, scope, bans, login }) =
            load(&self.spider, &folder, &settings, false)?;
        let settings = Arc::new(settings);
        // Hosts are asked as a standalone crawl would ask them.
        let alone = Embedded::in_memory().map_err(Fail::run)?;
        let proxy = HandlerProxy::alone(Arc::clone(&settings), alone.hosts());
        if let Some(recipe) = self.task {
            return attempt_task::run(&spider, &folder, recipe, self.json, &proxy, &settings).await;
        }
        let reader = PageReader::start(&settings).map_err(Fail::run)?;
        let fetcher = Fetcher::from_spider(&spider, &settings.fetch)
            .map_err(|error| Fail::usage(format!("[fetch]: {error}")))?;
        let session = match self.page {
            Some(Place::Web(_)) => {
                let at = (&settings, alone.hosts());
                let begun = TrialSession::begin(at, &reader, (&spider, login, &bans), &fetcher).await;
                begun.map_err(|why| Fail::run(format!("the log-in failed: {why}")))?
            }
            _ => None,
        };
        let fetcher =
            session.as_ref().map(|session| fetcher.in_session(Arc::clone(session) as _)).unwrap_or(fetcher);
        let begun = Instant::now();
        let (url, response) = self.response(&fetcher, &scope, &bans).await?;
        let took = begun.elapsed();
        if let Some(ban) = bans.by_page(&response) {
            return Err(Fail::run(format!("{url}: {ban}")));
        }
        let landed = response.redirected_to.clone().unwrap_or_else(|| url.clone());
        let folder = folder.program_folder(&spider.name);
        let reader =
            reader.with_program(&spider, folder, &proxy).map_err(|error| Fail::usage(error.to_string()))?;
        let (extractor, request) = (Arc::new(extractor), self.request(&url)?);
        let tried = reader.read(&spider, &scope, &extractor, &landed, response, request).await;
        reader.end().await;
        let tried = tried.map_err(|untried| Fail::run(format!("{url}: {untried}")))?;
        let lapse =
            session.as_ref().and_then(|session| session.lapse(&tried.response, Some(&tried.extraction)));
        if self.json {
            show::print_json(&url, &tried, session.as_deref(), lapse.as_deref())
        } else {
            show::print(&url, &tried, took, self.links);
            session.iter().for_each(|session| show::print_session(session, lapse.as_deref()));
        }
        if lapse.is_some() {
            return Ok(Exit::Failed);
        }
        Ok(if tried.extraction.missing.is_empty() { Exit::Ok } else { Exit::FailedUrls })
    }

    /// Returns the request for the page with what those that led to it pass on; `None` if that is nothing.
    fn request(&self, url: &CanonicalUrl) -> Result<Option<Arc<Request>>, Fail> {
        let values = self.carry.iter().map(|Pair(name, value)| (name.clone(), Value::from(value.as_str())));
        let values: Map<String, Value> = values.collect();
        let path: Vec<String> = self.from.iter().cloned().collect();
        let carried = Carried { values, path, rule: self.from.clone(), list: None };
        if carried == Carried::default() {
            return Ok(None);
        }
        let new = NewRequest { data: Some(carried.to_data()), ..NewRequest::get(url.as_str()) };
        let request = Request::new(url.clone(), new);
        request.map(|request| Some(Arc::new(request))).map_err(|error| Fail::usage(error.to_string()))
    }

    /// Returns the page's URL and its response.
    async fn response(
        &self,
        fetcher: &Fetcher,
        scope: &Scope,
        bans: &Bans,
    ) -> Result<(CanonicalUrl, Response), Fail> {
        match (&self.page, &self.url) {
            (None, _) => Err(Fail::usage("give a page, or a task")),
            (Some(Place::Web(_)), Some(_)) => {
                Err(Fail::usage("--url is for a page that was saved to a file"))
            }
            (Some(Place::File(file)), url) => {
                let nowhere = || "http://localhost/".parse().map_err(Fail::run);
                Ok((url.clone().map_or_else(nowhere, Ok)?, saved(file)?))
            }
            (Some(Place::Web(url)), None) => {
                let fetched = fetcher.fetch_for(url, scope, bans).await;
                Ok((url.clone(), fetched.map_err(|reason| Fail::run(format!("{url}: {reason}")))?))
            }
        }
    }
}

/// Returns a file as a response: JSON if it has that extension, otherwise HTML with no charset in its header.
fn saved(file: &Path) -> Result<Response, Fail> {
    let body = std::fs::read(file).map_err(|error| Fail::usage(format!("{}: {error}", file.display())))?;
    let kind = match file.extension() {
        Some(extension) if extension.eq_ignore_ascii_case("json") => "application/json",
        _ => "text/html",
    };
    let headers = [("content-type", kind)].into_iter().collect();
    let (redirected_to, address) = Default::default();
    Ok(Response {
        status: 200,
        headers,
        redirected_to,
        fetched_at: UnixMs::now(),
        address,
        body: body.into(),
    })
}
