//! Reads the named sources and their sitemaps, and finds every URL that they list.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tracing::{debug, info};
use trawl_common::frontier::outcome::Class;
use trawl_common::list::ListEntry;
use trawl_common::text::{counted, printable};
use trawl_common::web::url::{CanonicalUrl, MAX_URL_BYTES};

use crate::finding::Finding;
use crate::report::Progress;
use crate::sitemap::Summary;
use crate::sources::asking::Asking;
use crate::sources::page::{PageSources, is_named_like_a_list};
use crate::sources::read::{self, MAX_INVALID, PART_SIZE, Yield};
use crate::sources::read_error::ReadError;
use crate::sources::revisit::Revisit;
use crate::sources::sitemap_queue::{MAX_DEPTH, MAX_SITEMAPS, QueuedSource, SitemapQueue};
use crate::sources::sorter::Sorter;
use crate::sources::source::Source;
use crate::sources::start::RunStart;

/// Maximum number of lines of each kind in a report: an index can name a hundred thousand sitemaps that
/// cannot be read.
const MAX_LINES: usize = 1_000;

/// The number of sources in progress at once. Most of them wait for their hosts, and each asks repeatedly for a slot.
const MAX_IN_PROGRESS: usize = 64;

/// Reads sources, and after each one the sitemaps that it names.
pub(crate) struct Discovery {
    pub(crate) asking: Arc<Asking>,
    pub(crate) sorter: Sorter,
    /// The handling of sources that are pages; if `None`, such a source is a mistake.
    pub(crate) pages: Option<Arc<PageSources>>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) revisit: Option<Revisit>,
    pub(crate) problems: Lines,
    pub(crate) empty: Lines,
}

impl Discovery {
    /// Admits the pages, reads all sources, and finally the remembered pages. Returns the problems, and the
    /// sources without a URL.
    pub(crate) async fn run(
        mut self,
        start: RunStart,
        findings: mpsc::Sender<Vec<Finding>>,
    ) -> (Vec<String>, Vec<String>) {
        let RunStart { pages, sources } = start;
        self.take(pages, &findings).await;
        let mut queue = SitemapQueue::new(sources);
        let mut reading = FuturesUnordered::new();
        loop {
            while reading.len() < MAX_IN_PROGRESS
                && !findings.is_closed()
                && let Some(queued) = queue.next()
            {
                reading.push(self.read(queued, findings.clone()));
            }
            let Some((mut queued, read)) = reading.next().await else { break };
            // An error caused by the end of the run is not a problem of the source.
            if findings.is_closed() && read.end.is_err() {
                continue;
            }
            self.follow(&mut queued, &read, &mut queue);
            self.conclude(&queued, read, &findings).await;
            queue.take_back(queued);
        }
        if let Some(revisit) = &self.revisit
            && let Err(error) = revisit.run(&findings).await
        {
            self.problems.push(|| format!("what was crawled before cannot be looked up: {error}"));
        }
        (self.problems.into_vec(), self.empty.into_vec())
    }

    /// Reads the source of `queued`.
    fn read(
        &self,
        queued: QueuedSource,
        findings: mpsc::Sender<Vec<Finding>>,
    ) -> impl Future<Output = (QueuedSource, Yield)> + use<> {
        let (asking, sorter, pages) = (Arc::clone(&self.asking), self.sorter.clone(), self.pages.clone());
        async move {
            // Sources listed by another list of the site may be read.
            if let (Source::Web(url), Some(pages), 0) = (&queued.source, pages.as_deref(), queued.depth) {
                let may_read = tokio::select! {
                    may_read = pages.may_read(url) => may_read,
                    () = findings.closed() => false,
                };
                if !may_read {
                    return (queued, Yield::nothing(ReadError::Page));
                }
            }
            let retries = !(pages.is_some() && may_be_page(&queued));
            let read =
                read::read(&queued.source, pages.as_deref(), retries, &asking, &sorter, &findings).await;
            (queued, read)
        }
    }

    /// Adds the sitemaps that the source of `queued` names, whether or not it could be read to its end.
    fn follow(&mut self, queued: &mut QueuedSource, read: &Yield, queue: &mut SitemapQueue) {
        let source = &queued.source.clone();
        let named = read.sitemaps.len() as u64 + read.left_out;
        if queued.depth >= MAX_DEPTH && named > 0 {
            let deep =
                format!("names {named} sitemaps, left out: indexes are nested deeper than {MAX_DEPTH}");
            return self.problem(source, &deep);
        }
        let (mut left_out, mut strange) = (read.left_out, Vec::new());
        for location in &read.sitemaps {
            match resolve(source, location) {
                Some(sitemap) => left_out += u64::from(!queue.add(queued, sitemap)),
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

    /// Records how the reading of `source` ended.
    async fn conclude(&mut self, queued: &QueuedSource, read: Yield, findings: &mpsc::Sender<Vec<Finding>>) {
        let QueuedSource { source, .. } = queued;
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
                if sitemaps == 0 && read.invalid >= urls + broken {
                    self.empty.push(|| source.to_string());
                }
            }
            (Err(error), Source::Web(url)) if self.pages.is_some() && error.is_page() => {
                self.take(vec![url.clone().into()], findings).await;
            }
            // A URL named by a person that may be a page is not lost when it fails: the worker tries again, and reports
            // the failure as a dead letter.
            (Err(ReadError::Fetch(failure)), Source::Web(url))
                if self.pages.is_some() && may_be_page(queued) && failure.class != Class::Forbidden =>
            {
                self.take(vec![url.clone().into()], findings).await;
            }
            (Err(error), _) if error.is_page() => self.problem(source, &ReadError::Page),
            (Err(error), _) => self.problem(source, &error),
        }
    }

    /// Sends sources that are themselves pages or tasks.
    async fn take(&self, pages: Vec<ListEntry>, findings: &mpsc::Sender<Vec<Finding>>) {
        for part in pages.chunks(PART_SIZE) {
            part.iter().for_each(|_| self.progress.source());
            // When the run is being stopped, the receiver is gone.
            let _ = findings.send(part.iter().filter_map(|entry| self.named(entry)).collect()).await;
        }
    }

    /// Returns the finding for an entry that a person names; `None` if it is outside the spider's domains.
    fn named(&self, entry: &ListEntry) -> Option<Finding> {
        let (found, text) = match entry {
            ListEntry::Request(new) => (
                self.sorter.named(new.clone()).map(|candidate| candidate.map(Finding::Page)),
                printable(&new.url, MAX_URL_BYTES),
            ),
            ListEntry::Task(new) => (self.sorter.task(new.clone()).map(Some), "a task".to_owned()),
        };
        found.unwrap_or_else(|reason| Some(Finding::Invalid { text, reason }))
    }

    fn problem(&mut self, source: &Source, problem: &dyn std::fmt::Display) {
        debug!(%source, problem = %problem, "not read to its end; going on with the others");
        let name = || printable(&source.to_string(), 500);
        self.problems.push(|| format!("{}: {}", name(), printable(&problem.to_string(), 1500)));
    }
}

/// Whether a person named the source, and it may be a page.
fn may_be_page(QueuedSource { source, depth, .. }: &QueuedSource) -> bool {
    matches!(source, Source::Web(url) if *depth == 0 && !is_named_like_a_list(url))
}

/// Returns the source that `location` in `from` refers to.
fn resolve(from: &Source, location: &str) -> Option<Source> {
    let url = match from {
        Source::Web(base) => {
            base.to_url().join(location).ok().and_then(|url| CanonicalUrl::as_written(url).ok())
        }
        Source::File(_) | Source::Stdin => CanonicalUrl::parse(location).ok(),
    };
    url.map(Source::Web)
}

/// The first of many lines, and the number of further ones.
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
            self.lines.push(format!("and {}", counted(self.more, "more source")));
        }
        self.lines
    }
}
