//! From the named sources to every URL that they and their sitemaps list.

use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::{debug, info};
use trawl_common::route::Hints;
use trawl_common::text::printable;
use trawl_common::url::CanonicalUrl;
use trawl_web::Fetcher;

use crate::gait::Gait;
use crate::itinerary::{Itinerary, MAX_DEPTH, MAX_SITEMAPS};
use crate::read::{self, BUNDLE, MAX_INVALID, Sorter, Yield};
use crate::report::Progress;
use crate::revisit::Revisit;
use crate::sitemap::Summary;
use crate::source::Source;
use crate::start::Start;
use crate::{Finding, Html};

/// Lines that a report has of each kind: an index can name a hundred thousand sitemaps that cannot be read.
const MAX_LINES: usize = 1_000;

/// Reads sources one after another, the sitemaps that they name after them.
pub(crate) struct Discovery {
    pub(crate) fetcher: Fetcher,
    pub(crate) sorter: Sorter,
    pub(crate) html: Html,
    pub(crate) progress: Arc<Progress>,
    pub(crate) gait: Gait,
    pub(crate) revisit: Option<Revisit>,
    pub(crate) problems: Lines,
    pub(crate) empty: Lines,
}

impl Discovery {
    /// Takes the pages, reads all sources, and what is remembered last; returns what could not be read: the problems, and the
    /// sources without a URL.
    pub(crate) async fn run(
        mut self,
        start: Start,
        findings: mpsc::Sender<Vec<Finding>>,
    ) -> (Vec<String>, Vec<String>) {
        let Start { pages, sources } = start;
        self.take(pages, &findings).await;
        let mut itinerary = Itinerary::new(sources);
        while let Some((source, depth)) = itinerary.next() {
            if findings.is_closed() {
                break;
            }
            let read = self.read(&source, &findings).await;
            // What the end of the run cut short is no problem of the source.
            if findings.is_closed() && read.end.is_err() {
                break;
            }
            self.follow(&source, &read, depth, &mut itinerary);
            self.conclude(&source, read, &findings).await;
        }
        if let Some(revisit) = &self.revisit
            && let Err(error) = revisit.run(&findings).await
        {
            self.problems.push(|| format!("what was crawled before cannot be looked up: {error}"));
        }
        (self.problems.into_vec(), self.empty.into_vec())
    }

    async fn read(&mut self, source: &Source, findings: &mpsc::Sender<Vec<Finding>>) -> Yield {
        if let Source::Web(url) = source {
            let host = url.host();
            tokio::select! {
                () = self.gait.wait(&host) => {}
                () = findings.closed() => {}
            }
        }
        read::read(source, &self.fetcher, &self.sorter, findings).await
    }

    /// Adds the sitemaps that `source` names, whether or not it could be read to its end.
    fn follow(&mut self, source: &Source, read: &Yield, depth: u8, itinerary: &mut Itinerary) {
        let named = read.sitemaps.len() as u64 + read.left_out;
        if depth >= MAX_DEPTH && named > 0 {
            let deep =
                format!("names {named} sitemaps, left out: indexes are nested deeper than {MAX_DEPTH}");
            return self.problem(source, &deep);
        }
        let (mut left_out, mut strange) = (read.left_out, Vec::new());
        for location in &read.sitemaps {
            match resolve(source, location) {
                Some(sitemap) => left_out += u64::from(!itinerary.add(sitemap, depth + 1)),
                None => strange.push(location),
            }
        }
        if let Some(first) = strange.first() {
            let (count, first) = (strange.len(), printable(first, 200));
            self.problem(source, &format!("names {count} sitemaps that are no URLs, the first `{first}`"));
        }
        if left_out > 0 {
            let many = format!(
                "names {left_out} sitemaps too many, left out: {MAX_SITEMAPS} are read at most, with 32 MB of names"
            );
            self.problem(source, &many);
        }
    }

    /// Notes how the reading of `source` ended.
    async fn conclude(&mut self, source: &Source, read: Yield, findings: &mpsc::Sender<Vec<Finding>>) {
        if read.invalid > MAX_INVALID {
            let invalid = read.invalid;
            let many = format!("{invalid} entries are no URLs, of which {MAX_INVALID} became dead letters");
            self.problem(source, &many);
        }
        match (read.end, source) {
            (Ok(summary), _) => {
                let Summary { urls, sitemaps, broken, .. } = summary;
                info!(%source, urls, sitemaps, broken, "read");
                self.progress.source();
                if summary.entries() == 0 {
                    self.empty.push(|| source.to_string());
                }
            }
            (Err(error), Source::Web(url)) if self.html == Html::IsThePage && error.is_page() => {
                self.take(vec![url.clone()], findings).await;
            }
            (Err(error), _) => self.problem(source, &error),
        }
    }

    /// Takes sources that are themselves pages.
    async fn take(&self, pages: Vec<CanonicalUrl>, findings: &mpsc::Sender<Vec<Finding>>) {
        for bundle in pages.chunks(BUNDLE) {
            bundle.iter().for_each(|_| self.progress.source());
            let page =
                |url: &CanonicalUrl| self.sorter.page(url.clone(), Hints::default()).map(Finding::Page);
            // Nobody takes it any more when the run is being stopped.
            let _ = findings.send(bundle.iter().filter_map(page).collect()).await;
        }
    }

    fn problem(&mut self, source: &Source, problem: &dyn std::fmt::Display) {
        debug!(%source, problem = %problem, "not read to its end; going on with the others");
        let name = || printable(&source.to_string(), 500);
        self.problems.push(|| format!("{}: {}", name(), printable(&problem.to_string(), 1500)));
    }
}

/// The source that `location`, written in `from`, names.
fn resolve(from: &Source, location: &str) -> Option<Source> {
    let url = match from {
        Source::Web(base) => {
            base.to_url().join(location).ok().and_then(|url| CanonicalUrl::from_url(url).ok())
        }
        Source::File(_) | Source::Stdin => CanonicalUrl::parse(location).ok(),
    };
    url.map(Source::Web)
}

/// The first of many lines, and how many more there were.
#[derive(Default)]
pub(crate) struct Lines {
    lines: Vec<String>,
    more: u64,
}

impl Lines {
    fn push(&mut self, line: impl FnOnce() -> String) {
        if self.lines.len() < MAX_LINES {
            self.lines.push(line());
        } else {
            self.more += 1;
        }
    }

    fn into_vec(mut self) -> Vec<String> {
        if self.more > 0 {
            self.lines.push(format!("and {} more sources", self.more));
        }
        self.lines
    }
}
