//! Types for URLs and crawls that all ports share.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::frontier::lane::Lane;
use crate::frontier::message::{Hop, Message};
use crate::frontier::{Key, Period, Recrawl, Task, Work};
use crate::names::CrawlRef;
use crate::recorded;
use crate::spider::{FileHash, Spider};
use crate::time::UnixMs;
use crate::web::url::CanonicalUrl;

/// Maximum number of invalid URLs that a crawl keeps for people to look at: anyone can publish any number.
pub const MAX_INVALID: usize = 1000;

/// Identifies the record of one URL or task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The URL or the task.
    #[serde(with = "recorded")]
    pub key: Key,
}

impl Claim {
    /// Returns the claim of a message's record.
    pub fn new(message: &Message) -> Self {
        Self { crawl: message.crawl.clone(), key: message.key() }
    }
}

/// A URL or a task on its way into the frontier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWork {
    /// The URL, request or task.
    pub work: Work,
    /// The spelling in which its URL is to be requested, if that differs from the canonical one.
    #[serde(with = "recorded::option")]
    pub written: Option<CanonicalUrl>,
    /// Its lane.
    pub lane: Lane,
    /// The time after which it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
    /// The number of links between it and a start of the crawl.
    pub depth: u16,
    /// The page that linked to it, or the task that yielded it.
    #[serde(with = "recorded::option")]
    pub referrer: Option<Key>,
}

impl NewWork {
    /// Creates the work of a URL at the start of a crawl.
    pub fn seed(url: CanonicalUrl, lane: Lane) -> Self {
        Self::new(Work::Url(url), lane)
    }

    /// Creates the work of a task at the start of a crawl.
    pub fn task(task: Task) -> Self {
        Self::new(task.into(), Lane::Task)
    }

    /// Creates the work of a URL or a task at the start of a crawl. Tasks have their own lane, whatever `lane` says.
    pub fn new(work: Work, lane: Lane) -> Self {
        Self { lane: lane.of(&work), work, written: None, deadline: None, depth: 0, referrer: None }
    }

    /// Returns the message that wakes a worker for it.
    pub fn message(&self, crawl: &CrawlRef) -> Message {
        let seed = Message::new(self.work.clone(), crawl.clone(), self.lane);
        Message {
            deadline: self.deadline,
            depth: self.depth,
            referrer: self.referrer.clone(),
            hop: self.hop(),
            ..seed
        }
    }

    /// Returns the spelling in which its URL is requested first, if it differs from the canonical one, as a target of
    /// no redirect.
    pub fn hop(&self) -> Option<Hop> {
        self.written.clone().map(|url| Hop { url, count: 0, as_get: false })
    }
}

/// The terms of a crawl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// Whether the crawl fetches again pages that were crawled before: then a URL counts as seen only if this crawl has
    /// seen it.
    pub recrawl: Recrawl,
    /// Maximum number of pages done; the crawl skips the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<NonZeroU64>,
    /// Maximum number of URLs of one host that are admitted from links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_host: Option<NonZeroU64>,
    /// The hash of the spider's file, if it has one: a worker without that file must not take its URLs. It need not be
    /// kept where the process that opens a crawl is the one that works on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileHash>,
    /// When the crawl ran whose dead letters this one replays: a page that was visited then need not be fetched again.
    /// Like `recrawl`, it is determined by the first opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replays: Option<Period>,
}

impl Terms {
    /// Returns the terms of a spider's crawls.
    pub fn new(spider: &Spider) -> Self {
        Self {
            recrawl: spider.recrawl(),
            max_pages: spider.max_pages,
            max_per_host: spider.follow.as_ref().and_then(|follow| follow.max_per_host),
            file: spider.file,
            replays: None,
        }
    }
}
