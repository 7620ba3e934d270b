//! Sources that are pages themselves: whether they may be requested, how they are distinguished from lists, and how
//! they are kept so that the worker need not request them again.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{Stream, TryStreamExt};
use tracing::debug;
use trawl_common::frontier::outcome::Failure;
use trawl_common::host_schedules::HostSchedules;
use trawl_common::politeness::robots::{Robots, RobotsFile};
use trawl_common::ports::Cache;
use trawl_common::settings::{Politeness, Settings};
use trawl_common::spider::{Request, Spider};
use trawl_common::web::freshness::lifetime;
use trawl_common::web::response::Response;
use trawl_common::web::sniff::is_html;
use trawl_common::web::url::{self, CanonicalUrl};
use trawl_web::{Fetcher, RobotsWay, shared_robots};

use crate::sitemap::{self, Fault, Format, Found, Limits, Origin};

/// How many bytes of a source are examined to find out what it is.
pub(crate) const START_BYTES: usize = 4096;

/// Endings of the last part of a path, or all of it, that no page has.
const LIST_ENDINGS: &[&str] = &[".xml", ".gz", ".txt", ".rss", ".atom", ".rdf"];
const LIST_NAMES: &[&str] = &["sitemap", "feed", "rss", "atom"];

/// The reader of sources that may be pages.
pub(crate) struct PageSources {
    /// The store of responses.
    cache: Arc<dyn Cache>,
    fetcher: Arc<Fetcher>,
    schedules: HostSchedules,
    spider: Arc<Spider>,
    settings: Arc<Settings>,
    politeness: Politeness,
}

impl PageSources {
    pub(crate) fn new(
        cache: Arc<dyn Cache>,
        fetcher: Arc<Fetcher>,
        schedules: HostSchedules,
        spider: Arc<Spider>,
        settings: Arc<Settings>,
    ) -> Self {
        let politeness = spider.politeness.apply(&settings.politeness);
        Self { cache, fetcher, schedules, spider, settings, politeness }
    }

    /// Whether a source that a person named may be read here. RFC 9309 applies to discovered URLs, not to lists that a
    /// person names, but a source that may be a page is requested only if its site's robots.txt allows it. If that
    /// forbids it, or cannot be read, the source is treated as a page: the worker tries again, and reports the outcome.
    ///
    /// An unknown robots.txt is fetched for the whole fleet.
    pub(crate) async fn may_read(&self, url: &CanonicalUrl) -> bool {
        if !self.politeness.host_policy(&url.host()).robots || is_named_like_a_list(url) {
            return true;
        }
        let name = self.spider.request.apply(&self.settings.fetch).robots_name().unwrap_or_default();
        let file = self.robots(&url.origin()).await;
        file.and_then(|file| Robots::new(&file, &name)).is_some_and(|robots| robots.allows(url))
    }

    /// Returns the robots.txt of an origin, as stored or as fetched now. If neither can be had, the worker tries again.
    async fn robots(&self, origin: &url::Origin) -> Option<RobotsFile> {
        let Self { fetcher, schedules, settings, politeness, .. } = self;
        let key = politeness.robots_key(origin);
        let fetch = async || fetcher.robots(schedules, politeness, &mut RobotsWay::to(origin)).await;
        let file = shared_robots(schedules, settings, &key, fetch).await;
        file.inspect_err(|why| debug!(%origin, ?why, "robots.txt is not known")).ok()
    }

    /// Keeps a page until the worker takes it. This is optional: a page that cannot be kept is requested again.
    pub(crate) async fn keep(
        &self,
        url: &CanonicalUrl,
        head: Response,
        body: impl Stream<Item = Result<Bytes, Failure>> + Unpin,
    ) {
        let settings = &self.settings.cache;
        // A response to one spider's own request must not be used for another, and the worker follows redirects.
        if settings.ttl.is_zero() || self.spider.request != Request::default() || head.redirected_to.is_some()
        {
            return;
        }
        let Some(body) = whole(body, self.settings.fetch.max_body.as_u64()).await else { return };
        let page = Response { body, ..head };
        let ttl = settings.keeps(lifetime(&page.headers, page.fetched_at));
        // The worker requests it by its canonical URL.
        let asked = self.spider.urls.canonical(url.normalised());
        if let Err(error) = self.cache.put(&asked, &page, ttl).await {
            debug!(%url, %error, "page not kept");
        }
    }
}

/// Returns a body of at most `most` bytes if it is complete.
async fn whole(mut parts: impl Stream<Item = Result<Bytes, Failure>> + Unpin, most: u64) -> Option<Bytes> {
    let mut body = BytesMut::new();
    while let Some(part) = parts.try_next().await.ok()? {
        body.extend_from_slice(&part);
        if body.len() as u64 > most {
            return None;
        }
    }
    Some(body.freeze())
}

/// Whether the URL is certainly that of a list. Others are requested, too, if robots.txt allows it.
pub(crate) fn is_named_like_a_list(url: &CanonicalUrl) -> bool {
    let path = url.to_url().path().to_ascii_lowercase();
    let last = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or_default();
    LIST_ENDINGS.iter().any(|ending| last.ends_with(ending)) || LIST_NAMES.contains(&last)
}

/// Whether a source with this `Content-Type` that begins with `start` is a page: it is declared as one, or looks like
/// one, and does not look like a list. Lists are often sent as HTML.
pub(crate) fn is_page(content_type: Option<&str>, start: &[u8]) -> bool {
    let mut first = None;
    let read = sitemap::read(start, &Origin::default(), &Limits::default(), &mut |found| {
        first = Some(found);
        ControlFlow::Break(())
    });
    let (format, fault) = match read {
        Ok(summary) => (summary.format, None),
        Err(error) => (error.before.format, Some(error.fault)),
    };
    let is_sent_as_html = content_type.is_some_and(|content_type| is_html(Some(content_type), start));
    match (format, fault) {
        (Some(Format::List), _) => {
            let is_url = matches!(first, Some(Found::Url(entry)) if CanonicalUrl::parse(&entry.loc).is_ok());
            is_sent_as_html && !is_url
        }
        (Some(_), _) | (None, Some(Fault::GzipEndsEarly | Fault::GzipCorrupt(_) | Fault::GzipTwice)) => false,
        (None, Some(Fault::UnknownRoot(root))) if root.eq_ignore_ascii_case("html") => true,
        (None, _) => is_sent_as_html || is_html(None, start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTML: Option<&str> = Some("text/html; charset=utf-8");
    const TEXT: Option<&str> = Some("text/plain");

    #[test]
    fn a_page_is_recognised_by_what_it_is_sent_as_or_looks_like() {
        for (content_type, start) in [
            (HTML, "<!doctype html><title>x</title><p>y"),
            (HTML, "<title>no html element</title>"),
            (HTML, "<article>x</article>"),
            (HTML, "Hello <b>world</b>"),
            (HTML, ""),
            (HTML, "<!-- made by hand --><div>x"),
            (Some("application/xhtml+xml"), "<?xml version='1.0'?><html xmlns='x'>"),
            (Some("application/xml"), "<?xml version='1.0'?><!DOCTYPE html><html xmlns='x'>"),
            (TEXT, "<!doctype html><p>x"),
            (None, "\u{feff}\n<p>x"),
            (None, "<html>"),
        ] {
            assert!(is_page(content_type, start.as_bytes()), "{content_type:?} {start}");
        }
    }

    #[test]
    fn a_list_is_none_whatever_it_is_sent_as() {
        for content_type in [HTML, TEXT, None, Some("application/xml")] {
            for start in [
                "<?xml version='1.0'?><!-- x --><urlset xmlns='x'><url><lo",
                "<!-- x --><sitemapindex>",
                "<rss version='2.0'><channel>",
                "http://a.example/1\nhttp://a.example/2",
                "# all\nhttp://a.example/1",
                "User-agent: *\nDisallow:",
                "Sitemap: http://a.example/s.xml",
            ] {
                assert!(!is_page(content_type, start.as_bytes()), "{content_type:?} {start}");
            }
            assert!(!is_page(content_type, b"\x1f\x8b\x08\0\0\0"), "{content_type:?}");
        }
        assert!(!is_page(TEXT, b"Hello") && !is_page(None, b"") && !is_page(None, b"<Error>no</Error>"));
    }

    #[test]
    fn some_names_are_those_of_lists() {
        let is_list = |url: &str| is_named_like_a_list(&url.parse().unwrap());
        for url in ["http://a.example/Sitemap", "http://a.example/s.xml.gz", "http://a.example/blog/feed/"] {
            assert!(is_list(url), "{url}");
        }
        for url in ["http://feed.example/", "http://a.example/feedback", "http://a.example/rss/news?x=.xml"] {
            assert!(!is_list(url), "{url}");
        }
    }
}
