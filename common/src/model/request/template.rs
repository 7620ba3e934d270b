//! Requests with values of other pages or rows in them.

use serde_json::{Map, Value};
use url::form_urlencoded::byte_serialize;

use super::form::{FORM, encode_pair};
use super::new_request::NewRequest;
use super::read::InvalidRequest;
use crate::json_object::{UnknownKey, known};
use crate::text::printable;

/// The keys of a template beside those of a request.
const OWN: [&str; 3] = ["query", "form", "json"];

/// The start of a placeholder: `{carried.term}` stands for the value `term`.
const OPENING: &str = "{carried.";

/// Maximum length of a name or text that an error repeats.
const MAX_SHOWN: usize = 64;

/// A request as spider files write it: in addition to the keys of a [`NewRequest`] it may have `query`, parameters of
/// its URL, and `form` or `json` in place of a body. Texts in it may have placeholders for carried values.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestTemplate(Map<String, Value>);

/// The reason why a template yields no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// It is not an object.
    #[error("a request is a table, or text, its URL")]
    NoObject,
    /// A key is unknown.
    #[error("a request {0}")]
    UnknownKey(#[from] UnknownKey),
    /// It has several bodies.
    #[error("`body`, `base64`, `form` and `json` exclude each other")]
    Bodies,
    /// Parameters have the wrong form.
    #[error("`{0}` is a table of texts, numbers, or lists of these")]
    Parameters(&'static str),
    /// A placeholder has no end.
    #[error("`{0}` has no `}}` behind it")]
    Open(String),
    /// A placeholder has no value.
    #[error("there is no carried value `{0}`")]
    NoValue(String),
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] InvalidRequest),
}

impl RequestTemplate {
    /// Creates a template.
    ///
    /// # Errors
    /// Fails if a key is unknown, or there is more than one body.
    pub fn new(value: Value) -> Result<Self, InvalidTemplate> {
        let object = match value {
            Value::String(url) => Map::from_iter([("url".to_owned(), Value::String(url))]),
            Value::Object(object) => object,
            _ => return Err(InvalidTemplate::NoObject),
        };
        let keys: [&str; 15] = std::array::from_fn(|at| match at {
            0..12 => super::read::KEYS[at],
            _ => OWN[at - 12],
        });
        let object = known(object, keys)?;
        let bodies = ["body", "base64", "form", "json"].into_iter().filter(|key| object.contains_key(*key));
        match bodies.count() {
            0 | 1 => Ok(Self(object)),
            _ => Err(InvalidTemplate::Bodies),
        }
    }

    /// Returns the URL as it is written.
    pub fn url(&self) -> &str {
        self.0.get("url").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether it has a key.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Returns the names of the values in its texts.
    ///
    /// # Errors
    /// Fails if a placeholder has no end.
    pub fn names(&self) -> Result<Vec<String>, InvalidTemplate> {
        let mut names = Vec::new();
        for value in self.0.values() {
            names.extend(placeholder_names(value)?);
        }
        Ok(names)
    }

    /// Returns the request with these values.
    ///
    /// # Errors
    /// Fails if a value is missing, or the request is invalid with them.
    pub fn fill(&self, values: &Map<String, Value>) -> Result<NewRequest, InvalidTemplate> {
        self.fill_for(&filled(self.url(), values, true)?, values)
    }

    /// Returns the request for this URL with these values.
    ///
    /// # Errors
    /// Fails if a value is missing, or the request is invalid with them.
    pub fn fill_for(&self, url: &str, values: &Map<String, Value>) -> Result<NewRequest, InvalidTemplate> {
        let mut object = self.0.clone();
        object.remove("url");
        let query = match object.remove("query") {
            Some(query) => Some(encoded("query", &query, values)?),
            None => None,
        };
        let form = match object.remove("form") {
            Some(form) => Some(encoded("form", &form, values)?),
            None => None,
        };
        for (key, value) in &mut object {
            *value = match key.as_str() {
                "json" | "data" => in_texts(value, values)?,
                _ => mapped(value, &|text| filled(text, values, false).map(Value::String))?,
            };
        }
        if !url.is_empty() {
            object.insert("url".to_owned(), with_query(url, query.as_deref()).into());
        }
        let (body, kind) = match (form, object.remove("json")) {
            (Some(form), _) => (Some(form), FORM),
            (None, Some(json)) => (Some(json.to_string()), "application/json"),
            (None, None) => (None, ""),
        };
        let has_body = body.is_some() || object.contains_key("body") || object.contains_key("base64");
        if let Some(body) = body {
            object.insert("body".to_owned(), body.into());
        }
        if has_body && !object.contains_key("method") {
            object.insert("method".to_owned(), "POST".into());
        }
        let mut request = NewRequest::try_from(Value::Object(object))?;
        if !kind.is_empty() && request.headers.names().all(|name| name != "content-type") {
            request.headers.0.push(("content-type".to_owned(), kind.to_owned()));
        }
        Ok(request)
    }
}

/// Returns the names of the values in the texts of a value.
///
/// # Errors
/// Fails if a placeholder has no end.
pub(crate) fn placeholder_names(value: &Value) -> Result<Vec<String>, InvalidTemplate> {
    let mut names = Vec::new();
    each_text(value, &mut |text| {
        for part in text.split(OPENING).skip(1) {
            let end = part.split_once('}');
            let (name, _) = end.ok_or_else(|| InvalidTemplate::Open(shown(&format!("{OPENING}{part}"))))?;
            names.push(name.to_owned());
        }
        Ok(())
    })?;
    Ok(names)
}

fn each_text(
    value: &Value,
    look: &mut impl FnMut(&str) -> Result<(), InvalidTemplate>,
) -> Result<(), InvalidTemplate> {
    match value {
        Value::String(text) => look(text),
        Value::Array(values) => values.iter().try_for_each(|value| each_text(value, look)),
        Value::Object(object) => object.values().try_for_each(|value| each_text(value, look)),
        _ => Ok(()),
    }
}

/// Returns a value with the placeholders in its texts filled. A text that is one placeholder becomes the value itself.
///
/// # Errors
/// Fails if a value is missing, or a placeholder has no end.
pub fn in_texts(value: &Value, values: &Map<String, Value>) -> Result<Value, InvalidTemplate> {
    mapped(value, &|text| match sole(text) {
        Some(name) => found(name, values).cloned(),
        None => filled(text, values, false).map(Value::String),
    })
}

/// Returns a value with each text in it replaced.
fn mapped(
    value: &Value,
    replace: &dyn Fn(&str) -> Result<Value, InvalidTemplate>,
) -> Result<Value, InvalidTemplate> {
    Ok(match value {
        Value::String(text) => replace(text)?,
        Value::Array(list) => list.iter().map(|value| mapped(value, replace)).collect::<Result<_, _>>()?,
        Value::Object(object) => {
            let entry = |(name, value): (&String, &Value)| Ok((name.clone(), mapped(value, replace)?));
            Value::Object(object.iter().map(entry).collect::<Result<_, InvalidTemplate>>()?)
        }
        other => other.clone(),
    })
}

/// Returns the name in a text that is one placeholder.
fn sole(text: &str) -> Option<&str> {
    text.strip_prefix(OPENING)?.strip_suffix('}').filter(|name| !name.contains('}'))
}

fn found<'v>(name: &str, values: &'v Map<String, Value>) -> Result<&'v Value, InvalidTemplate> {
    values.get(name).ok_or_else(|| InvalidTemplate::NoValue(shown(name)))
}

fn filled(text: &str, values: &Map<String, Value>, is_url: bool) -> Result<String, InvalidTemplate> {
    let mut parts = text.split(OPENING);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let open = || InvalidTemplate::Open(shown(&format!("{OPENING}{part}")));
        let (name, rest) = part.split_once('}').ok_or_else(open)?;
        let value = plain(found(name, values)?);
        if is_url {
            // A space is `%20` in a path as in a query.
            let parts = byte_serialize(value.as_bytes());
            parts.for_each(|part| filled.push_str(if part == "+" { "%20" } else { part }));
        } else {
            filled.push_str(&value);
        }
        filled.push_str(rest);
    }
    Ok(filled)
}

/// Returns parameters as forms are sent.
fn encoded(
    key: &'static str,
    parameters: &Value,
    values: &Map<String, Value>,
) -> Result<String, InvalidTemplate> {
    let Value::Object(parameters) = parameters else { return Err(InvalidTemplate::Parameters(key)) };
    let mut pairs = Vec::new();
    for (name, value) in parameters {
        let value = in_texts(value, values)?;
        let all = if let Value::Array(all) = value { all } else { vec![value] };
        for value in all {
            if value.is_object() || value.is_array() {
                return Err(InvalidTemplate::Parameters(key));
            }
            pairs.push(encode_pair(name, &plain(&value)));
        }
    }
    Ok(pairs.join("&"))
}

/// Returns a value as the text of a parameter.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn with_query(url: &str, query: Option<&str>) -> String {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return url.to_owned() };
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    format!("{url}{}{query}", if url.contains('?') { '&' } else { '?' })
}

fn shown(text: &str) -> String {
    printable(text, MAX_SHOWN)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(template: Value, values: Value) -> Result<Value, String> {
        let template = RequestTemplate::new(template).map_err(|error| error.to_string())?;
        let request = template.fill(values.as_object().unwrap()).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(&request).unwrap())
    }

    #[test]
    fn values_go_into_every_part_as_it_is_written() {
        let values = json!({"term": "a b&ä", "n": 7});
        for (template, request) in [
            (json!("http://a.example/{carried.term}/x"), json!("http://a.example/a%20b%26%C3%A4/x")),
            (
                json!({"url": "/q?a=1", "query": {"q": "{carried.term}", "p": ["{carried.n}", 2]}}),
                json!("/q?a=1&p=7&p=2&q=a+b%26%C3%A4"),
            ),
            (
                json!({"url": "/q", "form": {"q": "<{carried.term}>", "n": null}}),
                json!({"url": "/q", "method": "POST", "headers": [["content-type", "application/x-www-form-urlencoded"]],
                    "body": "n=&q=%3Ca+b%26%C3%A4%3E"}),
            ),
            (
                json!({"url": "/q", "method": "PUT", "json": {"q": "{carried.term}", "page": "{carried.n}", "s": "n{carried.n}"},
                    "headers": {"X-N": "{carried.n}"}}),
                json!({"url": "/q", "method": "PUT", "headers": [["x-n", "7"], ["content-type", "application/json"]],
                    "body": r#"{"page":7,"q":"a b&ä","s":"n7"}"#}),
            ),
        ] {
            assert_eq!(fill(template, values.clone()), Ok(request));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (template, error) in [
            (json!({"url": "/", "form": {}, "body": "x"}), "exclude each other"),
            (json!({"url": "/", "quer": {}}), "quer"),
            (json!({"url": "/", "query": "x"}), "`query` is a table"),
            (json!({"url": "/", "form": {"a": {"b": 1}}}), "`form` is a table"),
            (json!({"url": "/{carried.x}"}), "there is no carried value `x`"),
            (json!({"url": "/", "body": "{carried.x"}), "`{carried.x` has no `}`"),
            (json!({"form": {"a": 1}}), "`url` is missing"),
            (json!(7), "a request is a table"),
        ] {
            let said = fill(template, json!({"n": 1})).unwrap_err();
            assert!(said.contains(error), "{said}");
        }
    }
}
