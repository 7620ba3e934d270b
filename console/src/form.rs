//! The contents of forms and query strings.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Multipart, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Form, RequestExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq;

use crate::failure::Failure;
use crate::shown::Text;
use crate::visitor::Visitor;

/// Maximum size of a form, in bytes.
const MAX_BYTES: usize = 1024 * 1024;
/// Maximum time for a form to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the size limit of all forms, for the router.
pub(crate) fn limit() -> DefaultBodyLimit {
    DefaultBodyLimit::max(MAX_BYTES)
}

/// A form that was sent from a page shown to the visitor.
pub(crate) struct Posted<T>(pub(crate) T);

/// A form with its token.
#[derive(Deserialize)]
struct Proved<T> {
    #[serde(default)]
    csrf: String,
    #[serde(flatten)]
    rest: T,
}

impl<S: Send + Sync, T: DeserializeOwned + 'static> FromRequest<S> for Posted<T> {
    type Rejection = Failure;

    async fn from_request(mut request: Request, state: &S) -> Result<Self, Failure> {
        let visitor = request.extract_parts_with_state::<Visitor, S>(state).await?;
        let Proved { csrf, rest } = read(request).await?;
        prove(&csrf, &visitor)?;
        Ok(Self(rest))
    }
}

/// Fails if a form does not contain this visitor's token.
fn prove(csrf: &str, visitor: &Visitor) -> Result<(), Failure> {
    match bool::from(csrf.as_bytes().ct_eq(visitor.csrf.as_bytes())) {
        true => Ok(()),
        false => Err(Failure::forged("this form is not of a page of your session: load the page again")),
    }
}

/// A form with a file that was sent from a page shown to the visitor.
#[derive(Default)]
pub(crate) struct Uploaded {
    fields: BTreeMap<String, String>,
    /// The file with its name; `None` if none was chosen.
    pub(crate) file: Option<(String, Bytes)>,
}

impl<S: Send + Sync> FromRequest<S> for Uploaded {
    type Rejection = Failure;

    async fn from_request(mut request: Request, state: &S) -> Result<Self, Failure> {
        let visitor = request.extract_parts_with_state::<Visitor, S>(state).await?;
        let parts = Multipart::from_request(request, state).await;
        let parts = parts.map_err(|rejection| refused(rejection.status(), rejection.body_text()))?;
        let uploaded = in_time(Self::of_parts(parts)).await?;
        let uploaded = uploaded.map_err(|error| refused(error.status(), error.body_text()))?;
        prove(uploaded.field("csrf").unwrap_or_default(), &visitor)?;
        Ok(uploaded)
    }
}

impl Uploaded {
    async fn of_parts(mut parts: Multipart) -> Result<Self, MultipartError> {
        let mut uploaded = Self::default();
        while let Some(part) = parts.next_field().await? {
            let name = part.name().unwrap_or_default().to_owned();
            match part.file_name().map(str::to_owned) {
                // If no file was chosen, a browser sends one without a name.
                Some(file) if file.is_empty() => {}
                Some(file) => uploaded.file = Some((file, part.bytes().await?)),
                None => {
                    uploaded.fields.insert(name, part.text().await?);
                }
            }
        }
        Ok(uploaded)
    }

    /// Returns the trimmed text of a field; `None` if it is empty.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.raw(name).map(str::trim).filter(|text| !text.is_empty())
    }

    /// Returns the text of a field with surrounding white space.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// Reads the whole form, within the time limit.
pub(crate) async fn read<T: DeserializeOwned + 'static>(request: Request) -> Result<T, Failure> {
    let form = in_time(request.extract::<Form<T>, _>()).await?;
    form.map(|Form(form)| form).map_err(|rejection| refused(rejection.status(), rejection.body_text()))
}

async fn in_time<T>(reading: impl Future<Output = T>) -> Result<T, Failure> {
    let late = |_| Failure::new(StatusCode::REQUEST_TIMEOUT, "The form did not come in time", "try again");
    tokio::time::timeout(BODY_TIMEOUT, reading).await.map_err(late)
}

fn refused(status: StatusCode, why: String) -> Failure {
    Failure { status: status.as_u16(), ..Failure::malformed(why) }
}

/// The query string of an address.
pub(crate) struct Asked<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = Query::from_request_parts(parts, state).await;
        query.map(|Query(asked)| Self(asked)).map_err(|rejection| Failure::malformed(rejection.body_text()))
    }
}

/// The parameters in the path of an address. One that is not UTF-8 is reported as an unknown page.
pub(crate) struct Segments<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segments<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(named)| Self(named)).map_err(|_| Failure::no_page())
    }
}

/// Returns the trimmed text of a field; `None` if it is empty.
pub(crate) fn written(field: &Option<String>) -> Option<&str> {
    field.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// Returns the fields that are not empty, with their trimmed texts.
pub(crate) fn all_written<'a, const N: usize>(
    fields: [(&'static str, &'a Option<String>); N],
) -> Vec<(&'static str, &'a str)> {
    fields.into_iter().filter_map(|(name, field)| Some((name, written(field)?))).collect()
}

/// Returns the text of the field with this name; empty if there is none.
pub(crate) fn text_of<'a>(fields: &[(&'static str, &'a str)], name: &str) -> &'a str {
    fields.iter().find(|(field, _)| *field == name).map_or("", |(_, text)| text)
}

/// Returns the text of a field to show again in a one-line input; empty if there is none.
pub(crate) fn text(field: &Option<String>) -> Text {
    field.as_deref().unwrap_or_default().into()
}

/// Returns the text of a field to show again in a text area with one entry per line.
pub(crate) fn lines(field: &Option<String>) -> String {
    let lines = field.iter().flat_map(|text| text.lines()).map(|line| Text::from(line).to_string());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the text of a field with every character kept, since each may matter. A browser leaves out a first
/// line break, so it is doubled.
pub(crate) fn whole(field: &Option<String>) -> String {
    let text = field.as_deref().unwrap_or_default();
    if text.starts_with(['\r', '\n']) { format!("\n{text}") } else { text.to_owned() }
}
