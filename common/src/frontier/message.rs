//! What travels through a queue: a wake-up for one URL, one request or one task.

use crate::frontier::lane::Lane;
use crate::frontier::{Key, Work};
use crate::names::CrawlRef;
#[cfg(doc)]
use crate::request::Method;
use crate::time::UnixMs;
use crate::trace::Trace;
use crate::web::url::{CanonicalUrl, InvalidUrl};

/// A URL or a task on its way to a worker. The record in the frontier is the truth; this only says "look".
///
/// On RabbitMQ the body is the URL, the request or the recipe of the task and nothing else, and the rest are headers, so that a
/// publisher in any language can send a bare one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What is to be done.
    pub work: Work,
    /// The crawl that admitted it.
    pub crawl: CrawlRef,
    /// The lane that it was routed to; kept while it is parked. Tasks have one of their own.
    pub lane: Lane,
    /// How many links it is away from where the crawl started.
    pub depth: u16,
    /// When it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
    /// When its turn is, if it was put aside: a queue may bring it back before that, never much later.
    pub until: Option<UnixMs>,
    /// When its record is due, if it was put aside: that tells it from a copy when it comes before.
    pub wake: Option<UnixMs>,
    /// The instant that is reserved with its host, if one is.
    pub slot: Option<UnixMs>,
    /// Its turn in its host's line, if it waits in that, and how often it has come back to look.
    pub turn: Option<(UnixMs, u8)>,
    /// The page that linked to it, or the task that yielded it.
    pub referrer: Option<Key>,
    /// Where a redirect led, if that is to be asked next.
    pub hop: Option<Hop>,
    /// How often its host answered that it wants to be left alone.
    pub refusals: u16,
    /// How often in a row workers have left it to others: none of them lives that could handle it, perhaps.
    pub left: u16,
    /// Whether a program of trawl's sent it: then its crawl is or was one, known or forgotten.
    pub is_ours: bool,
    /// Its trace, if it is one of those URLs that are traced.
    pub trace: Option<Box<Trace>>,
}

/// A redirect on the way from a URL to its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Where it led, as it is written.
    pub url: CanonicalUrl,
    /// How many redirects that makes.
    pub count: u8,
    /// Whether one of them has turned a request into a GET without a body ([`Method::becomes_get`]).
    pub as_get: bool,
}

impl Hop {
    /// The mark of what is asked for by GET.
    const GET: &str = "GET ";

    /// Where it led, as records and messages keep it: a URL, after `GET ` where the request has become one.
    pub fn target(&self) -> String {
        let mark = if self.as_get { Self::GET } else { "" };
        format!("{mark}{}", self.url)
    }

    /// Reads that.
    pub fn of_target(target: &str, count: u8) -> Result<Self, InvalidUrl> {
        let url = target.strip_prefix(Self::GET);
        Ok(Self { url: CanonicalUrl::recorded(url.unwrap_or(target))?, count, as_get: url.is_some() })
    }
}

impl Message {
    /// A URL at the start of a crawl, with nothing else known of it.
    pub fn seed(url: CanonicalUrl, crawl: CrawlRef, lane: Lane) -> Self {
        Self::of(Work::Url(url), crawl, lane)
    }

    /// A URL or a task at the start of a crawl. A task's lane is its own, whatever `lane` says.
    pub fn of(work: Work, crawl: CrawlRef, lane: Lane) -> Self {
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
            referrer: None,
            hop: None,
            refusals: 0,
            left: 0,
            is_ours: true,
            trace: None,
        }
    }

    /// Whether somebody asks for it by hand, as opposed to a page of a crawl that links to it: then it is fetched however
    /// often it was seen, unless it was asked for just now.
    pub fn is_request(&self) -> bool {
        self.crawl.is_adhoc() && (!self.is_ours || self.depth == 0)
    }

    /// What names its record.
    pub fn key(&self) -> Key {
        self.work.key()
    }

    /// The URL to ask next, if one is asked for: its own, or where the last redirect led.
    pub fn target(&self) -> Option<&CanonicalUrl> {
        self.hop.as_ref().map(|hop| &hop.url).or(self.work.page())
    }

    /// The message with which the URL comes back at `until`. After a failure it starts afresh, in the spelling in which it was asked for
    /// first unless a redirect has led away from that, while a deferred one keeps its slot and how far redirects have led it.
    pub fn put_aside(self, until: UnixMs, failed: bool) -> Self {
        let put_aside = Self { until: Some(until), left: 0, ..self };
        match failed {
            true => {
                let spelling = put_aside.hop.filter(|hop| hop.count == 0);
                Self { slot: None, turn: None, hop: spelling, ..put_aside }
            }
            false => put_aside,
        }
    }

    /// The message with which it comes to another worker.
    #[must_use]
    pub fn left_to_others(self) -> Self {
        Self { left: self.left.saturating_add(1), ..self }
    }

    /// Whether the URL is no longer worth fetching at `now`.
    pub fn is_expired(&self, now: UnixMs) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// A message that is not one: what arrived, made safe to show, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The start of the body, printable.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}
