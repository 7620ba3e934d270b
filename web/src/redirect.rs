//! Follows redirects.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, percent_encode};
use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode};
use trawl_common::frontier::message::Hop;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::web::url::{CanonicalUrl, InvalidUrl, MAX_URL_BYTES};

use super::guard::Guard;

/// Maximum number of consecutive redirects.
pub const MAX_REDIRECTS: u8 = 10;

/// The number of redirects up to which one may lead back: some servers redirect a visitor back and forth once.
const MAX_BACK: u8 = 2;

/// The target of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// A URL that may be requested, as far as this can be known without a resolver, spelled as in the response.
    pub target: CanonicalUrl,
    /// Whether it is to be requested by GET, without the body that was sent.
    pub as_get: bool,
}

impl From<CanonicalUrl> for Redirect {
    fn from(target: CanonicalUrl) -> Self {
        Self { target, as_get: false }
    }
}

/// The redirects from a URL so far, limited to the data that a message can carry, so that the worker that requests the
/// next URL later applies the same rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trail {
    start: CanonicalUrl,
    /// The target of the last redirect, and the number of redirects.
    hop: Option<Hop>,
    most: u8,
}

impl Trail {
    /// Creates a trail that starts with `url` and follows at most `most` redirects.
    pub fn new(url: CanonicalUrl, most: u8) -> Self {
        Self::at(url, None, most)
    }

    /// Creates a trail from `start` that has come to `hop`.
    pub fn at(start: CanonicalUrl, hop: Option<Hop>, most: u8) -> Self {
        Self { start, hop, most }
    }

    /// The URL to request next.
    pub fn last(&self) -> &CanonicalUrl {
        self.hop.as_ref().map_or(&self.start, |hop| &hop.url)
    }

    /// Returns its position, or `None` at its start.
    pub fn into_hop(self) -> Option<Hop> {
        self.hop
    }

    /// Approximate memory size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.start.as_str().len() + self.last().as_str().len()
    }

    /// Returns the target of the last redirect in its canonical form; `None` if there was none.
    pub fn into_target(self) -> Option<CanonicalUrl> {
        self.hop.map(|hop| hop.url.normalised())
    }

    /// Follows a redirect.
    ///
    /// # Errors
    /// A redirect back to the start or to the URL that was requested, after the first two, and one redirect too many
    /// are a [`Failure`] of class `redirect`. A cycle that does not include the start ends as one redirect too many. A
    /// URL with another spelling, or requested by another method, is not the same.
    pub fn go(&mut self, to: impl Into<Redirect>) -> Result<(), Failure> {
        let Redirect { target, as_get } = to.into();
        let was_get = self.hop.as_ref().is_some_and(|hop| hop.as_get);
        let is_start = target == self.start && !as_get && !was_get;
        let count = self.hop.as_ref().map_or(0, |hop| hop.count).saturating_add(1);
        if count > MAX_BACK && (is_start || target == *self.last() && !as_get) {
            return Err(Failure::new(Class::Redirect, format_args!("redirected in a circle, to {target}")));
        }
        if count > self.most {
            return Err(Failure::new(Class::Redirect, format_args!("more than {} redirects", self.most)));
        }
        self.hop = Some(Hop { url: target, count, as_get: as_get || was_get });
        Ok(())
    }
}

/// Returns the target of `response`, received from `from`, if it redirects (RFC 9110 15.4) to a URL that may be
/// requested. Without a `Location`, or with an empty one, it is an ordinary response.
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
    let location = response.headers().get(LOCATION).filter(|_| redirects)?.as_bytes();
    Some(location).filter(|location| !location.trim_ascii().is_empty())
}

fn resolve(from: &CanonicalUrl, location: &[u8]) -> Result<CanonicalUrl, String> {
    // Rejected before parsing, because parsing may grow a text threefold.
    if location.len() > MAX_URL_BYTES {
        return Err(format!("redirected to a URL {}", InvalidUrl::TooLong));
    }
    let location = text(location);
    let refused = |reason: &dyn std::fmt::Display| format!("redirected to `{location}`: {reason}");
    let url = from.to_url().join(&location).map_err(|reason| refused(&reason))?;
    CanonicalUrl::as_written(url).map_err(|reason| refused(&reason))
}

/// Decodes a `Location`. Servers send paths in raw UTF-8, which the parser percent-encodes; in another charset the
/// bytes themselves are percent-encoded.
fn text(location: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(location) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => percent_encode(location, NOT_ASCII).into(),
    }
}

/// Every byte beyond ASCII, and nothing else.
const NOT_ASCII: &AsciiSet = &AsciiSet::EMPTY;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> CanonicalUrl {
        format!("http://a.example/{path}").parse().unwrap()
    }

    #[test]
    fn a_location_in_any_charset_leads_where_it_says() {
        for (location, target) in [
            (&b"/caf\xe9"[..], "http://a.example/caf%E9"),
            ("/café?é".as_bytes(), "http://a.example/caf%C3%A9?%C3%A9"),
            (b"?q=\xd6\xe5 %d6#x", "http://a.example/dir/x?q=%D6%E5%20%d6"),
            (b"http://b.example/%7Ea", "http://b.example/%7Ea"),
        ] {
            assert_eq!(resolve(&url("dir/x"), location).map(|url| url.to_string()), Ok(target.to_owned()));
        }
    }

    #[test]
    fn another_spelling_is_no_circle_and_one_way_back_is_allowed() {
        let written = |path: &str| resolve(&url(""), path.as_bytes()).unwrap();
        let mut trail = Trail::new(url("~joe"), MAX_REDIRECTS);
        for path in ["/%7Ejoe", "/~joe", "/%7Ejoe", "/%7ejoe"] {
            trail.go(written(path)).unwrap();
            assert_eq!(trail.last().as_str(), format!("http://a.example{path}"));
        }
        assert_eq!(trail.go(written("/~joe")).unwrap_err().class, Class::Redirect);
        let mut trail = Trail::new(url("a"), MAX_REDIRECTS);
        trail.go(url("a")).unwrap();
        trail.go(url("a")).unwrap();
        assert_eq!(trail.go(url("a")).unwrap_err().class, Class::Redirect);
    }

    #[test]
    fn a_post_may_lead_to_its_own_url_by_get_and_no_further_in_a_circle() {
        let as_get = Redirect { target: url("form"), as_get: true };
        let mut trail = Trail::new(url("form"), MAX_REDIRECTS);
        trail.go(as_get).unwrap();
        trail.go(url("done")).unwrap();
        trail.go(url("form")).unwrap();
        assert_eq!(trail.go(url("form")).unwrap_err().class, Class::Redirect);
        assert_eq!(trail.into_hop(), Some(Hop { url: url("form"), count: 3, as_get: true }));
    }
}
