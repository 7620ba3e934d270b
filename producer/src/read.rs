//! Reading one source: a blocking parser on a thread of its own, fed by a file or by the network.

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;

use futures::TryStreamExt;
use tokio::sync::mpsc;
use tokio_util::io::{StreamReader, SyncIoBridge};
use trawl_common::route::{self, Hints};
use trawl_common::settings::Settings;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_common::url::{CanonicalUrl, MAX_URL_BYTES};
use trawl_web::Fetcher;

use crate::sitemap::{self, Entry, Fault, Found, Limits, SitemapError, Summary};
use crate::source::Source;
use crate::{Finding, Lifetime};

/// Findings are handed on in bundles of this size: one call of the frontier.
pub(crate) const BUNDLE: usize = 500;

/// Why a source could not be read to its end. What came before is kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("cannot be opened: {0}")]
    Open(#[from] io::Error),
    #[error("cannot be fetched: {0}")]
    Fetch(#[from] trawl_common::outcome::Failure),
    #[error(transparent)]
    Content(#[from] SitemapError),
    #[error("its reader panicked")]
    Panic,
}

impl ReadError {
    /// Whether the source is a web page rather than a list of them.
    pub(crate) fn is_page(&self) -> bool {
        match self {
            Self::Content(error) => match &error.fault {
                Fault::UnknownRoot(root) => root.eq_ignore_ascii_case("html"),
                _ => false,
            },
            _ => false,
        }
    }
}

/// What a source yielded.
pub(crate) struct Yield {
    pub(crate) summary: Summary,
    /// Further sitemaps that it names.
    pub(crate) sitemaps: Vec<String>,
}

/// Turns entries into findings: canonical, routed, with a deadline.
#[derive(Clone)]
pub(crate) struct Sorter {
    pub(crate) settings: std::sync::Arc<Settings>,
    pub(crate) lifetime: Lifetime,
}

/// Reads `source` to its end, or until the receiver of `findings` is gone.
pub(crate) async fn read(
    source: &Source,
    fetcher: &Fetcher,
    sorter: &Sorter,
    findings: &mpsc::Sender<Vec<Finding>>,
) -> Result<Yield, ReadError> {
    let reader: Box<dyn Read + Send> = match source {
        Source::Stdin => Box::new(io::stdin()),
        Source::File(path) => Box::new(File::open(path)?),
        Source::Web(url) => {
            let stream = fetcher.open(url).await?.map_err(io::Error::other);
            Box::new(SyncIoBridge::new(StreamReader::new(Box::pin(stream))))
        }
    };
    let (sorter, findings) = (sorter.clone(), findings.clone());
    let parsing = tokio::task::spawn_blocking(move || parse(reader, &sorter, &findings));
    parsing.await.unwrap_or(Err(ReadError::Panic))
}

fn parse(
    reader: Box<dyn Read + Send>,
    sorter: &Sorter,
    findings: &mpsc::Sender<Vec<Finding>>,
) -> Result<Yield, ReadError> {
    let mut bundle = Vec::with_capacity(BUNDLE);
    let mut sitemaps = Vec::new();
    let mut emit = |found| {
        match found {
            Found::Url(entry) => bundle.push(sorter.sort(&entry)),
            Found::Broken(broken) => {
                bundle.push(Finding::Invalid { text: broken.text, reason: broken.flaw.to_string() });
            }
            Found::Sitemap(location) => sitemaps.push(location),
        }
        if bundle.len() < BUNDLE {
            return ControlFlow::Continue(());
        }
        let full = std::mem::replace(&mut bundle, Vec::with_capacity(BUNDLE));
        match findings.blocking_send(full) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    let read = sitemap::read(reader, &Limits::default(), &mut emit);
    if !bundle.is_empty() {
        // Nobody listens any more only when the run is being stopped.
        let _ = findings.blocking_send(bundle);
    }
    Ok(Yield { summary: read?, sitemaps })
}

impl Sorter {
    fn sort(&self, entry: &Entry) -> Finding {
        match CanonicalUrl::parse(&entry.loc) {
            Ok(url) => {
                let changefreq = entry.changefreq.map(|freq| freq.as_str());
                self.page(url, Hints { changefreq, news: entry.news })
            }
            Err(error) => {
                Finding::Invalid { text: printable(&entry.loc, MAX_URL_BYTES), reason: error.to_string() }
            }
        }
    }

    /// Routes a URL.
    pub(crate) fn page(&self, url: CanonicalUrl, hints: Hints<'_>) -> Finding {
        let routed = route::route(&self.settings.route, &url, hints);
        let of_lane = match self.lifetime {
            Lifetime::Lane => Some(self.settings.queues.lane(routed.lane).ttl),
            Lifetime::Rule => None,
        };
        let ttl = routed.ttl.into_iter().chain(of_lane).min();
        let deadline = ttl.map(|ttl| UnixMs::now().plus(ttl));
        Finding::Page(trawl_common::ports::NewUrl { url, lane: routed.lane, deadline }, ttl)
    }
}
