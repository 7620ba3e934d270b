//! Errors as callers get them: `application/problem+json` (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::text::printable;
use utoipa::ToSchema;

/// The number of seconds after which a caller may retry a request that a server could not handle.
pub(crate) const RETRY_AFTER: u64 = 5;
/// Maximum length of `detail`, in bytes.
const MAX_DETAIL_BYTES: usize = 2048;

/// The kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Kind {
    /// A parameter, a header or the body differs from the document.
    Malformed,
    /// There is no token, or an unknown one.
    Unauthorized,
    /// The caller lacks permission.
    Forbidden,
    /// The resource does not exist.
    NotFound,
    /// The path exists, but not with this method.
    MethodNotAllowed,
    /// The body did not arrive in time.
    BodyTimeout,
    /// The crawl is over, or is in a state that does not allow this.
    Conflict,
    /// A resource that this needs is in use.
    Busy,
    /// The body is too large.
    TooLarge,
    /// The body is not JSON.
    UnsupportedMediaType,
    /// The request is for another host.
    Misdirected,
    /// The caller exceeds the rate limit.
    TooManyRequests,
    /// Stored data cannot be read.
    Corrupt,
    /// A server behind the API refuses.
    Refused,
    /// A server behind the API is unavailable, or a limit of simultaneous requests is reached.
    Unavailable,
    /// The store has no room.
    Full,
    /// The request took too long.
    Timeout,
    /// The requested data is not stored here.
    NotKept,
}

impl Kind {
    /// Returns its HTTP status and its title.
    fn answer(self) -> (StatusCode, &'static str) {
        match self {
            Self::Malformed => (StatusCode::BAD_REQUEST, "The request cannot be understood"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "A token is needed"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "This is not allowed"),
            Self::NotFound => (StatusCode::NOT_FOUND, "There is no such thing"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "This method is not for this path"),
            Self::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "The body did not come in time"),
            Self::Conflict => (StatusCode::CONFLICT, "The crawl's state does not allow this"),
            Self::Busy => (StatusCode::CONFLICT, "Somebody else is at it"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "The body is too large"),
            Self::UnsupportedMediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body must be JSON"),
            Self::Misdirected => (StatusCode::MISDIRECTED_REQUEST, "The request is for another host"),
            Self::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, "Too many requests"),
            Self::Corrupt => (StatusCode::INTERNAL_SERVER_ERROR, "What is stored cannot be understood"),
            Self::Refused => (StatusCode::BAD_GATEWAY, "A server refuses"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "Not available now"),
            Self::Full => (StatusCode::SERVICE_UNAVAILABLE, "The store is full"),
            Self::Timeout => (StatusCode::GATEWAY_TIMEOUT, "It took too long"),
            Self::NotKept => (StatusCode::NOT_IMPLEMENTED, "It is not kept here"),
        }
    }
}

/// An error of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: Kind,
    detail: String,
    /// The number of seconds after which the caller may retry.
    retry_after: Option<u64>,
}

/// A problem as it is sent
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct Body {
    /// The kind of problem, for programs: `urn:problem-type:trawl:not-found`
    r#type: String,
    /// The kind of problem, for people
    title: &'static str,
    /// The HTTP status
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The problem in this case, and what to do about it
    detail: String,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl ToString) -> Self {
        let waits = matches!(kind, Kind::Unavailable | Kind::Full);
        let detail = printable(&detail.to_string(), MAX_DETAIL_BYTES);
        Self { kind, detail, retry_after: waits.then_some(RETRY_AFTER) }
    }

    pub(crate) fn malformed(detail: impl ToString) -> Self {
        Self::new(Kind::Malformed, detail)
    }

    pub(crate) fn not_found(detail: impl ToString) -> Self {
        Self::new(Kind::NotFound, detail)
    }

    /// Sets the number of seconds after which a retry makes sense.
    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// Returns its HTTP status.
    pub fn status(&self) -> StatusCode {
        self.kind.answer().0
    }

    /// Returns the number of seconds after which a retry makes sense, if known.
    pub fn seconds_to_wait(&self) -> Option<u64> {
        self.retry_after
    }

    /// Returns the problem in this case, and what to do about it.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the kind of problem, in a few words.
    pub fn title(&self) -> &'static str {
        self.kind.answer().1
    }

    pub(crate) fn body(&self) -> Body {
        let name: &'static str = self.kind.into();
        Body {
            r#type: format!("urn:problem-type:trawl:{name}"),
            title: self.title(),
            status: self.status().as_u16(),
            detail: self.detail.clone(),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let kind = match error.kind {
            ErrorKind::Unavailable => Kind::Unavailable,
            ErrorKind::Full => Kind::Full,
            ErrorKind::Busy => Kind::Busy,
            ErrorKind::Stale => Kind::Conflict,
            ErrorKind::Refused => Kind::Refused,
            ErrorKind::Corrupt => Kind::Corrupt,
        };
        Self::new(kind, error)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status(), axum::Json(self.body())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.kind == Kind::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Returns the problem for an unknown path.
pub(crate) async fn no_route() -> Problem {
    Problem::not_found("there is no such path: GET /api/v1/openapi.json lists them")
}

/// Returns the problem for a method that a path does not have.
pub(crate) async fn no_method() -> Problem {
    Problem::new(Kind::MethodNotAllowed, "see GET /api/v1/openapi.json for what this path takes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_port_says_becomes_a_status_that_tells_whether_to_try_again() {
        for (kind, status, retry_after) in [
            (ErrorKind::Unavailable, 503, Some(RETRY_AFTER)),
            (ErrorKind::Full, 503, Some(RETRY_AFTER)),
            (ErrorKind::Busy, 409, None),
            (ErrorKind::Stale, 409, None),
            (ErrorKind::Refused, 502, None),
            (ErrorKind::Corrupt, 500, None),
        ] {
            let problem = Problem::from(Error::new(kind, "redis"));
            assert_eq!((problem.body().status, problem.retry_after), (status, retry_after), "{kind:?}");
        }
    }
}
