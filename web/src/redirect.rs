//! Where a redirect leads.

use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode};
use trawl_common::outcome::{Class, Failure};
use trawl_common::url::{CanonicalUrl, InvalidUrl, MAX_URL_BYTES};

use super::guard::Guard;

/// The URLs asked so far, the latest last.
#[derive(Clone, Debug)]
pub struct Trail {
    urls: Vec<CanonicalUrl>,
    most: usize,
}

impl Trail {
    /// A trail that starts with `url` and goes on by at most `most` redirects.
    pub fn new(url: CanonicalUrl, most: usize) -> Self {
        Self { urls: vec![url], most }
    }

    /// The URL to ask now.
    pub fn last(&self) -> &CanonicalUrl {
        &self.urls[self.urls.len() - 1]
    }

    /// How much memory it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.urls.iter().map(|url| url.as_str().len()).sum()
    }

    /// The URL that a redirect led to, if any did.
    pub fn into_target(mut self) -> Option<CanonicalUrl> {
        let last = self.urls.pop();
        if self.urls.is_empty() { None } else { last }
    }

    /// Goes on to `target`. A circle and one redirect too many are a [`Failure`] of class `redirect`.
    pub fn go(&mut self, target: CanonicalUrl) -> Result<(), Failure> {
        if self.urls.contains(&target) {
            return Err(Failure::new(Class::Redirect, format_args!("redirected in a circle, to {target}")));
        }
        if self.urls.len() > self.most {
            return Err(Failure::new(Class::Redirect, format_args!("more than {} redirects", self.most)));
        }
        self.urls.push(target);
        Ok(())
    }
}

/// The target of `response`, the answer to `from`, if it redirects (RFC 9110 15.4) to what may be asked. Without
/// a `Location` it is an answer like any other.
pub(super) fn target(
    guard: &Guard,
    from: &CanonicalUrl,
    response: &Response,
) -> Result<Option<CanonicalUrl>, Failure> {
    let Some(location) = location(response) else { return Ok(None) };
    let status = Some(response.status().as_u16());
    let target = resolve(from, location)
        .map_err(|reason| Failure { status, ..Failure::new(Class::Redirect, reason) })?;
    guard.check(&target.to_url()).map_err(|refused| Failure { status, ..refused.into() })?;
    Ok(Some(target))
}

fn location(response: &Response) -> Option<&[u8]> {
    let redirects = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    response.headers().get(LOCATION).filter(|_| redirects).map(|value| value.as_bytes())
}

fn resolve(from: &CanonicalUrl, location: &[u8]) -> Result<CanonicalUrl, String> {
    // Refused before it is parsed: parsing may grow a text threefold.
    if location.len() > MAX_URL_BYTES {
        return Err(format!("redirected to a URL {}", InvalidUrl::TooLong));
    }
    // Servers send paths in raw UTF-8; the parser percent-encodes them.
    let location = String::from_utf8_lossy(location);
    let refused = |reason: &dyn std::fmt::Display| format!("redirected to `{location}`: {reason}");
    let url = from.to_url().join(&location).map_err(|reason| refused(&reason))?;
    CanonicalUrl::from_url(url).map_err(|reason| refused(&reason))
}
