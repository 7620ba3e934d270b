//! Tasks that begin before others of their spider, whichever message comes first (`claim/urgent.lua`).

use redis::{FromRedisValue, Value};
use trawl_common::frontier::StartReply;
use trawl_common::metrics;
use trawl_common::names::{CrawlId, CrawlRef};
use trawl_common::time::UnixMs;
use trawl_engine::Urgent;

use crate::redis::claim::start_of;
use crate::redis::recovery::sweep::lost_message;

/// Number of values that a script returns for an urgent task beyond those of any message: crawl, attempts, starts,
/// and the time since when it has waited.
const ABOUT_CLAIM: usize = 4;

/// The script's reply.
pub(super) enum Reply {
    Start(StartReply),
    Urgent(Urgent),
    /// The payload of an urgent task cannot be read.
    Unreadable {
        crawl: CrawlRef,
        key: Vec<u8>,
    },
    /// A command for the crawl may be lost.
    Unsure,
}

impl Reply {
    /// Parses a reply; `None` for one that the script never gives. All urgent tasks are of the spider of `crawl`.
    pub(super) fn read(crawl: &CrawlRef, reply: &Value) -> Option<Self> {
        if let Ok([start]) = <[i64; 1]>::from_redis_value_ref(reply) {
            return start_of(start).map(Self::Start);
        }
        let parts = Vec::<Vec<u8>>::from_redis_value_ref(reply).ok()?;
        if parts.is_empty() {
            return Some(Self::Unsure);
        }
        let (claim, sent) = parts.split_at_checked(ABOUT_CLAIM)?;
        let text = |at: usize| str::from_utf8(&claim[at]).ok();
        let id: CrawlId = text(0)?.parse().ok()?;
        let (attempts, starts) = (text(1)?.parse().ok()?, text(2)?.parse().ok()?);
        let since: u64 = text(3)?.parse().ok()?;
        let crawl = CrawlRef { id, spider: crawl.spider.clone() };
        Some(match lost_message(&crawl, sent) {
            Some(message) => {
                if since > 0 {
                    metrics::claimed_after(UnixMs::now().since(UnixMs(since)));
                }
                Self::Urgent(Urgent { message, attempts, starts })
            }
            None => Self::Unreadable { crawl, key: sent.first()?.clone() },
        })
    }
}
