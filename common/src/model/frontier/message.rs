//! The message that a queue carries: a wake-up for one URL, one request or one task.

use serde::{Deserialize, Serialize};

use crate::frontier::lane::Lane;
use crate::frontier::trace::Trace;
use crate::frontier::{Key, Work};
use crate::names::CrawlRef;
use crate::recorded;
#[cfg(doc)]
use crate::request::Method;
use crate::time::UnixMs;
use crate::web::url::{CanonicalUrl, InvalidUrl};

/// A URL or a task on its way to a worker. The record in the frontier is authoritative; the message only says "look".
///
/// On RabbitMQ the body is just the URL, the request or the recipe of the task; everything else is in headers, so that
/// a publisher in any language can send a bare one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The URL, request or task to process.
    pub work: Work,
    /// The crawl that admitted it.
    pub crawl: CrawlRef,
    /// The lane that it was routed to; kept while it is parked. Tasks have one of their own.
    pub lane: Lane,
    /// The number of links between it and a start of the crawl.
    pub depth: u16,
    /// The time after which it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
    /// If it is parked, when it is due: a queue may return it earlier, but never much later.
    pub until: Option<UnixMs>,
    /// If it is parked, when its record is due: a copy that arrives earlier differs in this.
    pub wake: Option<UnixMs>,
    /// The slot that is reserved with its host, if any.
    pub slot: Option<UnixMs>,
    /// Its position in its host's waitlist, if it is in it, and how often it has returned to check.
    pub turn: Option<(UnixMs, u8)>,
    /// The time at which it was first put off because its domain had no place for it; `None` once its page has begun.
    pub since: Option<UnixMs>,
    /// The page that linked to it, or the task that yielded it.
    #[serde(with = "recorded::option")]
    pub referrer: Option<Key>,
    /// The target of the last redirect, if that is to be requested next.
    pub hop: Option<Hop>,
    /// How often its host has refused it with a back-off.
    pub refusals: u16,
    /// How often its page looked as if the session of its spider had lapsed.
    pub lapses: u16,
    /// How often in a row workers have requeued it for others: possibly no running worker can handle it.
    pub left: u16,
    /// Whether it was sent by one of trawl's programs: then its crawl exists or existed, whether known or forgotten.
    pub is_ours: bool,
    /// Its trace, if the URL is traced. A relay does not pass it on.
    #[serde(skip)]
    pub trace: Option<Box<Trace>>,
}

/// A redirect between a URL and its page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The target of the redirect, spelled as in the response.
    #[serde(with = "recorded")]
    pub url: CanonicalUrl,
    /// The number of redirects so far.
    pub count: u8,
    /// Whether one of the redirects has turned a request into a GET without a body ([`Method::becomes_get`]).
    pub as_get: bool,
}

impl Hop {
    /// Prefix of a target that is requested by GET.
    const GET: &str = "GET ";

    /// Returns the target as records and messages store it: a URL, after `GET ` if the request has become one.
    pub fn target(&self) -> String {
        let mark = if self.as_get { Self::GET } else { "" };
        format!("{mark}{}", self.url)
    }

    /// Parses a stored target.
    pub fn of_target(target: &str, count: u8) -> Result<Self, InvalidUrl> {
        let url = target.strip_prefix(Self::GET);
        Ok(Self { url: CanonicalUrl::recorded(url.unwrap_or(target))?, count, as_get: url.is_some() })
    }
}

impl Message {
    /// Creates the message of a URL at the start of a crawl.
    pub fn seed(url: CanonicalUrl, crawl: CrawlRef, lane: Lane) -> Self {
        Self::new(Work::Url(url), crawl, lane)
    }

    /// Creates the message of a URL or a task at the start of a crawl. Tasks have their own lane, whatever `lane` says.
    pub fn new(work: Work, crawl: CrawlRef, lane: Lane) -> Self {
        Self {
            lane: lane.of(&work),
            work,
            crawl,
            depth: 0,
            deadline: None,
            until: None,
            wake: None,
            slot: None,
            turn: None,
            since: None,
            referrer: None,
            hop: None,
            refusals: 0,
            lapses: 0,
            left: 0,
            is_ours: true,
            trace: None,
        }
    }

    /// Whether it was requested by hand rather than linked by a page of a crawl: then it is fetched however often it
    /// was seen, unless it was requested just now.
    pub fn is_request(&self) -> bool {
        self.crawl.is_adhoc() && (!self.is_ours || self.depth == 0)
    }

    /// The key of its record.
    pub fn key(&self) -> Key {
        self.work.key()
    }

    /// The URL to request next: its own, or the target of the last redirect; `None` for a task.
    pub fn target(&self) -> Option<&CanonicalUrl> {
        self.hop.as_ref().map(|hop| &hop.url).or(self.work.page())
    }

    /// Returns the message with which the URL comes back at `until`, with its slot and its redirects so far.
    #[must_use]
    pub fn snooze(self, until: UnixMs) -> Self {
        Self { until: Some(until), left: 0, ..self }
    }

    /// Returns the message with which the URL is tried again at `until`: without a slot, and in the spelling in which
    /// it was first requested, unless a redirect has led away from that.
    #[must_use]
    pub fn retry(self, until: UnixMs) -> Self {
        let message = self.snooze(until);
        let spelling = message.hop.filter(|hop| hop.count == 0);
        Self { slot: None, turn: None, since: None, hop: spelling, ..message }
    }

    /// Returns the message with which it is passed to another worker.
    #[must_use]
    pub fn requeue(self) -> Self {
        Self { left: self.left.saturating_add(1), ..self }
    }

    /// Whether the URL is no longer worth fetching at `now`.
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// An invalid message: its content, made safe to show, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The start of the body, printable.
    pub text: String,
    /// The reason why it is invalid.
    pub reason: String,
}
