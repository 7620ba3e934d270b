//! Downloads of files: bodies of any size that arrive in parts, no slower than a minimum, and may go on where an
//! earlier attempt ended (RFC 9110 14).

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_RANGE, DATE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_RANGE,
    LAST_MODIFIED, RANGE,
};
use tokio::time::{Instant, timeout};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::ports::{Left, Resume};
use trawl_common::spider::page_history::Validators;
use trawl_common::web::http_date;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;

use super::body::{Body, Unread};
use super::redirect::Redirect;

/// Minimum rate at which a file arrives, in bytes a second.
const MIN_RATE: u64 = 16 * 1024;

/// Minimum size in bytes of a file that is worth to be resumed: the rest of a smaller one comes as soon as all of it.
const MIN_RESUMABLE: u64 = 1 << 20;

/// The result of a request for a file.
pub enum OpenedFile {
    /// A success: the file, or the rest of it.
    Body(Box<FileBody>),
    /// The server has no rest for what an earlier attempt has left: the file has changed.
    Changed(Response),
    /// A redirect.
    Redirect(Redirect),
}

/// The body of a file.
pub struct FileBody {
    /// The response, without its body.
    pub head: Response,
    /// Number of bytes of the file before it; 0 if it is the whole file.
    pub from: u64,
    /// The means to go on with the file later; `None` if that is impossible.
    pub resume: Option<Resume>,
    body: Body,
    /// The size of the whole file, if the server has said it.
    total: Option<u64>,
    /// Number of bytes of the file so far.
    received: u64,
    rate: ArrivalRate,
    learn: Box<dyn Fn(Unread) -> Failure + Send + Sync>,
}

impl FileBody {
    /// Returns the next part; `None` at the end, when all bytes have come that the server has announced.
    ///
    /// # Errors
    /// Fails if the body is too large or too slow, or ends early.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let begun = Instant::now();
            let part = timeout(self.rate.left(), self.body.next()).await;
            self.rate.waited += begun.elapsed();
            let Ok(part) = part else {
                self.rate.renew()?;
                continue;
            };
            let Some(part) = part.map_err(&self.learn)? else { break };
            self.received += part.len() as u64;
            self.rate.note(part.len())?;
            return Ok(Some(part));
        }
        match self.total {
            Some(total) if total != self.received => {
                Err(Failure::new(Class::Body, format_args!("{} of {total} bytes", self.received)))
            }
            _ => Ok(None),
        }
    }
}

/// The rate at which a body arrives: in each period of `fetch.timeout` that is spent waiting for it, as much as
/// [`MIN_RATE`] demands. The time that the disk takes does not count.
struct ArrivalRate {
    period: Duration,
    waited: Duration,
    bytes: u64,
}

impl ArrivalRate {
    fn new(period: Duration) -> Self {
        Self { period, waited: Duration::ZERO, bytes: 0 }
    }

    /// The rest of the period.
    fn left(&self) -> Duration {
        self.period.saturating_sub(self.waited)
    }

    /// Counts bytes that have come, and ends the period if it is over.
    fn note(&mut self, bytes: usize) -> Result<(), Failure> {
        self.bytes += bytes as u64;
        if self.left().is_zero() { self.renew() } else { Ok(()) }
    }

    /// Begins another period.
    fn renew(&mut self) -> Result<(), Failure> {
        let least = (self.period.as_secs_f64() * MIN_RATE as f64) as u64;
        if self.bytes < least {
            let Self { period, bytes, .. } = self;
            let what =
                format_args!("{bytes} bytes in {period:?} (`fetch.timeout`), fewer than {MIN_RATE} a second");
            return Err(Failure::new(Class::Timeout, what));
        }
        (self.waited, self.bytes) = (Duration::ZERO, 0);
        Ok(())
    }
}

/// The properties of an open file beside its head and its body.
pub(super) struct Opening {
    pub(super) url: CanonicalUrl,
    pub(super) from: u64,
    /// The size of the whole file.
    pub(super) total: Option<u64>,
    pub(super) period: Duration,
    pub(super) learn: Box<dyn Fn(Unread) -> Failure + Send + Sync>,
}

impl Opening {
    pub(super) fn body(self, head: Response, headers: &HeaderMap, body: Body) -> FileBody {
        let Self { url, from, total, period, learn } = self;
        let resume = total.filter(|total| *total >= MIN_RESUMABLE && !refuses_ranges(headers));
        let resume = resume.and_then(|total| {
            let validator = strong_validator(headers)?;
            Some(Resume { url: url.as_str().to_owned(), validator, total })
        });
        FileBody { head, from, resume, body, total, received: from, rate: ArrivalRate::new(period), learn }
    }
}

/// Returns the header fields of a request for a file from `url`, or for the rest of what is left of it. A file is
/// wanted as it is: a range would be one of its coded form.
pub(super) fn fields(url: &CanonicalUrl, left: Option<&Left>) -> HeaderMap {
    let mut fields = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    if let Some(left) = left.filter(|left| left.resume.url == url.as_str())
        && let Ok(validator) = HeaderValue::from_str(&left.resume.validator)
    {
        fields.insert(RANGE, HeaderValue::try_from(format!("bytes={}-", left.bytes)).expect("digits"));
        fields.insert(IF_RANGE, validator);
    }
    fields
}

/// Returns where the body of a response begins in its file, and the size of the file. `asked` is what is left of the
/// file, if its rest was asked for; `None` says that the response is not that rest.
pub(super) fn range(
    response: &reqwest::Response,
    is_coded: bool,
    asked: Option<&Left>,
) -> Option<(u64, Option<u64>)> {
    if response.status() != StatusCode::PARTIAL_CONTENT {
        return Some((0, response.content_length().filter(|_| !is_coded)));
    }
    let left = asked.filter(|_| !is_coded)?;
    let range = text(response.headers(), CONTENT_RANGE)?.trim().strip_prefix("bytes")?;
    let (range, said) = range.trim().split_once('/')?;
    let (from, to) = range.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let total = left.resume.total;
    let is_rest =
        number(from) == Some(left.bytes) && number(to).is_some_and(|to| to.checked_add(1) == Some(total));
    let is_same = match strong_etag(response.headers()) {
        Some(etag) if left.resume.validator.starts_with('"') => etag == left.resume.validator,
        _ => true,
    };
    let is_whole = number(said).is_none_or(|said| said == total);
    (is_rest && is_same && is_whole).then_some((left.bytes, Some(total)))
}

/// Whether a server says that it gives no ranges.
fn refuses_ranges(headers: &HeaderMap) -> bool {
    text(headers, ACCEPT_RANGES).is_some_and(|value| value.trim().eq_ignore_ascii_case("none"))
}

/// Returns the validator by which a range of the same content can be asked for (RFC 9110 13.1.5): a strong entity tag,
/// or a date that is a strong validator (8.8.2.2).
fn strong_validator(headers: &HeaderMap) -> Option<String> {
    if let Some(etag) = strong_etag(headers) {
        return Some(etag.to_owned());
    }
    let (changed, sent) = (text(headers, LAST_MODIFIED)?, text(headers, DATE)?);
    let now = Timestamp::now();
    let age = http_date::parse(sent, now)?.duration_since(http_date::parse(changed, now)?);
    let validators = Validators::new(None, Some(changed));
    validators.last_modified().filter(|_| age.as_secs() >= 1).map(str::to_owned)
}

fn strong_etag(headers: &HeaderMap) -> Option<&str> {
    let etag = text(headers, ETAG)?;
    let is_strong = etag.len() >= 2 && etag.starts_with('"') && etag.ends_with('"');
    (is_strong && !Validators::new(Some(etag), None).is_empty()).then_some(etag)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
