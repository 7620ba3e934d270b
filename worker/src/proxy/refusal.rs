//! The proxy's own responses, and how a program can recognise them.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONTENT_TYPE, HeaderValue, PROXY_AUTHENTICATE, RETRY_AFTER};
use hyper::{Response, StatusCode};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::time::UnixMs;

use super::credentials::MAX_CONNECTIONS;
use crate::schedule::polite::{NotAsked, blocked};

/// The body of a response.
pub(super) type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The header field that marks the proxy's own responses (RFC 9209).
const PROXY_STATUS: &str = "proxy-status";

/// The reason why a request is not forwarded, or got no response.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    /// The proxy error type of RFC 9209 2.3.
    kind: &'static str,
    why: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    fn new(status: StatusCode, kind: &'static str, why: impl Into<String>) -> Self {
        Self { status, kind, why: why.into(), retry_after: None }
    }

    /// Returns the refusal of a request without the credentials of a run.
    pub(super) fn unknown() -> Self {
        let why =
            "use the name and the secret in TRAWL_PROXY, which are good as long as the program's run lasts";
        Self::new(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "http_request_denied", why)
    }

    /// Returns the refusal of a request that cannot be read.
    pub(super) fn nonsense(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "http_request_error", why)
    }

    /// Returns the refusal of a destination that no setting allows.
    pub(super) fn forbidden(why: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "http_request_denied", why)
    }

    /// Returns the refusal for a run with too many connections.
    pub(super) fn crowded() -> Self {
        let why = format!("the program has {MAX_CONNECTIONS} connections to the proxy: close some");
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "connection_limit_reached", why);
        Self { retry_after: Some(Duration::from_secs(1)), ..refusal }
    }

    /// Returns the refusal of a request whose host could not be asked within this time.
    pub(super) fn overdue(waited: Duration) -> Self {
        let why = format!("the host was not to be asked within {waited:?}: try again later");
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "connection_limit_reached", why);
        Self { retry_after: Some(waited), ..refusal }
    }

    /// Returns the refusal for an error that is not the program's fault.
    pub(super) fn internal(why: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "proxy_internal_error", why)
    }

    /// The reason in words.
    pub(super) fn why(&self) -> &str {
        &self.why
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(full(format!("trawl: {}\n", self.why).into()));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if let Ok(status) = HeaderValue::try_from(format!("trawl; error={}", self.kind)) {
            fields.insert(PROXY_STATUS, status);
        }
        if self.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            fields.insert(PROXY_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"trawl\""));
        }
        if let Some(wait) = self.retry_after {
            fields.insert(RETRY_AFTER, HeaderValue::from(wait.as_secs_f64().ceil() as u64));
        }
        // Most clients show nothing else of a response to CONNECT.
        if let Ok(phrase) = ReasonPhrase::try_from(self.phrase().into_bytes()) {
            response.extensions_mut().insert(phrase);
        }
        response
    }

    /// The reason, cut to fit into a status line.
    fn phrase(&self) -> String {
        let plain = self.why.chars().map(|c| if c.is_ascii_graphic() { c } else { ' ' });
        format!("trawl: {}", plain.take(200).collect::<String>())
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let (status, kind) = match failure.class {
            Class::Forbidden => (StatusCode::FORBIDDEN, "destination_ip_prohibited"),
            Class::Dns => (StatusCode::BAD_GATEWAY, "dns_error"),
            Class::Tls => (StatusCode::BAD_GATEWAY, "tls_protocol_error"),
            Class::Timeout => (StatusCode::GATEWAY_TIMEOUT, "http_response_timeout"),
            Class::Machine => (StatusCode::SERVICE_UNAVAILABLE, "proxy_internal_error"),
            _ => (StatusCode::BAD_GATEWAY, "destination_unavailable"),
        };
        Self::new(status, kind, failure.to_string())
    }
}

impl From<NotAsked> for Refusal {
    fn from(not_asked: NotAsked) -> Self {
        match not_asked {
            NotAsked::Blocked(key) => Self::forbidden(blocked(&key)),
            NotAsked::Forbidden(why) => Self::forbidden(format!(
                "{why}; where you may ask nevertheless, set `robots = false` in [politeness] of the spider's file"
            )),
            NotAsked::Unreadable(failure) | NotAsked::Failed(failure) => failure.into(),
            NotAsked::Later(key, until) => {
                let why = format!("{key} is not to be asked before {until}");
                let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "connection_limit_reached", why);
                Self { retry_after: Some(until.wait_from(UnixMs::now())), ..refusal }
            }
            NotAsked::Port(error) => {
                Self::internal(format!("the schedules of hosts cannot be asked: {error}"))
            }
        }
    }
}

/// Returns a body with these bytes.
pub(super) fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// Returns an empty body.
pub(super) fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}
