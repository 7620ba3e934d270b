//! Parses requests, with errors that name the problem.

use std::fmt;

use data_encoding::BASE64;
use serde_json::{Map, Value};

use super::body::Body;
use super::failures::Failures;
use super::method::{Method, UnknownMethod};
use super::new_request::{MAX_DATA_BYTES, MAX_FIELDS_BYTES, MAX_REQUEST_BYTES, NewRequest, Pairs};
use crate::json_object::{self, UnknownKey, WrongValue, flag, kind, priority, quoted, retries, text};
use crate::task::InvalidUnique;
use crate::text::printable;
use crate::web::field;

/// The keys of a request.
pub(super) const KEYS: [&str; 12] = [
    "url",
    "method",
    "headers",
    "cookies",
    "body",
    "base64",
    "data",
    "unique",
    "any_status",
    "failures",
    "priority",
    "retries",
];

/// The reason why a value is not a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// It is not JSON.
    #[error("not JSON: {0}; a request is text, its URL, or a JSON object with `url`")]
    NotJson(String),
    /// It is neither a string nor an object.
    #[error("a request is text, its URL, or a JSON object with `url`, not {0}")]
    NotARequest(&'static str),
    /// The object lacks the URL.
    #[error("`url` is missing")]
    NoUrl,
    /// The object has an unknown key.
    #[error("a request {0}")]
    UnknownKey(#[from] UnknownKey),
    /// The value of a key has the wrong type.
    #[error(transparent)]
    Value(#[from] WrongValue),
    /// The method is invalid.
    #[error("`method`: {0}")]
    Method(#[from] UnknownMethod),
    /// A header field or a cookie cannot be sent, or must not be.
    #[error("`{key}`, `{name}`: {why}")]
    Field {
        /// `headers` or `cookies`.
        key: &'static str,
        /// Its name, printable.
        name: String,
        /// The reason.
        why: String,
    },
    /// Header fields and cookies are too long.
    #[error("`headers` and `cookies` have {0} bytes: they may have {MAX_FIELDS_BYTES}")]
    FieldsTooLong(usize),
    /// It has two bodies.
    #[error("`body` and `base64` exclude each other")]
    TwoBodies,
    /// The body is not valid base64.
    #[error("`base64` is not in base64 (RFC 4648 4)")]
    NotBase64,
    /// The data is too long.
    #[error("`data` has {0} bytes of JSON: it may have {MAX_DATA_BYTES}")]
    DataTooLong(usize),
    /// It is too long.
    #[error("the request has {0} bytes of JSON: it may have {MAX_REQUEST_BYTES}")]
    TooLong(usize),
    /// The value of `unique` is invalid.
    #[error(transparent)]
    Unique(#[from] InvalidUnique),
}

impl InvalidRequest {
    /// Creates the error of a text that is not JSON.
    fn no_json(error: impl fmt::Display) -> Self {
        Self::NotJson(printable(&error.to_string(), 200))
    }
}

impl NewRequest {
    /// Parses JSON.
    ///
    /// Fails if the text is no JSON, or no request.
    pub fn from_json(json: &str) -> Result<Self, InvalidRequest> {
        let value: Value = serde_json::from_str(json).map_err(InvalidRequest::no_json)?;
        value.try_into()
    }
}

impl TryFrom<Value> for NewRequest {
    type Error = InvalidRequest;
    fn try_from(value: Value) -> Result<Self, InvalidRequest> {
        match value {
            Value::String(url) => Ok(Self::get(url)),
            Value::Object(object) => of_object(object),
            other => Err(InvalidRequest::NotARequest(kind(&other))),
        }
    }
}

fn of_object(object: Map<String, Value>) -> Result<NewRequest, InvalidRequest> {
    let mut object = json_object::known(object, KEYS)?;
    let request = NewRequest {
        url: text(&mut object, "url")?.ok_or(InvalidRequest::NoUrl)?,
        method: text(&mut object, "method")?.map_or(Ok(Method::default()), |method| method.parse())?,
        headers: pairs(&mut object, "headers", header)?.in_lower_case(),
        cookies: pairs(&mut object, "cookies", cookie)?,
        body: body(&mut object)?,
        data: object.remove("data"),
        unique: text(&mut object, "unique")?.map(|unique| unique.parse()).transpose()?,
        any_status: flag(&mut object, "any_status")?.unwrap_or_default(),
        failures: failures(&mut object)?,
        priority: priority(&object)?,
        retries: retries(&object, "retries")?,
    };
    check_lengths(&request)?;
    Ok(request)
}

fn check_lengths(request: &NewRequest) -> Result<(), InvalidRequest> {
    let fields = request.headers.bytes() + request.cookies.bytes();
    if fields > MAX_FIELDS_BYTES {
        return Err(InvalidRequest::FieldsTooLong(fields));
    }
    let data = request.data.as_ref().map_or(0, |data| data.to_string().len());
    if data > MAX_DATA_BYTES {
        return Err(InvalidRequest::DataTooLong(data));
    }
    match request.to_json().len() {
        0..=MAX_REQUEST_BYTES => Ok(()),
        bytes => Err(InvalidRequest::TooLong(bytes)),
    }
}

fn failures(object: &mut Map<String, Value>) -> Result<Option<Failures>, InvalidRequest> {
    let Some(value) = object.remove("failures") else { return Ok(None) };
    match value.as_str().and_then(|word| word.parse().ok()) {
        Some(failures) => Ok(Some(failures)),
        None => Err(WrongValue::word("failures", "`last` or `each`", &value).into()),
    }
}

fn body(object: &mut Map<String, Value>) -> Result<Body, InvalidRequest> {
    match (quoted(object, "body")?, text(object, "base64")?) {
        (None, None) => Ok(Body::default()),
        (Some(text), None) => Ok(text.into()),
        (None, Some(base64)) => match BASE64.decode(base64.as_bytes()) {
            Ok(bytes) => Ok(bytes.into()),
            Err(_) => Err(InvalidRequest::NotBase64),
        },
        (Some(_), Some(_)) => Err(InvalidRequest::TwoBodies),
    }
}

/// Takes an object of strings, or a list of pairs of them. `check` returns why a name and its value cannot be sent, if
/// so.
fn pairs(
    object: &mut Map<String, Value>,
    key: &'static str,
    check: fn(&str, &str) -> Result<(), String>,
) -> Result<Pairs, InvalidRequest> {
    let expected = "an object of texts, or a list of pairs";
    let wrong = |found: &Value| InvalidRequest::from(WrongValue::kind(key, expected, found));
    let listed: Vec<(Value, Value)> = match object.remove(key) {
        None => return Ok(Pairs::default()),
        Some(Value::Object(object)) => {
            object.into_iter().map(|(name, value)| (Value::String(name), value)).collect()
        }
        Some(Value::Array(list)) => {
            list.into_iter().map(|pair| two(pair).map_err(|found| wrong(&found))).collect::<Result<_, _>>()?
        }
        Some(other) => return Err(wrong(&other)),
    };
    let pair = |(name, value)| match (name, value) {
        (Value::String(name), Value::String(value)) => match check(&name, &value) {
            Ok(()) => Ok((name, value)),
            Err(why) => Err(InvalidRequest::Field { key, name: printable(&name, 64), why }),
        },
        (Value::String(_), other) | (other, _) => Err(wrong(&other)),
    };
    listed.into_iter().map(pair).collect::<Result<_, _>>().map(Pairs)
}

fn two(pair: Value) -> Result<(Value, Value), Value> {
    match pair {
        Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
            Ok([name, value]) => Ok((name, value)),
            Err(pair) => Err(Value::Array(pair)),
        },
        other => Err(other),
    }
}

fn header(name: &str, value: &str) -> Result<(), String> {
    if !field::is_token(name) {
        return Err("it cannot be the name of a header field".to_owned());
    }
    if let Some(why) = field::reserved(name) {
        return Err(format!("it may not be set: {why}"));
    }
    match field::is_value(value) {
        true => Ok(()),
        false => Err("its value cannot be sent in a header".to_owned()),
    }
}

fn cookie(name: &str, value: &str) -> Result<(), String> {
    if !field::is_token(name) {
        return Err("it cannot be the name of a cookie".to_owned());
    }
    match field::is_cookie_value(value) {
        true => Ok(()),
        false => {
            Err("its value cannot be sent in a cookie: it may have no white space, `,` or `;`".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<NewRequest, String> {
        NewRequest::try_from(value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let full = json!({
            "url": "/search?q=1", "method": "post", "headers": {"X-Key": "k", "Content-Type": "text/plain"},
            "cookies": [["b", "2"], ["a", "1"]], "body": "ä\n", "data": {"page": 2, "list": [1]}, "unique": "u",
            "priority": -2.5, "retries": 0, "any_status": true, "failures": "each",
        });
        let read = NewRequest::try_from(full).unwrap();
        assert_eq!((read.method, read.priority.get(), read.retries), (Method::Post, -2.5, Some(0)));
        let names: Vec<_> = read.headers.names().chain(read.cookies.names()).collect();
        assert_eq!(names, ["content-type", "x-key", "b", "a"]);
        assert_eq!(NewRequest::from_json(&read.to_json()), Ok(read));
        let text = NewRequest::try_from(json!("/search")).unwrap();
        assert_eq!((&text, text.to_json()), (&NewRequest::get("/search"), r#""/search""#.to_owned()));
        let bare = json!({"url": "http://a.example/", "method": "GET", "body": null, "any_status": false});
        assert!(NewRequest::try_from(bare).unwrap().is_plain());
        let any = NewRequest::try_from(json!({"url": "http://a.example/", "any_status": true})).unwrap();
        assert!(!any.is_plain());
        let watched = NewRequest::try_from(json!({"url": "http://a.example/", "failures": "last"})).unwrap();
        assert_eq!((watched.failures, watched.is_plain()), (Some(Failures::Last), false));
        let urgent = NewRequest::try_from(json!({"url": "http://a.example/", "priority": 1}));
        assert!(!urgent.unwrap().is_plain(), "it says more than its URL");
        let bytes = NewRequest::try_from(json!({"url": "/", "base64": "//79AA=="})).unwrap();
        assert_eq!(&bytes.body.bytes()[..], b"\xff\xfe\xfd\0");
        assert!(!bytes.is_plain());
        assert_eq!(NewRequest::from_json(&bytes.to_json()), Ok(bytes));
    }

    #[test]
    fn what_is_no_request_has_an_error_of_one_line_that_says_what_is_wrong() {
        for (value, expected) in [
            (json!(["http://a.example/"]), "a JSON object with `url`, not a list"),
            (json!({}), "`url` is missing"),
            (json!({"url": 1}), "`url` is text, not a number"),
            (json!({"url": "/", "headrs": {}}), "a request has no `headrs`: did you mean `headers`?"),
            (json!({"url": "/", "method": "TRACE"}), "`method`: a method is GET, HEAD"),
            (
                json!({"url": "/", "body": {"a": 1}}),
                "`body` is text: write the JSON as a string, not an object",
            ),
            (json!({"url": "/", "body": "a", "base64": "YQ=="}), "exclude each other"),
            (json!({"url": "/", "base64": "a"}), "`base64` is not in base64"),
            (
                json!({"url": "/", "headers": "a: b"}),
                "`headers` is an object of texts, or a list of pairs, not text",
            ),
            (json!({"url": "/", "headers": [["a"]]}), "a list of pairs, not a list"),
            (json!({"url": "/", "headers": {"a": 1}}), "a list of pairs, not a number"),
            (json!({"url": "/", "unique": ""}), "`unique` has 1 to"),
            (json!({"url": "/", "failures": true}), "`failures` is `last` or `each`, not true or false"),
            (json!({"url": "/", "failures": "all"}), "`failures` is `last` or `each`, not `all`"),
            (json!({"url": "/", "any_status": 1}), "`any_status` is true or false, not a number"),
            (json!({"url": "/", "priority": "high"}), "`priority` is a number, not text"),
            (json!({"url": "/", "retries": -1}), "`retries` is a whole number from 0 to 1000000, not -1"),
            (json!({"url": "/", "data": "x".repeat(MAX_DATA_BYTES)}), "`data` has 65538 bytes of JSON"),
            (
                json!({"url": "/", "body": "x".repeat(MAX_REQUEST_BYTES)}),
                "bytes of JSON: it may have 1048576",
            ),
            (json!({"url": "/", "cookies": {"a": "x".repeat(MAX_FIELDS_BYTES)}}), "they may have 16384"),
        ] {
            let error = read(value.clone()).unwrap_err();
            assert!(error.contains(expected), "{value}: {error}");
            assert!(!error.contains(char::is_control), "{error:?}");
        }
    }

    #[test]
    fn a_header_or_a_cookie_that_would_break_a_request_is_refused() {
        for (name, value, expected) in [
            ("a", "b\r\nHost: evil.example", "cannot be sent in a header"),
            ("a", "b\0", "cannot be sent in a header"),
            ("a\r\nb", "c", "cannot be the name"),
            ("a b", "c", "cannot be the name"),
            ("", "c", "cannot be the name"),
            ("Host", "evil.example", "may not be set: it is the URL's"),
            ("Content-Length", "7", "may not be set: it is the body's"),
            ("transfer-encoding", "chunked", "may not be set"),
            ("Connection", "close", "may not be set"),
            ("Cookie", "a=b", "may not be set: use"),
            ("Proxy-Authorization", "Basic eA==", "may not be set"),
        ] {
            let error = read(json!({"url": "/", "headers": [[name, value]]})).unwrap_err();
            assert!(error.contains(expected), "{name}: {error}");
            assert!(!error.contains(char::is_control) && !error.contains("evil"), "{error:?}");
        }
        for (name, value) in [("a", "b; c=d"), ("a=b", "c"), ("a", "b\n")] {
            read(json!({"url": "/", "cookies": {name: value}})).unwrap_err();
        }
    }

    #[test]
    fn what_is_secret_is_not_shown_when_a_request_is() {
        let secrets = json!({
            "url": "/", "headers": {"authorization": "S3"}, "cookies": {"id": "S3"}, "body": "S3", "data": {"a": "S3"},
        });
        let shown = format!("{:?}", NewRequest::try_from(secrets).unwrap());
        assert!(shown.contains("authorization") && !shown.contains("S3"), "{shown}");
    }
}
