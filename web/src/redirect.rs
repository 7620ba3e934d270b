//! Where a redirect leads.

use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode};
use trawl_common::frontier::message::Hop;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::web::url::{CanonicalUrl, InvalidUrl, MAX_URL_BYTES};

use super::guard::Guard;

/// How many redirects in a row lead to a page; more lead nowhere.
pub const MAX_REDIRECTS: u8 = 10;

/// Where an answer redirects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// A URL that may be requested, as far as it shows without asking a resolver.
    pub target: CanonicalUrl,
    /// Whether it is to be requested by GET, without the body that was sent.
    pub as_get: bool,
}

impl From<CanonicalUrl> for Redirect {
    fn from(target: CanonicalUrl) -> Self {
        Self { target, as_get: false }
    }
}

/// How far redirects have led from a URL: as much as a message carries along, so that the worker that requests the next URL after a
/// while goes on by the same rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    start: CanonicalUrl,
    /// The URL that the last redirect led to, and how many redirects that makes.
    hop: Option<Hop>,
    most: u8,
}

impl Trail {
    /// A trail that starts with `url` and goes on by at most `most` redirects.
    pub fn new(url: CanonicalUrl, most: u8) -> Self {
        Self::at(url, None, most)
    }

    /// A trail from `start` that has come to `hop`.
    pub fn at(start: CanonicalUrl, hop: Option<Hop>, most: u8) -> Self {
        Self { start, hop, most }
    }

    /// The URL to ask now.
    pub fn last(&self) -> &CanonicalUrl {
        self.hop.as_ref().map_or(&self.start, |hop| &hop.url)
    }

    /// Where it has come to, unless it is still at its start.
    pub fn into_hop(self) -> Option<Hop> {
        self.hop
    }

    /// How much memory it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.start.as_str().len() + self.last().as_str().len()
    }

    /// The URL that a redirect led to, if any did.
    pub fn into_target(self) -> Option<CanonicalUrl> {
        self.hop.map(|hop| hop.url)
    }

    /// Goes on where an answer redirects to.
    ///
    /// # Errors
    /// A redirect back to the start or to the URL that was asked, and one redirect too many, are a [`Failure`] of class
    /// `redirect`. A circle that leaves the start out ends as one redirect too many. A URL that was asked by another method is not the
    /// same.
    pub fn go(&mut self, to: impl Into<Redirect>) -> Result<(), Failure> {
        let Redirect { target, as_get } = to.into();
        let was_get = self.hop.as_ref().is_some_and(|hop| hop.as_get);
        let is_start = target == self.start && !as_get && !was_get;
        if is_start || target == *self.last() && !as_get {
            return Err(Failure::new(Class::Redirect, format_args!("redirected in a circle, to {target}")));
        }
        let count = self.hop.as_ref().map_or(0, |hop| hop.count).saturating_add(1);
        if count > self.most {
            return Err(Failure::new(Class::Redirect, format_args!("more than {} redirects", self.most)));
        }
        self.hop = Some(Hop { url: target, count, as_get: as_get || was_get });
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

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> CanonicalUrl {
        format!("http://a.example/{path}").parse().unwrap()
    }

    #[test]
    fn a_post_may_lead_to_its_own_url_by_get_and_no_further_in_a_circle() {
        let as_get = Redirect { target: url("form"), as_get: true };
        let mut trail = Trail::new(url("form"), MAX_REDIRECTS);
        trail.go(as_get).unwrap();
        assert_eq!(trail.go(url("form")).unwrap_err().class, Class::Redirect);
        trail.go(url("done")).unwrap();
        trail.go(url("form")).unwrap();
        assert_eq!(trail.into_hop(), Some(Hop { url: url("form"), count: 3, as_get: true }));
        let mut kept = Trail::new(url("form"), MAX_REDIRECTS);
        assert_eq!(kept.go(url("form")).unwrap_err().class, Class::Redirect);
    }
}
