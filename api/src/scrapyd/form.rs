//! The parameters of a request: in the query, in a form, or in a multipart form with a file.

use std::str::FromStr;

use axum::body::Body;
use axum::extract::{Form, FromRequest, Multipart, Query, Request};
use axum::http::{Method, header};
use bytes::Bytes;
use trawl_common::names::CrawlId;

use super::Refusal;
use crate::extract::body;

/// The parameters, in the order in which they were sent.
pub(super) struct Parameters {
    fields: Vec<(String, String)>,
    /// The file, with its name if it has one.
    file: Option<(Option<String>, Bytes)>,
}

impl<S: Send + Sync> FromRequest<S> for Parameters {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        if request.method() != Method::POST {
            let Query(fields) = Query::try_from_uri(request.uri()).map_err(Refusal::new)?;
            return Ok(Self { fields, file: None });
        }
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let has_parts = content_type.starts_with("multipart/form-data");
        let has_none = content_type.is_empty();
        let (parts, stream) = request.into_parts();
        let whole = body(Request::from_parts(parts.clone(), stream)).await?;
        let request = Request::from_parts(parts, Body::from(whole));
        if has_parts {
            let parts = Multipart::from_request(request, state).await.map_err(Refusal::new)?;
            return Self::of_parts(parts).await;
        }
        // A request without parameters has no form either.
        let fields = match has_none {
            true => Vec::new(),
            false => Form::from_request(request, state).await.map_err(Refusal::new)?.0,
        };
        Ok(Self { fields, file: None })
    }
}

impl Parameters {
    async fn of_parts(mut parts: Multipart) -> Result<Self, Refusal> {
        let (mut fields, mut file) = (Vec::new(), None);
        while let Some(part) = parts.next_field().await.map_err(Refusal::new)? {
            let name = part.name().unwrap_or_default().to_owned();
            match name.as_str() {
                // Scrapyd's name for the uploaded file.
                "egg" => {
                    let file_name = part.file_name().map(str::to_owned);
                    file = Some((file_name, part.bytes().await.map_err(Refusal::new)?));
                }
                _ => fields.push((name, part.text().await.map_err(Refusal::new)?)),
            }
        }
        Ok(Self { fields, file })
    }

    /// Takes a required parameter.
    pub(super) fn required<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str) -> Result<T, Refusal> {
        self.optional(name)?.ok_or_else(|| missing(name))
    }

    /// Takes a parameter, if there is one.
    pub(super) fn optional<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, Refusal> {
        let Some(value) = self.all(name).pop() else { return Ok(None) };
        value.parse().map(Some).map_err(|error| Refusal::new(format_args!("{name}: {error}")))
    }

    /// Takes a job's id, if there is one. Ids made by consoles may have capital letters, which are not
    /// allowed here: they are converted to lower case.
    pub(super) fn job(&mut self, name: &str) -> Result<Option<CrawlId>, Refusal> {
        let Some(id) = self.optional::<String>(name)? else { return Ok(None) };
        id.to_ascii_lowercase()
            .parse()
            .map(Some)
            .map_err(|error| Refusal::new(format_args!("{name}: {error}")))
    }

    /// Takes a required job's id.
    pub(super) fn required_job(&mut self, name: &str) -> Result<CrawlId, Refusal> {
        self.job(name)?.ok_or_else(|| missing(name))
    }

    /// Takes all values of a parameter.
    pub(super) fn all(&mut self, name: &str) -> Vec<String> {
        self.fields.extract_if(.., |(other, _)| other == name).map(|(_, value)| value).collect()
    }

    /// Takes the file, with its name if it has one. ScrapydWeb sends it as an ordinary field, which preserves
    /// the bytes of a text.
    pub(super) fn file(&mut self) -> Result<(Option<String>, Bytes), Refusal> {
        let as_field = |text: String| (None, Bytes::from(text));
        let field = self.all("egg").pop().map(as_field);
        self.file.take().or(field).ok_or_else(|| missing("egg"))
    }

    /// Returns the parameters not taken.
    pub(super) fn rest(self) -> Vec<(String, String)> {
        self.fields
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::new(format_args!("'{name}' parameter is required"))
}
