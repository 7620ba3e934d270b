//! URLs in a page, absolute.

use trawl_common::settings::Urls;
use trawl_common::url::{CanonicalUrl, MAX_URL_BYTES};
use url::Url;

/// What a page's links are relative to, and which of them are one.
pub(crate) struct Base<'a> {
    url: Url,
    urls: &'a Urls,
}

impl<'a> Base<'a> {
    /// That of a page at `url`: its `<base>`, unless nothing can be relative to that.
    pub(crate) fn of(base: Option<&str>, url: &CanonicalUrl, urls: &'a Urls) -> Self {
        let url = url.to_url();
        // Every link is joined to it: a long one would be copied as often.
        let base = base.filter(|base| base.len() <= MAX_URL_BYTES);
        let base = base.and_then(|base| url.join(base).ok());
        Self { url: base.filter(|base| !base.cannot_be_a_base()).unwrap_or(url), urls }
    }

    /// Where a link points, if that can be crawled.
    pub(crate) fn link(&self, link: &str) -> Option<CanonicalUrl> {
        CanonicalUrl::from_url(self.join(link)?).ok().map(|url| self.urls.canonical(url))
    }

    /// Where a link points: canonical, if that can be crawled, and also of another scheme.
    pub(crate) fn resolve(&self, link: &str) -> Option<String> {
        if link.trim().is_empty() {
            return None;
        }
        let url = self.join(link)?;
        if matches!(url.scheme(), "http" | "https") {
            let url = CanonicalUrl::from_url(url).ok()?;
            return Some(self.urls.canonical(url).into());
        }
        Some(url.into()).filter(|url: &String| url.len() <= MAX_URL_BYTES)
    }

    /// The URL that stands for `url`.
    pub(crate) fn canonical(&self, url: &CanonicalUrl) -> CanonicalUrl {
        self.urls.canonical(url.clone())
    }

    fn join(&self, link: &str) -> Option<Url> {
        if link.len() > MAX_URL_BYTES { None } else { self.url.join(link).ok() }
    }
}

/// A link without its fragment, which changes nothing of what is asked for.
pub(crate) fn without_fragment(link: &str) -> &str {
    link.split('#').next().unwrap_or(link)
}
