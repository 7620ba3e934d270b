//! Classifies failures by the types of their causes.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use trawl_common::frontier::outcome::{Class, Failure, is_refusal};
use trawl_common::time::UnixMs;
use trawl_common::web::http_date;
use trawl_common::web::response::Response as Page;

use super::guard::Refused;
use super::machine::{self, causes};

/// Returns the failure of a request to one of these addresses that got no response.
pub(super) fn no_answer(error: &reqwest::Error, addresses: &[IpAddr]) -> Failure {
    machine::failure(error, addresses)
        .unwrap_or_else(|| Failure::new(classify(error, Class::Connect), innermost(error)))
}

/// Returns the failure of a response that ended before its body was complete, or whose content coding is broken.
pub(super) fn broken_body(error: &reqwest::Error) -> Failure {
    machine::failure(error, &[])
        .unwrap_or_else(|| Failure::new(classify(error, Class::Body), innermost(error)))
}

/// Whether a connection ended without the closing message by which TLS confirms that nothing is missing.
pub(super) fn is_end_without_notice(error: &reqwest::Error) -> bool {
    let kind = |cause: &(dyn Error + 'static)| cause.downcast_ref().map(io::Error::kind);
    causes(error).any(|cause| kind(cause) == Some(io::ErrorKind::UnexpectedEof))
}

/// Returns the failure of a response whose status is not a success.
pub(super) fn status(response: &Response) -> Failure {
    of_status(response.status(), retry_after(response.headers()))
}

fn of_status(status: StatusCode, retry_after: Option<Duration>) -> Failure {
    Failure { status: Some(status.as_u16()), retry_after, ..Failure::new(Class::Http, status) }
}

/// Returns the failure of a page that asks for a back-off, although it was requested for any status; `None` for others.
pub fn refusal(page: &Page) -> Option<Failure> {
    let status = StatusCode::from_u16(page.status).ok().filter(|status| is_refusal(status.as_u16()))?;
    Some(of_status(status, page.headers.get(RETRY_AFTER.as_str()).and_then(wait_from_now)))
}

/// Returns the wait that a response with these header fields asks for.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    wait_from_now(headers.get(RETRY_AFTER)?.to_str().ok()?)
}

fn wait_from_now(value: &str) -> Option<Duration> {
    wait(value, Timestamp::from_millisecond(UnixMs::now().0 as i64).ok()?)
}

/// Returns the wait of a `Retry-After` value, in seconds or until a date (RFC 9110 10.2.3).
fn wait(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = http_date::parse(value, now)?;
    Some(date.duration_since(now).try_into().unwrap_or_default())
}

fn classify(error: &reqwest::Error, otherwise: Class) -> Class {
    if causes(error).any(|cause| cause.is::<Refused>()) {
        Class::Forbidden
    } else if error.is_timeout() {
        Class::Timeout
    } else if error.is_dns() {
        Class::Dns
    } else if causes(error).any(|cause| cause.is::<rustls::Error>()) {
        Class::Tls
    } else if causes(error).any(is_head_too_large) {
        Class::Size
    } else if causes(error).any(is_broken_connection) {
        Class::Connect
    } else {
        otherwise
    }
}

/// Whether the received data is not an HTTP response, whatever its length.
pub(super) fn is_malformed(error: &reqwest::Error) -> bool {
    let is_parse = |cause: &hyper::Error| cause.is_parse() && !cause.is_parse_too_large();
    causes(error).any(|cause| cause.downcast_ref().is_some_and(is_parse))
}

/// Whether a body has chunks that hyper refuses, which it tells by the kind of an I/O error alone.
pub(super) fn has_malformed_chunks(error: &reqwest::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput};
    let kind = |cause: &(dyn Error + 'static)| cause.downcast_ref().map(io::Error::kind);
    causes(error).any(|cause| matches!(kind(cause), Some(InvalidData | InvalidInput)))
        && !causes(error).any(|cause| cause.is::<rustls::Error>())
}

/// Whether the response had too many or too long headers.
fn is_head_too_large(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref().is_some_and(hyper::Error::is_parse_too_large)
}

fn is_broken_connection(cause: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    let kind = cause.downcast_ref().map(io::Error::kind);
    matches!(kind, Some(BrokenPipe | ConnectionAborted | ConnectionReset))
}

/// Returns the most specific cause: the errors around it say "error sending request" and the like.
fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
        let seconds = |value| wait(value, now).map(|wait| wait.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(7));
        assert_eq!(seconds("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(seconds("Sunday, 06-Nov-94 08:49:36 GMT"), Some(6));
        assert_eq!(seconds("Sun Nov  6 08:49:36 1994"), Some(6));
        assert_eq!(seconds("18446744073709551615"), Some(u64::MAX));
        for nonsense in ["", "-1", "1.5", "soon", "99999999999999999999"] {
            assert_eq!(seconds(nonsense), None, "{nonsense}");
        }
    }
}
