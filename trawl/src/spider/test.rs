//! `trawl spider test`: whether a spider still makes of recorded pages what it made of them.

use std::path::Path;

use anstream::println;
use anstyle::{AnsiColor, Style};
use serde_json::json;
use trawl_cli::{ArgumentFlags, Fail, Outcome, SpiderArg, counted, print_json};
use trawl_common::exit::Exit;
use trawl_common::settings::Settings;
use trawl_common::text::printable;
use trawl_common::web::url::CanonicalUrl;
use trawl_worker::RenderReport;

use super::recorded::{Recorded, differences, folder_of, outcome};
use super::trial::{Given, Trial, TrialPage, request_of, unread};

/// Maximum number of differences that are shown of a page.
const MAX_SHOWN: usize = 20;
/// Maximum length of a displayed difference.
const MAX_LENGTH: usize = 400;

/// The command-line arguments of `trawl spider test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The spider: its file, or its name
    #[arg(value_name = "FILE|NAME")]
    spider: SpiderArg,
    /// Fetch this page, and record it with what the spider makes of it; may be repeated
    #[arg(long, value_name = "URL", conflicts_with = "accept")]
    record: Vec<CanonicalUrl>,
    #[command(flatten)]
    given: Given,
    /// Take what the spider makes of the recorded pages now for right
    #[arg(long, conflicts_with_all = ["from", "carry"])]
    accept: bool,
    #[command(flatten)]
    arguments: ArgumentFlags,
    /// Allow loopback, private and link-local addresses
    #[arg(long)]
    allow_private: bool,
    /// Print one JSON object a page
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Exits with 6 if a page differs.
    pub(super) async fn run(self, mut settings: Settings) -> Outcome {
        settings.fetch.allow_private |= self.allow_private;
        let pages = folder_of(&self.spider.file(&settings)?);
        let folder = self.spider.folder(&settings, self.arguments.arguments()?)?;
        let mut trial = Trial::begin(&self.spider, &folder, settings)?;
        let exit = match self.record.is_empty() {
            true => self.compare(&trial, &pages).await,
            false => {
                trial.log_in().await?;
                self.record(&trial, &pages).await
            }
        };
        trial.end().await;
        exit
    }

    async fn record(&self, trial: &Trial, pages: &Path) -> Outcome {
        for url in &self.record {
            let (from, carry) = (self.given.from.clone(), self.given.values());
            let TrialPage { response, .. } =
                trial.fetch(url, &self.given, &mut RenderReport::default()).await?;
            let tried = trial.read(url, response, self.given.request(url)?).await;
            let tried = tried.map_err(|untried| unread(url, &untried))?;
            let path = Recorded::new(url, &tried, from, carry).write(pages, &tried.response.body)?;
            let items = tried.extraction.items.len() as u64;
            match self.json {
                true => print_json(&json!({ "page": path, "url": url.as_str(), "items": items })),
                false => println!("{}: {} of {url}", path.display(), counted(items, "item")),
            }
        }
        Ok(Exit::Ok)
    }

    async fn compare(&self, trial: &Trial, pages: &Path) -> Outcome {
        let records = Recorded::all(pages)?;
        if records.is_empty() {
            let what = format!("no page is recorded in {}: `--record URL` records one", pages.display());
            return Err(Fail::usage(what));
        }
        let all = records.len();
        let mut differing = 0;
        for (path, mut record) in records {
            let (url, response) = record.response(pages)?;
            let request = request_of(&url, record.from.as_deref(), record.carry.clone())?;
            let read = trial.read(&url, response, request).await;
            let found = read.map_or_else(
                |untried| json!({ "error": unread(&url, &untried).message }),
                |tried| outcome(&tried),
            );
            let differences = differences(&record.expected, &found);
            differing += usize::from(!differences.is_empty());
            match self.json {
                true => print_json(&json!({ "page": path, "url": url.as_str(), "differences": differences })),
                false => print(&path, &url, &differences),
            }
            if self.accept && !differences.is_empty() {
                record.expected = found;
                record.rewrite(&path)?;
            }
        }
        if !self.json {
            let what = if self.accept { "differed, and are accepted" } else { "differ" };
            println!("{}, {differing} {what}", counted(all as u64, "page"));
        }
        Ok(if differing == 0 || self.accept { Exit::Ok } else { Exit::Unmet })
    }
}

/// Prints the differences of a page, if there are any.
fn print(path: &Path, url: &CanonicalUrl, differences: &[String]) {
    if differences.is_empty() {
        return;
    }
    let (red, dim) = (AnsiColor::Red.on_default().bold(), Style::new().dimmed());
    println!("{red}differs{red:#} {} {dim}{url}{dim:#}", path.display());
    for difference in differences.iter().take(MAX_SHOWN) {
        println!("  {}", printable(difference, MAX_LENGTH));
    }
    if differences.len() > MAX_SHOWN {
        println!("  {dim}and {} more{dim:#}", differences.len() - MAX_SHOWN);
    }
}
