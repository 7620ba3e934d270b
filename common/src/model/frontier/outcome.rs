//! The outcome of a fetch, and the final state of a URL.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::UnixMs;

/// The kind of a failure, as far as people and the retry policy distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Class {
    /// No answer came within the time allowed.
    Timeout,
    /// The host name has no address.
    Dns,
    /// There was no connection, or it broke.
    Connect,
    /// The certificate or the handshake was refused.
    Tls,
    /// The server answered with a status that is not a success.
    Http,
    /// The body was cut off, or could not be decoded.
    Body,
    /// The body is larger than settings allow.
    Size,
    /// The page could not be parsed.
    Parse,
    /// The page lacks a required field.
    Missing,
    /// The answer matches the spider's rules for a ban.
    Banned,
    /// Settings do not allow the address.
    Forbidden,
    /// Too many redirects, or one to nowhere.
    Redirect,
    /// The host's robots.txt could not be read, so nothing may be requested from it (RFC 9309 2.3.1.4). A host
    /// that cannot be reached fails as `dns`, `connect`, `tls` or `timeout`, whether its robots.txt or a page
    /// meets that first.
    Robots,
    /// The proxy for requests cannot be reached. No host is to blame.
    Proxy,
    /// The spider's program failed, or gave no valid answer (`docs/handlers.md`).
    Handler,
    /// This machine lacks something that a request needs: open files, memory, threads, ports, or a resolver that
    /// answers. No host is to blame.
    Machine,
    /// The worker panicked on it, or it was started several times and never finished: it may have killed its workers.
    Crash,
}

impl Class {
    /// Every class.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the name in headers, logs and settings.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the class with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|class| class.as_str() == name)
    }

    /// Returns whether neither the host nor the URL is to blame: the same request succeeds once this side is
    /// repaired, and until then does not count as an attempt.
    pub fn is_blameless(self) -> bool {
        matches!(self, Self::Proxy | Self::Machine)
    }
}

/// A failed attempt: its kind, its details, and the wait that the server asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {detail}")]
pub struct Failure {
    /// The kind of failure.
    pub class: Class,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// A description for people, printable and at most 1 KB.
    pub detail: String,
    /// The wait that the server asked for (`Retry-After`, RFC 9110 10.2.3).
    pub retry_after: Option<Duration>,
}

/// Returns whether a status says that its host wants to be left alone (RFC 6585 4, RFC 9110 15.6.4).
pub fn is_refusal(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Whether a host that answers with this status may be asked as before: not after a refusal, nor after a server error.
pub fn is_welcoming(status: u16) -> bool {
    status < 500 && !is_refusal(status)
}

impl Failure {
    /// Returns whether the failure is the answer of a host that wants to be left alone.
    pub fn is_refusal(&self) -> bool {
        self.class == Class::Http && self.status.is_some_and(is_refusal)
    }

    /// Returns a failure of `class` described by `detail`, which is made printable.
    pub fn new(class: Class, detail: impl fmt::Display) -> Self {
        let detail = crate::text::printable(&detail.to_string(), 1024);
        Self { class, status: None, detail, retry_after: None }
    }
}

/// Why a URL was left out on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Skip {
    /// No spider reads this kind of content.
    ContentType,
    /// The host's robots.txt forbids it.
    Robots,
    /// A person blocked its host.
    Blocked,
    /// It redirects to a URL that its spider has seen.
    Duplicate,
    /// It redirects to a URL outside its spider's scope.
    Scope,
    /// Its crawl has done all the pages that it may.
    Limit,
    /// It has not changed since its spider's last visit.
    Unchanged,
    /// It was fetched recently.
    Fresh,
    /// The spider's program said so.
    Handler,
}

impl Skip {
    /// Every reason.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the name in logs and stats.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The outcome of one delivery of a URL that gave no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Left out on purpose.
    Skipped(Skip),
    /// Failed, and worth another try.
    Retry {
        /// The failure.
        failure: Failure,
        /// The instant of the next try.
        until: UnixMs,
        /// Maximum number of retries by the policy that allows this one.
        max: u32,
    },
    /// Failed for good.
    Failed(Failure, Reason),
    /// Not yet: it comes back later.
    Snooze {
        /// The instant.
        until: UnixMs,
    },
    /// Not by this worker, which lacks the spider in the version that its crawl needs: it comes back about then,
    /// for any worker to take at once.
    Requeue {
        /// The instant.
        until: UnixMs,
    },
    /// Its deadline passed before it could be fetched.
    Expired,
    /// No longer held by this worker, which therefore cannot settle it: its message is published again.
    Republish,
    /// Given back untouched, for any worker to take.
    Release,
}

/// Why a URL became a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr, strum::VariantArray, strum::Display, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Reason {
    /// All retries were used.
    Retries,
    /// Another try cannot help.
    Final,
    /// It was started several times and never finished: it kills its worker.
    Poison,
    /// Its deadline passed.
    Expired,
    /// It is not a URL, or not a message.
    Invalid,
    /// Its stored data cannot be read.
    Corrupt,
    /// A person blocked its host: it is skipped, and can be replayed once the host is unblocked.
    Blocked,
}

impl Reason {
    /// Every reason.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the name in headers and commands.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl FromStr for Reason {
    type Err = UnknownReason;
    fn from_str(text: &str) -> Result<Self, UnknownReason> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == text).ok_or(UnknownReason)
    }
}

/// The error for a text that names no [`Reason`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a reason is `retries`, `final`, `poison`, `expired`, `invalid`, `corrupt` or `blocked`")]
pub struct UnknownReason;

/// The final state of a URL in a crawl; it has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Terminal {
    /// Fetched and stored.
    Done,
    /// Left out on purpose.
    Skipped,
    /// Failed for good.
    Failed,
    /// Past its deadline.
    Expired,
    /// Its crawl was cancelled.
    Cancelled,
}

impl Terminal {
    /// Every terminal state.
    pub const ALL: [Self; 5] = [Self::Done, Self::Skipped, Self::Failed, Self::Expired, Self::Cancelled];

    /// Returns the name of its counter in a crawl's stats.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::limit::Limit;
    use crate::frontier::source_queue::SourceQueue;

    #[test]
    fn names_that_are_stored_and_sent_are_not_changed_with_the_code() {
        let (skips, limits) = ([Skip::ContentType, Skip::Robots], Limit::ALL.map(Limit::as_str));
        assert_eq!(
            Class::ALL.iter().map(|class| class.as_str()).collect::<Vec<_>>().join(" "),
            "timeout dns connect tls http body size parse missing banned forbidden redirect robots proxy handler machine crash"
        );
        assert_eq!(
            Reason::ALL.iter().map(|reason| reason.as_str()).collect::<Vec<_>>().join(" "),
            "retries final poison expired invalid corrupt blocked"
        );
        assert_eq!(Terminal::ALL.map(Terminal::as_str).join(" "), "done skipped failed expired cancelled");
        assert_eq!(skips.map(Skip::as_str), ["content-type", "robots"]);
        assert_eq!(limits.join(" "), "depth max_repeats max_per_host page_links url_length list_pages");
        assert_eq!(SourceQueue::ALL.map(SourceQueue::as_str).join(" "), "due priority expired task bulk");
    }

    #[test]
    fn every_class_is_found_by_its_name() {
        assert!(Class::ALL.iter().all(|class| Class::named(class.as_str()) == Some(*class)));
    }
}
