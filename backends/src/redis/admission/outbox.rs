//! The outbox: what is confirmed, and which tasks are urgent.

use async_trait::async_trait;
use trawl_common::frontier::message::Message;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_engine::Outbox;

use crate::redis::RedisRecords;
use crate::redis::keys::CrawlKeys;
use crate::redis::script_calls::{by_crawl, optional};

#[async_trait]
impl Outbox for RedisRecords {
    async fn confirm(&self, messages: &[Message]) -> Result<()> {
        for (crawl, places) in by_crawl(messages, |message| &message.crawl) {
            let mut call = self.scripts.confirm.on(&CrawlKeys::new(crawl));
            call.arg(crawl.id.as_str());
            for &at in &places {
                call.arg(messages[at].work.as_str()).arg(optional(messages[at].wake.map(|wake| wake.0)));
            }
            self.unless_wrong_type::<()>(crawl, self.redis.run(&call).await).await?;
        }
        Ok(())
    }

    /// On a full server nothing is listed: unlisted tasks come with their messages.
    async fn list_urgent(&self, tasks: &[&Message]) -> Result<()> {
        for (crawl, places) in by_crawl(tasks, |task| &task.crawl) {
            let mut call = self.scripts.list_urgent.on(&CrawlKeys::new(crawl));
            call.arg(crawl.id.as_str());
            for &at in &places {
                call.arg(tasks[at].work.as_str()).arg(-tasks[at].work.priority().get());
            }
            match self.unless_wrong_type::<()>(crawl, self.redis.run(&call).await).await {
                Err(Error { kind: ErrorKind::Full, .. }) => {}
                listed => drop(listed?),
            }
        }
        Ok(())
    }
}
