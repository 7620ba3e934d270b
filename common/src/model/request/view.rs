//! The visible part of a request.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::{Failures, Method, NewRequest, Pairs};
use crate::priority::Priority;
use crate::text::counted;

/// A request as people and programs see it: only the names of header fields and cookies, because their values may
/// be secrets, and only the length of the body.
#[derive(Clone, PartialEq, Serialize)]
pub struct RequestView {
    /// The method.
    pub method: Method,
    /// The names of header fields, in lower case.
    pub headers: Vec<String>,
    /// The names of cookies.
    pub cookies: Vec<String>,
    /// Size of the body in bytes.
    pub body_bytes: usize,
    /// The data that the spider's program is given with the page.
    pub data: Option<Value>,
    /// Whether any response is its page; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any_status: bool,
    /// The failures that the program is given in place of a page; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<Failures>,
    /// The priority.
    pub priority: Priority,
    /// Its own limit of retries, if it has one.
    pub retries: Option<u32>,
}

impl From<&NewRequest> for RequestView {
    fn from(new: &NewRequest) -> Self {
        let NewRequest {
            method, headers, cookies, body, data, any_status, failures, priority, retries, ..
        } = new;
        let names = |pairs: &Pairs| pairs.names().map(str::to_owned).collect();
        Self {
            method: *method,
            headers: names(headers),
            cookies: names(cookies),
            body_bytes: body.bytes().len(),
            data: data.clone(),
            any_status: *any_status,
            failures: *failures,
            priority: *priority,
            retries: *retries,
        }
    }
}

/// Writes one line, with only what is set.
impl fmt::Display for RequestView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.method)?;
        if self.body_bytes > 0 {
            write!(f, ", {}", counted(self.body_bytes as u64, "byte"))?;
        }
        for (what, names) in [("headers", &self.headers), ("cookies", &self.cookies)] {
            if !names.is_empty() {
                write!(f, ", {what} {}", names.join(" "))?;
            }
        }
        if self.any_status {
            write!(f, ", any status")?;
        }
        if let Some(failures) = self.failures {
            write!(f, ", failures {failures}")?;
        }
        if self.priority != Priority::default() {
            write!(f, ", priority {}", self.priority)?;
        }
        if let Some(retries) = self.retries {
            write!(f, ", retries {retries}")?;
        }
        match &self.data {
            Some(data) => write!(f, ", data {data}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_without_its_body_and_without_the_values_of_its_fields() {
        let json = r#"{"url": "/", "method": "PUT", "headers": {"Authorization": "S3"}, "cookies": {"id": "S3"}, "body": "S3",
            "data": {"page": 2}, "priority": 1.5, "retries": 0}"#;
        let view = RequestView::from(&NewRequest::from_json(json).unwrap());
        let expected =
            r#"PUT, 2 bytes, headers authorization, cookies id, priority 1.5, retries 0, data {"page":2}"#;
        assert_eq!(view.to_string(), expected);
        assert!(!serde_json::to_string(&view).unwrap().contains("S3"));
        assert_eq!(RequestView::from(&NewRequest::get("/")).to_string(), "GET");
        let any = NewRequest { any_status: true, failures: Some(Failures::Each), ..NewRequest::get("/") };
        assert_eq!(RequestView::from(&any).to_string(), "GET, any status, failures each");
    }
}
