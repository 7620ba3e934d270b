//! Where a redirect leads.

use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode};
use trawl_common::outcome::{Class, Failure};
use trawl_common::url::CanonicalUrl;

/// How many redirects in a row are followed.
const MAX_HOPS: usize = 10;

/// The URLs asked so far, the latest last.
pub(super) struct Trail(Vec<CanonicalUrl>);

impl Trail {
    /// A trail that starts with `url`.
    pub(super) fn new(url: CanonicalUrl) -> Self {
        Self(vec![url])
    }

    /// The URL to ask now.
    pub(super) fn last(&self) -> &CanonicalUrl {
        &self.0[self.0.len() - 1]
    }

    /// The URL that a redirect led to, if any did.
    pub(super) fn into_target(mut self) -> Option<CanonicalUrl> {
        let last = self.0.pop();
        if self.0.is_empty() { None } else { last }
    }

    /// Goes on to where `response` redirects; `false` when it doesn't.
    pub(super) fn follow(&mut self, response: &Response) -> Result<bool, Failure> {
        let Some(location) = location(response) else { return Ok(false) };
        let failure = |detail: &str| Failure {
            status: Some(response.status().as_u16()),
            ..Failure::new(Class::Redirect, detail)
        };
        let next = resolve(self.last(), location).map_err(|reason| failure(&reason))?;
        if self.0.contains(&next) {
            return Err(failure(&format!("redirected in a circle, to {next}")));
        }
        if self.0.len() > MAX_HOPS {
            return Err(failure(&format!("more than {MAX_HOPS} redirects")));
        }
        self.0.push(next);
        Ok(true)
    }
}

/// The target that a redirect names (RFC 9110 15.4). Without one it is an answer like any other.
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
    // Servers send paths in raw UTF-8; the parser percent-encodes them.
    let location = String::from_utf8_lossy(location);
    let refused = |reason: &dyn std::fmt::Display| format!("redirected to `{location}`: {reason}");
    let url = from.to_url().join(&location).map_err(|reason| refused(&reason))?;
    CanonicalUrl::from_url(url).map_err(|reason| refused(&reason))
}
