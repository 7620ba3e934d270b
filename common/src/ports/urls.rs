//! What all ports say of URLs and crawls.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::frontier::lane::Lane;
use crate::frontier::message::{Hop, Message};
use crate::frontier::{Key, Task, Work};
use crate::names::CrawlRef;
use crate::spider::{FileHash, Recrawl, Spider};
use crate::time::UnixMs;
use crate::web::url::{CanonicalUrl, Fingerprint};

/// So many texts that are no URLs a crawl keeps for people to look at: anyone can publish any number.
pub const MAX_INVALID: usize = 1000;

/// Names the record of one URL or task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The URL or the task.
    pub key: Key,
}

impl Claim {
    /// The record of a message.
    pub fn of(message: &Message) -> Self {
        Self { crawl: message.crawl.clone(), key: message.key() }
    }
}

/// What stands in memory for a URL or a task of a crawl, given as the text of its key.
pub fn fingerprint(crawl: &CrawlRef, key: &str) -> Fingerprint {
    Fingerprint::of(&format!("{} {} {key}", crawl.spider, crawl.id))
}

/// A URL or a task that somebody names, on its way into the frontier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWork {
    /// What is to be done.
    pub work: Work,
    /// The spelling in which its URL is to be asked for, where that is not the canonical one.
    pub written: Option<CanonicalUrl>,
    /// Its lane.
    pub lane: Lane,
    /// When it is no longer worth fetching.
    pub deadline: Option<UnixMs>,
    /// How many links it is away from where the crawl started.
    pub depth: u16,
    /// The page that linked to it, or the task that yielded it.
    pub referrer: Option<Key>,
}

impl NewWork {
    /// A URL at the start of a crawl.
    pub fn seed(url: CanonicalUrl, lane: Lane) -> Self {
        Self::of(Work::Url(url), lane)
    }

    /// A task at the start of a crawl.
    pub fn task(task: Task) -> Self {
        Self::of(task.into(), Lane::Task)
    }

    /// A URL or a task at the start of a crawl. A task's lane is its own, whatever `lane` says.
    pub fn of(work: Work, lane: Lane) -> Self {
        Self { lane: lane.of(&work), work, written: None, deadline: None, depth: 0, referrer: None }
    }

    /// The message that wakes a worker for it.
    pub fn message(&self, crawl: &CrawlRef) -> Message {
        let seed = Message::of(self.work.clone(), crawl.clone(), self.lane);
        Message {
            deadline: self.deadline,
            depth: self.depth,
            referrer: self.referrer.clone(),
            hop: self.hop(),
            ..seed
        }
    }

    /// The spelling in which its URL is asked for first, if that is not the canonical one: no redirect has led there.
    pub fn hop(&self) -> Option<Hop> {
        self.written.clone().map(|url| Hop { url, count: 0, as_get: false })
    }
}

/// What a crawl is bound to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// Whether it fetches again what was crawled before: then a URL counts as seen only if this crawl has seen it.
    pub recrawl: Recrawl,
    /// How many pages it has done at most; it skips the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pages: Option<NonZeroU64>,
    /// How many URLs of one host it takes at most, of those that pages link to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_host: Option<NonZeroU64>,
    /// What its spider's file says, if it has one: a worker without that file must not take its URLs. Where who opens a crawl
    /// is who works on it, it need not be kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileHash>,
}

impl Terms {
    /// The terms of a spider's crawls.
    pub fn of(spider: &Spider) -> Self {
        Self {
            recrawl: spider.recrawl(),
            max_pages: spider.max_pages,
            max_per_host: spider.follow.as_ref().and_then(|follow| follow.max_per_host),
            file: spider.file,
        }
    }
}
