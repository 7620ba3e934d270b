//! URLs in a page, absolute.

use trawl_common::url::{CanonicalUrl, MAX_URL_BYTES};
use url::Url;

/// What a page's links are relative to: its `<base>`, unless nothing can be relative to that.
pub(crate) fn of(base: Option<&str>, url: &CanonicalUrl) -> Url {
    let url = url.to_url();
    // Every link is joined to it: a long one would be copied as often.
    let base = base.filter(|base| base.len() <= MAX_URL_BYTES);
    let base = base.and_then(|base| url.join(base).ok());
    base.filter(|base| !base.cannot_be_a_base()).unwrap_or(url)
}

/// Where a link points, if that can be crawled.
pub(crate) fn link(base: &Url, link: &str) -> Option<CanonicalUrl> {
    CanonicalUrl::from_url(join(base, link)?).ok()
}

/// Where a link points: canonical, if that can be crawled, and also of another scheme.
pub(crate) fn resolve(base: &Url, link: &str) -> Option<String> {
    if link.trim().is_empty() {
        return None;
    }
    let url = join(base, link)?;
    if matches!(url.scheme(), "http" | "https") {
        return CanonicalUrl::from_url(url).ok().map(String::from);
    }
    Some(url.into()).filter(|url: &String| url.len() <= MAX_URL_BYTES)
}

/// A link without its fragment, which changes nothing of what is asked for.
pub(crate) fn without_fragment(link: &str) -> &str {
    link.split('#').next().unwrap_or(link)
}

fn join(base: &Url, link: &str) -> Option<Url> {
    if link.len() > MAX_URL_BYTES { None } else { base.join(link).ok() }
}
