//! The session of a spider that requests are part of.

use std::fmt::Debug;

use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE};
use trawl_common::web::url::CanonicalUrl;

use super::kind;
use super::sent::{joined, secret};

/// A session: it adds cookies and header fields to requests, and takes in the cookies that responses set.
pub trait Session: Debug + Send + Sync {
    /// Returns the value of the field `Cookie` of a request for `url`.
    fn cookies(&self, url: &CanonicalUrl) -> Option<String>;

    /// Returns other header fields of a request for `url`.
    fn fields(&self, url: &CanonicalUrl) -> Vec<(String, String)>;

    /// Takes in the values of the fields `Set-Cookie` of the response from `url`.
    fn set_cookies(&self, url: &CanonicalUrl, values: &[String]);
}

/// Adds the fields of a session to those that a spider sends to `url`.
pub(super) fn add_fields(session: &dyn Session, url: &CanonicalUrl, own: &mut HeaderMap) {
    for (name, value) in session.fields(url) {
        if let (Ok(name), Some(value)) = (HeaderName::try_from(name), secret(&value)) {
            own.insert(name, value);
        }
    }
    if let Some(cookies) =
        session.cookies(url).and_then(|cookies| HeaderValue::from_bytes(cookies.as_bytes()).ok())
    {
        let mut cookies = own.get(COOKIE).and_then(|first| joined(first, &cookies)).unwrap_or(cookies);
        cookies.set_sensitive(true);
        own.insert(COOKIE, cookies);
    }
}

/// Has a session take in what the response from `url` with these fields sets.
pub(super) fn take_cookies(session: &dyn Session, url: &CanonicalUrl, fields: &HeaderMap) {
    let values: Vec<String> = fields.get_all(SET_COOKIE).iter().map(kind::text).collect();
    if !values.is_empty() {
        session.set_cookies(url, &values);
    }
}
