//! `trawl spider try`: fetches and reads one page as a worker would, or reads a saved one.

use std::path::{Path, PathBuf};
use std::time::Instant;

use trawl_cli::{ArgumentFlags, Fail, Outcome, SpiderArg};
use trawl_common::exit::Exit;
use trawl_common::settings::Settings;
use trawl_common::spider::{Render, SpiderOverrides};
use trawl_common::task::Recipe;
use trawl_common::web::url::CanonicalUrl;
use trawl_worker::RenderReport;

use super::trial::{Given, Place, Trial, TrialPage, unread};
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
    #[arg(long, value_name = "RECIPE", conflicts_with_all = ["page", "url", "render", "screenshot", "links", "from", "carry"])]
    task: Option<Recipe>,
    #[command(flatten)]
    arguments: ArgumentFlags,
    /// The URL that a saved page is from: what its links are relative to
    #[arg(long, value_name = "URL")]
    url: Option<CanonicalUrl>,
    /// Render the page in a browser, whatever the spider's file says
    #[arg(long)]
    render: bool,
    /// Write a PNG of the rendered page, also at a step that fails
    #[arg(long, value_name = "FILE")]
    screenshot: Option<PathBuf>,
    /// List the page's links, and which of them are followed
    #[arg(long)]
    links: bool,
    #[command(flatten)]
    given: Given,
    /// Allow loopback, private and link-local addresses
    #[arg(long)]
    allow_private: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) async fn run(self, mut settings: Settings) -> Outcome {
        settings.fetch.allow_private |= self.allow_private;
        let render = self.render.then_some(Render::Always);
        let overrides = SpiderOverrides { render, ..SpiderOverrides::default() };
        let folder = self.spider.folder(&settings, self.arguments.arguments()?)?.with_overrides(overrides);
        if let Some(recipe) = self.task {
            return attempt_task::run(&self.spider, &folder, recipe, self.json, settings).await;
        }
        let mut trial = Trial::begin(&self.spider, &folder, settings)?;
        let session = match &self.page {
            Some(Place::Web(_)) => trial.log_in().await?,
            _ => None,
        };
        let begun = Instant::now();
        let page = self.page.ok_or_else(|| Fail::usage("give a page, or a task"))?;
        let mut report = RenderReport { is_pictured: self.screenshot.is_some(), ..RenderReport::default() };
        let got = page.get(&trial, self.url, &self.given, &mut report).await;
        let took = begun.elapsed();
        if let (Some(file), Some(Ok(picture))) = (&self.screenshot, &report.picture) {
            write(file, picture)?;
        }
        if got.is_err() && !self.json {
            show::print_steps(&report.steps);
        }
        let TrialPage { url, response, rendering } = got?;
        match report.picture {
            None if self.screenshot.is_some() => {
                return Err(Fail::usage("--screenshot: no browser renders this page: add --render"));
            }
            Some(Err(why)) => return Err(Fail::run(format!("no screenshot: {why}"))),
            None | Some(Ok(_)) => {}
        }
        let tried = trial.read(&url, response, self.given.request(&url)?).await;
        trial.end().await;
        let tried = tried.map_err(|untried| unread(&url, &untried))?;
        let lapse =
            session.as_ref().and_then(|session| session.lapse(&tried.response, Some(&tried.extraction)));
        if self.json {
            show::print_json(&url, &tried, (rendering, &report.steps), session.as_deref(), lapse.as_deref())
        } else {
            show::print(&url, &tried, took, (rendering, &report.steps), self.links);
            session.iter().for_each(|session| show::print_session(session, lapse.as_deref()));
        }
        if lapse.is_some() {
            return Ok(Exit::Failed);
        }
        Ok(if tried.extraction.missing.is_empty() { Exit::Ok } else { Exit::FailedUrls })
    }
}

fn write(file: &Path, picture: &[u8]) -> Result<(), Fail> {
    std::fs::write(file, picture).map_err(|error| Fail::run(format!("{}: {error}", file.display())))
}
