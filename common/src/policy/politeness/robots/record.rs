//! The lines of a `robots.txt`.

use std::time::Duration;

/// Number of bytes of a file that are read. RFC 9309 (2.5) asks for at least this much. A file as long as this may
/// have been cut off in the middle of a line, so the text after its last whole line is ignored.
pub const MAX_BYTES: usize = 500 * 1024;

/// A line that has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Agent(Agent<'a>),
    /// A pattern as written, which may be empty.
    Rule {
        allow: bool,
        path: &'a [u8],
    },
    CrawlDelay(Duration),
}

/// The crawlers that the rules below are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent<'a> {
    Everyone,
    /// As written.
    Named(&'a [u8]),
}

const AGENT: &[&str] = &["user-agent", "useragent", "user agent"];
const ALLOW: &[&str] = &["allow"];
const DISALLOW: &[&str] = &["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"];
const CRAWL_DELAY: &[&str] = &["crawl-delay", "crawldelay", "crawl delay"];

/// Returns the records of a file. Lines end as on Unix, on Windows, or on old Macs, and may have any length.
pub(super) fn records(body: &[u8]) -> impl Iterator<Item = Record<'_>> {
    without_mark(within_limit(body)).split(is_line_end).filter_map(record)
}

fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Returns the whole lines within the limit: half a rule would have another meaning.
fn within_limit(body: &[u8]) -> &[u8] {
    let Some(start) = body.get(..MAX_BYTES) else { return body };
    let end = start.iter().rposition(is_line_end).unwrap_or(0);
    &start[..end]
}

/// Returns `body` without a byte order mark, or the part of one that careless programs have left.
fn without_mark(body: &[u8]) -> &[u8] {
    let marks: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"];
    marks.into_iter().find_map(|mark| body.strip_prefix(mark)).unwrap_or(body)
}

fn record(line: &[u8]) -> Option<Record<'_>> {
    let line = line.split(|byte| *byte == b'#').next()?.trim_ascii();
    let (key, value) = at_colon(line).or_else(|| two_words(line))?;
    let is = |keys: &[&str]| keys.iter().any(|known| key.eq_ignore_ascii_case(known.as_bytes()));
    if is(DISALLOW) {
        Some(Record::Rule { allow: false, path: value })
    } else if is(ALLOW) {
        Some(Record::Rule { allow: true, path: value })
    } else if is(AGENT) {
        Some(Record::Agent(agent(value)))
    } else if is(CRAWL_DELAY) {
        seconds(value).map(Record::CrawlDelay)
    } else {
        None
    }
}

fn at_colon(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()))
}

/// Splits a line whose colon was forgotten; only a line of two words can be one.
fn two_words(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = line.iter().position(u8::is_ascii_whitespace)?;
    let (key, value) = (&line[..space], line[space..].trim_ascii());
    (!value.iter().any(u8::is_ascii_whitespace)).then_some((key, value))
}

fn agent(value: &[u8]) -> Agent<'_> {
    if let [b'*'] | [b'*', b' ' | b'\t', ..] = value { Agent::Everyone } else { Agent::Named(value) }
}

/// Parses a number of seconds; `None` if it is negative, infinite, or no number.
fn seconds(value: &[u8]) -> Option<Duration> {
    let seconds = str::from_utf8(value).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
