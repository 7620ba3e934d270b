//! A spider that fetches and reads single pages as a worker would.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Map, Value};
use trawl_backends::embedded::Embedded;
use trawl_cli::{Fail, SpiderArg};
use trawl_common::frontier::Request;
use trawl_common::mistake::Mistake;
use trawl_common::names::SpiderName;
use trawl_common::request::NewRequest;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::{self, Folder};
use trawl_common::spider::{Bans, Carried, Origin, Scope, Spider, file};
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::sniff::is_html;
use trawl_common::web::url::{CanonicalUrl, InvalidUrl};
use trawl_extract::{Extraction, Extractor, LoginPlan, Ready, Rendering, Tried, Untried};
use trawl_web::Fetcher;
use trawl_worker::{HandlerProxy, PageReader, PageRenderer, RenderReport, TrialSession};

use super::examine::load;

/// A spider that is ready to read pages.
pub(super) struct Trial {
    pub(super) spider: Spider,
    pub(super) scope: Scope,
    bans: Bans,
    login: Option<LoginPlan>,
    extractor: Arc<Extractor>,
    reader: PageReader,
    /// Renders its pages, if the spider wants that.
    renderer: Option<PageRenderer>,
    fetcher: Fetcher,
    settings: Arc<Settings>,
    alone: Embedded,
}

/// The location of a page.
#[derive(Clone, Debug)]
pub(super) enum Place {
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

impl Place {
    /// Returns the page, which was given these values, and how it was rendered in `report`. `url` is the URL of a page that was saved to a file.
    pub(super) async fn get(
        &self,
        trial: &Trial,
        url: Option<CanonicalUrl>,
        given: &Given,
        report: &mut RenderReport,
    ) -> Result<TrialPage, Fail> {
        match (self, url) {
            (Self::Web(_), Some(_)) => Err(Fail::usage("--url is for a page that was saved to a file")),
            (Self::Web(url), None) => trial.fetch(url, given, report).await,
            (Self::File(file), url) => {
                let nowhere = || "http://localhost/".parse().map_err(Fail::run);
                let (url, response) = (url.map_or_else(nowhere, Ok)?, saved(file)?);
                Ok(TrialPage { url, response, rendering: None })
            }
        }
    }
}

/// A page to read.
pub(super) struct TrialPage {
    pub(super) url: CanonicalUrl,
    pub(super) response: Response,
    /// The decision whether a browser rendered it; `None` if none would have.
    pub(super) rendering: Option<Rendering>,
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

/// The values and the name that a page is given by those that led to it.
#[derive(Default, clap::Args)]
pub(super) struct Given {
    /// Read the page as if a page of this kind, or a rule of this name, had led to it
    #[arg(long, value_name = "NAME")]
    pub(super) from: Option<String>,
    /// A value that the page is given by those that led to it, as text; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    carry: Vec<Pair>,
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

impl Given {
    /// Returns the carried values.
    pub(super) fn values(&self) -> Map<String, Value> {
        self.carry.iter().map(|Pair(name, value)| (name.clone(), Value::from(value.as_str()))).collect()
    }

    /// Returns the request for a page that is given this; `None` if that is nothing.
    pub(super) fn request(&self, url: &CanonicalUrl) -> Result<Option<Arc<Request>>, Fail> {
        request_of(url, self.from.as_deref(), self.values())
    }
}

impl Trial {
    /// Makes the spider ready, with its program if it has one.
    pub(super) fn begin(arg: &SpiderArg, folder: &Folder, settings: Settings) -> Result<Self, Fail> {
        let (spider, Ready { extractor, scope, bans, login }) = load(arg, folder, &settings, false)?;
        let settings = Arc::new(settings);
        let (alone, proxy) = proxy_alone(&settings)?;
        let reader = PageReader::start(&settings).map_err(Fail::run)?;
        let reader = reader
            .with_program(&spider, folder.program_folder(&spider.name), &proxy)
            .map_err(|error| Fail::usage(error.to_string()))?;
        let renderer = spider.needs_browser().then(|| PageRenderer::new(&proxy)).transpose();
        let renderer = renderer.map_err(|error| Fail::usage(format!("render: {error}")))?;
        let fetcher = Fetcher::from_spider(&spider, &settings.fetch)
            .map_err(|error| Fail::usage(format!("[fetch]: {error}")))?;
        let extractor = Arc::new(extractor);
        Ok(Self { spider, scope, bans, login, extractor, reader, renderer, fetcher, settings, alone })
    }

    /// Logs in, if the spider does, so that pages are fetched in the session; `None` if it keeps none.
    pub(super) async fn log_in(&mut self) -> Result<Option<Arc<TrialSession>>, Fail> {
        let at = (&self.settings, self.alone.hosts());
        let spider = (&self.spider, self.login.take(), &self.bans);
        let begun = TrialSession::begin(at, &self.reader, spider, &self.fetcher).await;
        let session = begun.map_err(|why| Fail::run(format!("the log-in failed: {why}")))?;
        if let Some(session) = &session {
            self.fetcher = self.fetcher.clone().in_session(Arc::clone(session) as _);
        }
        Ok(session)
    }

    /// Fetches a page that is given this, and renders it if the spider wants that; how is in `report`.
    pub(super) async fn fetch(
        &self,
        url: &CanonicalUrl,
        given: &Given,
        report: &mut RenderReport,
    ) -> Result<TrialPage, Fail> {
        let fetched = self.fetcher.fetch_for(url, &self.scope, &self.bans).await;
        let response = fetched.map_err(|reason| Fail::run(format!("{url}: {reason}")))?;
        let renderer = self.renderer.as_ref().filter(|_| is_html(response.content_type(), &response.body));
        let Some(renderer) = renderer else {
            return Ok(TrialPage { url: url.clone(), response, rendering: None });
        };
        let rendering = self.rendering(url, &response, given.request(url)?).await;
        let response = match rendering {
            Some(Rendering { is_wanted: true, rule }) => {
                let landed = response.redirected_to.clone().unwrap_or_else(|| url.clone());
                let (spider, steps) = (&self.spider, self.extractor.steps(rule));
                let page = (&landed, response);
                let rendered = renderer.render(spider, &self.scope, &self.fetcher, page, steps, report).await;
                rendered.map_err(|why| Fail::run(format!("{url}: {why}")))?
            }
            _ => response,
        };
        Ok(TrialPage { url: url.clone(), response, rendering })
    }

    /// Returns the decision whether a page is rendered; `None` if it cannot be read as it was sent.
    async fn rendering(
        &self,
        url: &CanonicalUrl,
        response: &Response,
        request: Option<Arc<Request>>,
    ) -> Option<Rendering> {
        let rendering = self.extractor.rendering(url, response, request.as_deref());
        if rendering.is_some() {
            return rendering;
        }
        let (spider, sent) = (&self.spider, response.clone());
        let landed = response.redirected_to.as_ref().unwrap_or(url);
        let read = self.reader.read(spider, &self.scope, &self.extractor, landed, sent, request).await;
        Some(self.extractor.rendering_once_read(response, &read.ok()?.extraction))
    }

    /// Reads a response to the URL of a page, and to this request if it is not plain.
    pub(super) async fn read(
        &self,
        url: &CanonicalUrl,
        response: Response,
        request: Option<Arc<Request>>,
    ) -> Result<Tried, Untried> {
        if let Some(ban) = self.bans.by_page(&response) {
            return Err(ban.into());
        }
        let landed = response.redirected_to.clone().unwrap_or_else(|| url.clone());
        self.reader.read(&self.spider, &self.scope, &self.extractor, &landed, response, request).await
    }

    /// Returns the values of a field, written as in a spider's file, in a response to the URL of a page.
    ///
    /// # Errors
    /// The mistakes in the field, or why it has no value.
    pub(super) async fn values(
        &self,
        url: &CanonicalUrl,
        response: Response,
        field: &str,
    ) -> Result<Vec<Value>, String> {
        let usual = Spider::of_settings(SpiderName::default(), &self.settings);
        let text = format!("[fields]\n{FIELD} = {field}\n");
        let spider = file::read(usual, &text, Origin::Local, &folder::environment).ready().map_err(list)?;
        let Ready { extractor, scope, .. } = Ready::new(&spider, &self.settings.fetch).map_err(list)?;
        let landed = response.redirected_to.clone().unwrap_or_else(|| url.clone());
        let extractor = Arc::new(extractor);
        let read = self.reader.read(&spider, &scope, &extractor, &landed, response, None).await;
        let Extraction { items, unfit, .. } = read.map_err(|untried| untried.to_string())?.extraction;
        let found = items.into_iter().find_map(|mut item| item.fields.remove(FIELD));
        match (found.filter(|value| !value.is_null()), unfit.first()) {
            (Some(Value::Array(values)), _) => Ok(values),
            (Some(value), _) => Ok(vec![value]),
            (None, Some(unfit)) => Err(format!("`{}`: {}", unfit.value, unfit.reason)),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Ends the program, if there is one, so that all it writes to its standard error is shown.
    pub(super) async fn end(self) {
        self.reader.end().await;
    }
}

/// The name of the field that is asked for.
const FIELD: &str = "value";

/// Returns mistakes in that field as one text.
fn list(mistakes: Vec<Mistake>) -> String {
    let field = format!("fields.{FIELD}: ");
    let what = mistakes.iter().map(|mistake| mistake.what.trim_start_matches(&field));
    what.collect::<Vec<_>>().join("; ")
}

/// Returns the failure to read a page.
pub(super) fn unread(url: &CanonicalUrl, untried: &Untried) -> Fail {
    Fail::run(format!("{url}: {untried}"))
}

/// Returns a proxy that asks hosts as a standalone crawl would ask them, and the store of their schedules.
pub(super) fn proxy_alone(settings: &Arc<Settings>) -> Result<(Embedded, Arc<HandlerProxy>), Fail> {
    let alone = Embedded::in_memory().map_err(Fail::run)?;
    let proxy = HandlerProxy::alone(Arc::clone(settings), alone.hosts());
    Ok((alone, proxy))
}

/// Returns the request for a page with what those that led to it pass on; `None` if that is nothing.
pub(super) fn request_of(
    url: &CanonicalUrl,
    from: Option<&str>,
    values: Map<String, Value>,
) -> Result<Option<Arc<Request>>, Fail> {
    let from = from.map(str::to_owned);
    let carried = Carried { values, path: from.iter().cloned().collect(), rule: from, ..Carried::default() };
    if carried == Carried::default() {
        return Ok(None);
    }
    let new = NewRequest { data: Some(carried.to_data()), ..NewRequest::get(url.as_str()) };
    let request = Request::new(url.clone(), new);
    request.map(|request| Some(Arc::new(request))).map_err(|error| Fail::usage(error.to_string()))
}
