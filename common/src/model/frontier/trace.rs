//! The trace context that travels with a traced URL, as in W3C's Trace Context
//! (<https://www.w3.org/TR/trace-context/>).

use crate::time::UnixMs;

/// The header with the ids of a trace and of the parent span.
pub const TRACE_PARENT: &str = "traceparent";
/// The header with trawl's own data: when the message was sent, and the last attempt that had it.
pub const TRACE_STATE: &str = "tracestate";

/// The key of trawl's own entry in the state of a trace.
const OWN: &str = "trawl=";
/// The flag for sampled traces; others have no header.
const SAMPLED: u8 = 1;

/// The trace of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its id.
    pub id: u128,
    /// The span that all attempts are part of.
    pub parent: u64,
    /// The attempt that has the URL, or had it last.
    pub attempt: Option<u64>,
    /// The previous attempt.
    pub previous: Option<u64>,
    /// The time when the message was sent, or the attempt began.
    pub since: UnixMs,
}

impl Trace {
    /// Creates a new trace.
    pub(crate) fn new() -> Self {
        let since = UnixMs::now();
        Self { id: rand::random(), parent: rand::random(), attempt: None, previous: None, since }
    }

    /// Returns the value of the header [`TRACE_PARENT`].
    pub fn parent_header(&self) -> String {
        format!("00-{:032x}-{:016x}-{SAMPLED:02x}", self.id, self.parent)
    }

    /// Returns the value of the header [`TRACE_STATE`] for a message that is sent at `now`.
    pub fn state_header(&self, now: UnixMs) -> String {
        match self.attempt {
            None => format!("{OWN}{now}", now = now.0),
            Some(attempt) => format!("{OWN}{now}:{attempt:016x}", now = now.0),
        }
    }

    /// Parses both headers of a message that arrives at `now`. `None` if it is not sampled, or if the headers
    /// cannot be read, because a trace is only a hint.
    pub fn read(parent: &str, state: Option<&str>, now: UnixMs) -> Option<Self> {
        let mut parts = parent.split('-');
        let [version, id, span, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let is_known = version.len() == 2 && version != "ff" && (version != "00" || parts.next().is_none());
        let is_sampled = u8::from_str_radix(flags, 16).ok()? & SAMPLED != 0;
        let id = hex(id, 32).filter(|&id| id != 0)?;
        let parent = hex(span, 16).filter(|&span| span != 0)? as u64;
        let own = state.and_then(|state| state.split(',').find_map(|entry| entry.trim().strip_prefix(OWN)));
        let (sent, attempt) = match own {
            None => (None, None),
            Some(own) => {
                let (sent, attempt) =
                    own.split_once(':').map_or((own, None), |(sent, last)| (sent, Some(last)));
                (sent.parse().ok().map(UnixMs), attempt.and_then(|attempt| hex(attempt, 16)))
            }
        };
        let since = sent.unwrap_or(now).min(now);
        let attempt = attempt.map(|attempt| attempt as u64);
        (is_known && is_sampled).then_some(Self { id, parent, attempt, previous: None, since })
    }
}

/// Parses a lower-case hexadecimal number of exactly `digits` digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_hex = text.len() == digits && text.bytes().all(is_digit);
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}
