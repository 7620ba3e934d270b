//! Tries a spider on one page: in no crawl, and without storing anything.

mod session;
mod trials;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub use session::TrialSession;
use trawl_browser::{Chromium, NoBrowser};
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::outcome::{Class, Failure, Skip};
use trawl_common::frontier::{Request, Work};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::settings::Settings;
use trawl_common::spider::{PageStep, Scope, Spider};
use trawl_common::task::TaskView;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extracted, Extraction, Extractor, Link, LinkKind, Tried, Untried};
use trawl_handlers::{CannotRun, Ended, FilePosition, Stream};
use trawl_web::Fetcher;
pub use trials::Trials;

use crate::parse::Parser;
use crate::programs::{Came, PageAbout, Reading, Running, Unread, read_page};
use crate::proxy::page::OnBehalf;
use crate::proxy::{HandlerProxy, User};
use crate::render::{RenderReport, Renderer, Unrendered};
use crate::schedule::polite::AsSpider;
use crate::spiders::Unready;

/// Reads pages as a worker does.
pub struct PageReader {
    parser: Parser,
    /// The program that reads them in place of the parser.
    program: Option<Running>,
}

impl PageReader {
    /// Starts with its own threads, and as much memory for trees as a worker has.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no threads.
    pub fn start(settings: &Settings) -> io::Result<Self> {
        let parser = Parser::start(settings.worker.half_page_memory())?;
        Ok(Self { parser, program: None })
    }

    /// Returns this reader with the program of `spider`, if it has one that reads pages; the program runs in
    /// `folder`, and makes requests through `proxy`.
    ///
    /// # Errors
    ///
    /// Fails if the program cannot be run.
    pub fn with_program(
        self,
        spider: &Spider,
        folder: PathBuf,
        proxy: &Arc<HandlerProxy>,
    ) -> Result<Self, Unready> {
        Ok(Self { program: running(spider, folder, proxy)?, ..self })
    }

    /// Ends the program, if there is one, so that all it writes to its standard error is shown.
    pub async fn end(self) {
        if let Some(program) = self.program {
            program.end().await;
        }
    }

    /// Returns the result of `spider` for `response`, which was fetched from `landed` by `request`, if that is
    /// not plain.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is none.
    pub async fn read(
        &self,
        spider: &Spider,
        scope: &Scope,
        extractor: &Arc<Extractor>,
        landed: &CanonicalUrl,
        response: Response,
        request: Option<Arc<Request>>,
    ) -> Result<Tried, Untried> {
        if let Some(program) = self.program.as_ref().and_then(Running::reader) {
            let extraction = read_by(program, spider, landed, &response, request).await?;
            return Ok(Tried::new(spider, scope, landed, response, extraction));
        }
        if !extractor.reads(&response) {
            let content_type = response.content_type().unwrap_or("no type");
            return Err(not_read(format_args!("{content_type} is not what this spider reads")));
        }
        let extraction =
            self.parser.read(Arc::clone(extractor), landed.clone(), response.clone(), request).await?;
        Ok(Tried::new(spider, scope, landed, response, extraction))
    }
}

/// Has a program read a page that is in no crawl.
async fn read_by(
    program: &Stream,
    spider: &Spider,
    landed: &CanonicalUrl,
    response: &Response,
    request: Option<Arc<Request>>,
) -> Result<Extraction, Untried> {
    let crawl = CrawlRef::adhoc_of(spider.name.clone());
    // No log is written for a trial.
    let (log, _) = &LogWriter::new(&WorkerId::of_this_machine(), None, None);
    let work = &request.map_or_else(|| Work::Url(landed.clone()), Work::Request);
    let urls = &spider.urls;
    let redirected = response.redirected_to.as_ref();
    let (crawl, referrer) = (&crawl, None);
    let about = PageAbout { url: landed, work, landed: redirected, crawl, depth: 0, referrer, urls, log };
    match read_page(program, &about, Came::Response(response)).await {
        Ok(Reading { mut extraction, file, requests, .. }) => {
            let mut place = FilePosition::default();
            while let Some(file) = &file {
                let batch = file.read(place).await.map_err(|why| Failure::new(Class::Handler, why))?;
                if batch.items.is_empty() {
                    break;
                }
                place = batch.next;
                let items = (extraction.items.len()..).zip(batch.items);
                let items = items.map(|(number, fields)| Extracted { rule: None, number, fields });
                extraction.items.extend(items.collect::<Vec<_>>());
            }
            let asked_for = requests.into_iter().map(|request| Link {
                url: request.url,
                written: None,
                kind: LinkKind::Page,
                request: None,
            });
            extraction.links.extend(asked_for);
            Ok(extraction)
        }
        Err(Unread::Failed(failure) | Unread::SaysFailed(failure)) => Err(failure.into()),
        Err(Unread::Skipped) => {
            Err(Untried::Skipped(Skip::Handler, "the program leaves this page out".to_owned()))
        }
        Err(Unread::NotRun(why)) => Err(Failure::new(Class::Handler, why).into()),
    }
}

/// Renders pages as a worker does.
pub struct PageRenderer(Renderer);

impl PageRenderer {
    /// Starts with browsers whose requests go through `proxy`.
    ///
    /// # Errors
    ///
    /// Fails if no page can be rendered on this machine.
    pub fn new(proxy: &Arc<HandlerProxy>) -> Result<Self, NoBrowser> {
        Chromium::find(&proxy.settings().browser)?;
        Ok(Self(Renderer::new(proxy)))
    }

    /// Returns the response with the document that a page's scripts leave after these steps, which it puts into
    /// `report`. `landed` is the URL that it is from; `fetcher` makes the browser's requests for `spider`.
    ///
    /// # Errors
    ///
    /// Returns the reason why it is not rendered.
    pub async fn render(
        &self,
        spider: &Spider,
        scope: &Scope,
        fetcher: &Fetcher,
        (landed, response): (&CanonicalUrl, Response),
        steps: &[PageStep],
        report: &mut RenderReport,
    ) -> Result<Response, String> {
        let passage = fetcher.passage().map_err(|error| error.to_string())?;
        let own = AsSpider::new(spider, self.0.settings(), fetcher.clone());
        let on_behalf = OnBehalf { user: User { own, passage }, crawl: None, scope: scope.clone() };
        let rendered = self.0.render(on_behalf, landed, response, steps, report).await;
        rendered.map_err(|unrendered| match unrendered {
            Unrendered::NoPage(no_page) => no_page.to_string(),
            Unrendered::Later(why, _) => why,
        })
    }
}

/// The program of a spider, for trying it on a task.
pub struct TaskTrial(Running);

impl TaskTrial {
    /// Returns the program of `spider`, which runs in `folder` and makes requests through `proxy`.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be run, or there is none.
    pub fn new(spider: &Spider, folder: PathBuf, proxy: &Arc<HandlerProxy>) -> Result<Self, Unready> {
        Ok(running(spider, folder, proxy)?.map(Self).ok_or(CannotRun::None)?)
    }

    /// Runs a task, and ends the program.
    pub async fn task(self, task: TaskView) -> Ended {
        let ended = self.0.task(task).await;
        self.0.end().await;
        ended
    }
}

/// Returns the program of a spider for a trial, if it has one.
fn running(spider: &Spider, folder: PathBuf, proxy: &Arc<HandlerProxy>) -> Result<Option<Running>, Unready> {
    if spider.handler.is_none() {
        return Ok(None);
    }
    let fetcher = Fetcher::from_spider(spider, &proxy.settings().fetch)?;
    let access = proxy.access(spider, &fetcher)?;
    Ok(Running::new(spider, Default::default(), folder, access, true)?)
}

fn not_read(why: impl ToString) -> Untried {
    Untried::Skipped(Skip::ContentType, why.to_string())
}
