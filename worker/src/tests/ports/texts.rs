//! The files of spiders that crawls keep, of which there are none.

use async_trait::async_trait;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Result, SpiderTexts};
use trawl_common::spider::SpiderText;

use super::Memory;

#[async_trait]
impl SpiderTexts for Memory {
    async fn spider_text(&self, _: &CrawlRef) -> Result<Option<SpiderText>> {
        unreachable!("no crawl was opened with a file")
    }
}
