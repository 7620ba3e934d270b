//! Answers: an object with `ok`, and with `content` or `message`.

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::extract;
use crate::problem::Problem;

/// Drones wait for this many times as long as the answer says.
const DRONES_WAIT: f64 = 20.0;

/// The form of every answer.
#[derive(Default, Serialize)]
struct Envelope<T> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_limit_delay: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<T>,
}

/// The result of a handler.
pub(super) type Answer = Result<Response, Refused>;

/// Returns the answer to a call that was carried out.
pub(super) fn done(content: impl Serialize) -> Answer {
    let (message, rate_limit_delay) = (None, None);
    Ok(Json(Envelope { ok: true, message, rate_limit_delay, content: Some(content) }).into_response())
}

/// Returns the answer to a call that was carried out, and that gives nothing.
pub(super) fn nothing() -> Answer {
    Ok(Json(Envelope::<()> { ok: true, ..Envelope::default() }).into_response())
}

/// Returns the answer to a call for something that there is not now.
pub(super) fn none(why: impl ToString) -> Answer {
    Ok(Json(Envelope::<()> { message: Some(why.to_string()), ..Envelope::default() }).into_response())
}

/// A call that is refused, or has failed.
pub(super) struct Refused(Problem);

impl<E: Into<Problem>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(problem) = self;
        let status = problem.status();
        let is_too_fast = status == StatusCode::TOO_MANY_REQUESTS;
        let wait = problem.seconds_to_wait().filter(|_| is_too_fast);
        let rate_limit_delay = wait.map(|wait| wait as f64 / DRONES_WAIT);
        let message = Some(problem.detail().to_owned());
        let envelope = Envelope::<()> { message, rate_limit_delay, ..Envelope::default() };
        (status, Json(envelope)).into_response()
    }
}

/// Reads the body of a call, whose type drones do not say.
pub(super) async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Problem> {
    let body = extract::body(request).await?;
    serde_json::from_slice(&body).map_err(|error| Problem::malformed(format_args!("body: {error}")))
}
