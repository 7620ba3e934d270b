//! From the named sources to every URL that they and their sitemaps list.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::{debug, info};
use trawl_common::route::Hints;
use trawl_common::text::printable;
use trawl_common::url::CanonicalUrl;
use trawl_web::Fetcher;

use crate::gait::Gait;
use crate::read::{self, ReadError, Sorter};
use crate::report::Progress;
use crate::source::Source;
use crate::{Finding, Html};

/// How deep indexes may be nested; sitemaps.org allows one level.
const MAX_DEPTH: u8 = 5;

/// How many sitemaps one run reads: an index of indexes can name millions.
const MAX_SITEMAPS: usize = 100_000;

/// Reads sources one after another, the sitemaps that they name after them.
pub(crate) struct Discovery {
    pub(crate) fetcher: Fetcher,
    pub(crate) sorter: Sorter,
    pub(crate) html: Html,
    pub(crate) progress: Arc<Progress>,
    pub(crate) gait: Gait,
    pub(crate) problems: Vec<String>,
    pub(crate) empty: Vec<String>,
}

impl Discovery {
    /// Reads all, and returns what could not be read: the problems, and the sources without a URL.
    pub(crate) async fn run(
        mut self,
        sources: Vec<Source>,
        findings: mpsc::Sender<Vec<Finding>>,
    ) -> (Vec<String>, Vec<String>) {
        let mut known: HashSet<Source> = sources.iter().cloned().collect();
        let mut waiting: VecDeque<(Source, u8)> = sources.into_iter().map(|source| (source, 0)).collect();
        while let Some((source, depth)) = waiting.pop_front() {
            if findings.is_closed() {
                break;
            }
            for location in self.read(&source, &findings).await {
                match self.follow(&source, &location, depth) {
                    Ok(sitemap) if known.len() >= MAX_SITEMAPS => {
                        self.problem(&sitemap, &format!("left out: more than {MAX_SITEMAPS} sitemaps"));
                    }
                    Ok(sitemap) if known.insert(sitemap.clone()) => waiting.push_back((sitemap, depth + 1)),
                    Ok(sitemap) => debug!(%sitemap, "named again"),
                    Err(problem) => self.problem(&source, &problem),
                }
            }
        }
        (self.problems, self.empty)
    }

    /// Reads one source and returns the sitemaps that it names.
    async fn read(&mut self, source: &Source, findings: &mpsc::Sender<Vec<Finding>>) -> Vec<String> {
        if let Source::Web(url) = source {
            self.gait.wait(&url.host()).await;
        }
        match read::read(source, &self.fetcher, &self.sorter, findings).await {
            Ok(read) => {
                let (urls, broken) = (read.summary.urls, read.summary.broken);
                info!(%source, urls, sitemaps = read.summary.sitemaps, broken, "read");
                self.progress.source();
                if read.summary.entries() == 0 {
                    self.empty.push(source.to_string());
                }
                read.sitemaps
            }
            Err(error) => {
                self.cannot_read(source, &error, findings).await;
                Vec::new()
            }
        }
    }

    async fn cannot_read(
        &mut self,
        source: &Source,
        error: &ReadError,
        findings: &mpsc::Sender<Vec<Finding>>,
    ) {
        match source {
            Source::Web(url) if self.html == Html::IsThePage && error.is_page() => {
                let page = self.sorter.page(url.clone(), Hints::default());
                self.progress.source();
                let _ = findings.send(vec![page]).await;
            }
            _ => self.problem(source, error),
        }
    }

    /// The source that `location`, written in `from`, names.
    fn follow(&self, from: &Source, location: &str, depth: u8) -> Result<Source, String> {
        let shown = printable(location, 200);
        if depth >= MAX_DEPTH {
            return Err(format!("names `{shown}`, left out: indexes are nested deeper than {MAX_DEPTH}"));
        }
        let relative = match from {
            Source::Web(base) => {
                base.to_url().join(location).ok().and_then(|url| CanonicalUrl::from_url(url).ok())
            }
            Source::File(_) | Source::Stdin => CanonicalUrl::parse(location).ok(),
        };
        relative.map(Source::Web).ok_or_else(|| format!("names a sitemap that is no URL: `{shown}`"))
    }

    fn problem(&mut self, source: &Source, problem: &dyn std::fmt::Display) {
        debug!(%source, problem = %problem, "not read to its end; going on with the others");
        self.problems.push(printable(&format!("{source}: {problem}"), 2048));
    }
}
