//! A request that a spider has taken in.

use super::key::RequestKey;
use crate::request::NewRequest;
use crate::web::url::{CanonicalUrl, InvalidUrl, MAX_URL_BYTES};

/// A URL to request in a specified way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The name of its record.
    pub key: RequestKey,
    /// The URL to request.
    pub url: CanonicalUrl,
    /// The method, header fields, body and other details.
    pub new: NewRequest,
}

impl Request {
    /// Returns a request for `url`, which replaces the URL in `new`, as somebody wrote it.
    ///
    /// Fails if its key were longer than a URL may be.
    pub fn new(url: CanonicalUrl, new: NewRequest) -> Result<Self, InvalidUrl> {
        let key = RequestKey::new(&url, &new);
        match key.as_str().len() {
            0..=MAX_URL_BYTES => Ok(Self { new: NewRequest { url: url.to_string(), ..new }, key, url }),
            _ => Err(InvalidUrl::TooLong),
        }
    }

    /// Returns the JSON object that stores keep beside its record, and that its message carries.
    pub fn payload(&self) -> String {
        self.new.to_json()
    }

    /// Returns the approximate size of the payload in bytes.
    pub(super) fn bytes(&self) -> usize {
        let NewRequest { headers, cookies, body, data, .. } = &self.new;
        let data = data.as_ref().map_or(0, |data| data.to_string().len());
        headers.bytes() + cookies.bytes() + body.bytes().len() + data
    }

    /// Parses the payload that a store has kept under `key`; `None` if it is no request.
    pub fn stored(key: RequestKey, payload: &str) -> Option<Self> {
        let new = NewRequest::from_json(payload).ok()?;
        let url = CanonicalUrl::recorded(&new.url).ok()?;
        Some(Self { key, url, new })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::Work;

    #[test]
    fn a_request_is_read_as_it_was_stored() {
        let json =
            r#"{"url": "/b", "method": "PUT", "headers": {"a": "b"}, "base64": "//8=", "data": {"n": 1.5}}"#;
        let new = NewRequest::from_json(json).unwrap();
        let request = Request::new("http://a.example/b".parse().unwrap(), new).unwrap();
        assert_eq!(request.new.url, "http://a.example/b");
        assert_eq!(Request::stored(request.key.clone(), &request.payload()), Some(request.clone()));
        assert_eq!(Request::stored(request.key, "no payload"), None);
    }

    #[test]
    fn what_says_no_more_than_its_url_is_that_url() {
        let url: CanonicalUrl = "http://a.example/b".parse().unwrap();
        let plain = NewRequest::get("b");
        assert_eq!(Work::of_request(url.clone(), plain.clone()).unwrap(), url);
        let with_data = NewRequest { data: Some(1.into()), ..plain };
        let work = Work::of_request(url.clone(), with_data.clone()).unwrap();
        assert_eq!((work.url(), work.page()), (None, Some(&url)));
        let long = format!("http://a.example/{}", "x".repeat(MAX_URL_BYTES - 30)).parse().unwrap();
        assert_eq!(Work::of_request(long, with_data).unwrap_err(), InvalidUrl::TooLong);
    }
}
