//! Dead letters: what is no URL is kept, what failed is admitted again.

use async_trait::async_trait;
use trawl_common::frontier::Key;
use trawl_common::frontier::dead_letter::{DeadLetter, DeadLetterEntry};
use trawl_common::frontier::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{MAX_INVALID, Result};
use trawl_engine::DeadLetters;

use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;
use crate::redis::recovery::sweep::lost_message;
use crate::redis::script_calls::{by_crawl, corrupt, over};
use crate::redis::seen::{entry, seen_keys};

/// Maximum number of dead letters replayed in one call of a script: each may have some megabytes.
const MAX_REPLAYED: usize = 100;

#[async_trait]
impl DeadLetters for RedisRecords {
    async fn note_invalid(&self, dead_letters: &[DeadLetter]) -> Result<()> {
        for (crawl, places) in by_crawl(dead_letters, |dead_letter| &dead_letter.crawl) {
            let keys = CrawlKeys::new(crawl);
            let mut call = self.scripts.invalid.on(&keys);
            call.arg(MAX_INVALID);
            for &at in &places {
                call.arg(&dead_letters[at].url).arg(encode(&dead_letters[at].note()));
            }
            let is_known = self.unless_wrong_type(crawl, self.redis.run(&call).await).await?;
            if is_known == Some(false) && crawl.is_adhoc() {
                self.restore_crawl(crawl).await?;
                let _: bool = self.redis.run(&call).await?;
            }
        }
        Ok(())
    }

    async fn replay(&self, from: &CrawlRef, into: &CrawlRef, keys: &[Key]) -> Result<Vec<Message>> {
        let (old, new) = (CrawlKeys::new(from), CrawlKeys::new(into));
        let mut messages = Vec::with_capacity(keys.len());
        for batch in keys.chunks(MAX_REPLAYED) {
            let mut call = self.scripts.replay.prepare_invoke();
            call.key(&old.crawl).key(&new.crawl).key(&old.failed).key(&new.pending);
            call.key(&new.outbox);
            seen_keys(&mut call, &new);
            call.key(&old.gone).key(&new.hosts);
            call.arg(into.id.as_str()).arg(u8::from(from == into));
            for key in batch {
                entry(&mut call, key.as_str());
            }
            let answer: Vec<Vec<u8>> = self.redis.run(&call).await?;
            match answer.split_first() {
                Some((taken, records)) if taken == b"1" => {
                    let replayed = records.chunks_exact(7).map(|record| lost_message(into, record));
                    messages.extend(replayed.collect::<Option<Vec<_>>>().ok_or_else(|| corrupt("replay"))?);
                }
                _ => return Err(over(into, "over, or was never opened")),
            }
        }
        Ok(messages)
    }
}

/// Returns a note in stored form.
pub(crate) fn encode(note: &DeadLetterEntry) -> String {
    // Names, numbers and text can always be serialised.
    serde_json::to_string(note).unwrap_or_default()
}
