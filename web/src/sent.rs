//! The method, header fields and body sent to a URL.

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue};
use trawl_common::frontier::Request;
use trawl_common::frontier::message::Hop;
use trawl_common::request::{self, Body, Pairs};
use trawl_common::web::url::CanonicalUrl;

/// The method, header fields and body sent to a URL.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) method: Method,
    /// The fields sent in addition to those of every request.
    pub(super) fields: HeaderMap,
    pub(super) body: Bytes,
}

impl Sent {
    /// A GET with these fields.
    pub(super) fn get(fields: HeaderMap) -> Self {
        Self { method: Method::GET, fields, body: Bytes::new() }
    }

    /// Returns what a request sends to its URL, or to the URL that redirects have led to. Another origin gets neither
    /// its cookies nor its header fields, which may be secret, except the fields that describe the body. A request that
    /// became a GET has no body (RFC 9110 15.4).
    pub(super) fn new(request: &Request, hop: Option<&Hop>) -> Self {
        let new = &request.new;
        let is_home = hop.is_none_or(|hop| hop.url.origin() == request.url.origin());
        let as_get = hop.is_some_and(|hop| hop.as_get);
        let mut fields = HeaderMap::new();
        for (name, value) in &new.headers.0 {
            let is_sent = if is_body_field(name) { !as_get } else { is_home };
            if let (true, Ok(name), Some(value)) = (is_sent, HeaderName::try_from(name), secret(value)) {
                fields.append(name, value);
            }
        }
        if let (true, Some(cookies)) = (is_home, cookies(&new.cookies)) {
            fields.insert(COOKIE, cookies);
        }
        match as_get {
            true => Self::get(fields),
            false => Self { method: method(new.method), fields, body: new.body.bytes().clone() },
        }
    }

    /// Adds the spider's own fields, and the type of a body for which no field names one. A field of the request
    /// replaces a spider's field of the same name; cookies are sent together.
    pub(super) fn beside(self, mut own: HeaderMap) -> Self {
        let cookies = match (self.fields.get(COOKIE), own.get(COOKIE)) {
            (Some(first), Some(rest)) => joined(first, rest),
            _ => None,
        };
        own.extend(self.fields);
        if let Some(cookies) = cookies {
            own.insert(COOKIE, cookies);
        }
        if !own.contains_key(CONTENT_TYPE)
            && let Some(kind) = Body::guess_type(&self.body)
        {
            own.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        Self { fields: own, ..self }
    }
}

/// Returns the URL that the request is for now.
pub(super) fn target<'a>(request: &'a Request, hop: Option<&'a Hop>) -> &'a CanonicalUrl {
    hop.map_or(&request.url, |hop| &hop.url)
}

/// Whether a field describes the body (RFC 9110 8).
fn is_body_field(name: &str) -> bool {
    name.starts_with("content-")
}

fn cookies(Pairs(cookies): &Pairs) -> Option<HeaderValue> {
    let pairs: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { None } else { secret(&pairs.join("; ")) }
}

pub(super) fn joined(first: &HeaderValue, rest: &HeaderValue) -> Option<HeaderValue> {
    let mut both = HeaderValue::from_bytes(&[first.as_bytes(), rest.as_bytes()].join(&b"; "[..])).ok()?;
    both.set_sensitive(true);
    Some(both)
}

/// A value that is kept out of logs. `None` cannot occur, because values are checked when requests are read.
pub(super) fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn method(method: request::Method) -> Method {
    match method {
        request::Method::Get => Method::GET,
        request::Method::Head => Method::HEAD,
        request::Method::Post => Method::POST,
        request::Method::Put => Method::PUT,
        request::Method::Patch => Method::PATCH,
        request::Method::Delete => Method::DELETE,
        request::Method::Options => Method::OPTIONS,
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::request::NewRequest;

    use super::*;

    fn request() -> Request {
        let json = r#"{"url": "", "method": "PUT", "body": "x", "cookies": {"a": "1", "b": "2"},
            "headers": {"Authorization": "S3", "Content-Type": "text/plain"}}"#;
        Request::new("http://a.example/".parse().unwrap(), NewRequest::from_json(json).unwrap()).unwrap()
    }

    fn shown(sent: &Sent) -> (String, Vec<String>) {
        let mut fields: Vec<String> =
            sent.fields.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        fields.sort();
        (format!("{} {}", sent.method, String::from_utf8_lossy(&sent.body)), fields)
    }

    #[test]
    fn a_request_sends_all_that_it_says() {
        let (line, fields) = shown(&Sent::new(&request(), None));
        assert_eq!(line, "PUT x");
        assert_eq!(fields, ["authorization: S3", "content-type: text/plain", "cookie: a=1; b=2"]);
    }

    #[test]
    fn another_origin_gets_the_body_and_no_secrets_and_a_get_no_body() {
        for (url, as_get, line, fields) in [
            (
                "http://a.example/x",
                false,
                "PUT x",
                &["authorization: S3", "content-type: text/plain", "cookie: a=1; b=2"][..],
            ),
            ("http://a.example/x", true, "GET ", &["authorization: S3", "cookie: a=1; b=2"]),
            ("https://a.example/", false, "PUT x", &["content-type: text/plain"]),
            ("http://b.a.example/", false, "PUT x", &["content-type: text/plain"]),
            ("http://a.example:81/", true, "GET ", &[]),
        ] {
            let hop = Hop { url: url.parse().unwrap(), count: 1, as_get };
            let sent = shown(&Sent::new(&request(), Some(&hop)));
            assert_eq!(
                (&*sent.0, &sent.1[..]),
                (line, &fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>()[..]),
                "{url}"
            );
        }
    }

    #[test]
    fn a_form_is_sent_as_one_unless_a_field_names_another_type() {
        let json = r#"{"url": "", "method": "POST", "body": "q=hat"}"#;
        let new = NewRequest::from_json(json).unwrap();
        let form = Request::new("http://a.example/".parse().unwrap(), new).unwrap();
        let beside = |own: HeaderMap| shown(&Sent::new(&form, None).beside(own)).1;
        assert_eq!(beside(HeaderMap::new()), ["content-type: application/x-www-form-urlencoded"]);
        let own = (CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        assert_eq!(beside(HeaderMap::from_iter([own])), ["content-type: text/plain"]);
    }

    #[test]
    fn what_a_request_says_stands_in_place_of_what_its_spider_sends() {
        let own = [("authorization", "spider's"), ("cookie", "c=3"), ("x-own", "1")];
        let own = own.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let (_, fields) = shown(&Sent::new(&request(), None).beside(HeaderMap::from_iter(own)));
        let expected = ["authorization: S3", "content-type: text/plain", "cookie: a=1; b=2; c=3", "x-own: 1"];
        assert_eq!(fields, expected);
    }
}
