//! Commands to forget URLs and crawls.

use trawl_common::frontier::Key;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Error, ErrorKind, Result, Seen, SeenUrls};

use crate::redis::RedisRecords;
use crate::redis::fields::Fields;
use crate::redis::keys::{self, CrawlKeys, SeenKeys};
use crate::redis::script_calls::{BATCH, corrupt};
use crate::redis::scripts::codes::seen;
use crate::redis::seen::entry;

/// Whether to forget the URLs or only look them up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seeing {
    Looking,
    Forgetting,
}

impl RedisRecords {
    /// Returns the number of URLs that the spider has seen, in either form.
    pub(crate) async fn count_seen(&self, spider: &SpiderName) -> Result<u64> {
        let keys = SeenKeys::for_spider(spider);
        let plain: u64 = self.redis.query(redis::cmd("SCARD").arg(&keys.plain)).await?;
        let packed: Option<u64> = self.redis.query(redis::cmd("HGET").arg(&keys.packed).arg("urls")).await?;
        Ok(plain + packed.unwrap_or_default())
    }

    /// Scans the plain set; a packed set yields none.
    pub(crate) async fn scan_seen(&self, spider: &SpiderName, cursor: u64) -> Result<SeenUrls> {
        let mut scan = redis::cmd("SSCAN");
        scan.arg(SeenKeys::for_spider(spider).plain).arg(cursor).arg("COUNT").arg(BATCH);
        let (next, texts): (u64, Vec<Vec<u8>>) = self.redis.query(&scan).await?;
        // There are tasks too, and others may have added texts that are no URLs of trawl's.
        let key = |text: &Vec<u8>| Key::recorded(str::from_utf8(text).ok()?).ok();
        let urls = texts.iter().filter_map(key).filter(|key| key.task().is_none()).collect();
        Ok(SeenUrls { urls, next: (next > 0).then_some(next) })
    }

    /// Returns what the spider knows of each URL and request, or knew before it forgot it. The crawls are listed
    /// anew for each batch: one that is opened later takes in no seen URL.
    pub(crate) async fn see(&self, spider: &SpiderName, urls: &[Key], what: Seeing) -> Result<Vec<Seen>> {
        let keys = SeenKeys::for_spider(spider);
        let mut all = Vec::with_capacity(urls.len());
        for batch in urls.chunks(BATCH) {
            let mut call = self.scripts.seen_urls.key(&keys.plain);
            call.key(&keys.packed);
            for crawl in self.crawls_of(spider).await? {
                call.key(CrawlKeys::new(&crawl).pending);
            }
            call.arg(u8::from(what == Seeing::Forgetting));
            batch.iter().for_each(|url| entry(&mut call, url.as_str()));
            let reply: Vec<i64> = self.redis.run(&call).await?;
            if reply.len() != batch.len() {
                return Err(corrupt("seen_urls"));
            }
            for known in reply {
                all.push(match known {
                    seen::NEVER => Seen::Never,
                    seen::ENDED => Seen::Ended,
                    seen::PENDING_NOW => Seen::Pending,
                    _ => return Err(corrupt("seen_urls")),
                });
            }
        }
        Ok(all)
    }

    pub(crate) async fn forget_all(&self, spider: &SpiderName) -> Result<()> {
        let keys = SeenKeys::for_spider(spider);
        let mut call = self.scripts.forget_all.key(&keys.plain);
        call.key(&keys.packed);
        let crawls = self.crawls_of(spider).await?;
        for crawl in &crawls {
            let keys = CrawlKeys::new(crawl);
            call.key(keys.crawl).key(keys.pending);
        }
        let in_the_way: String = self.redis.run(&call).await?;
        match crawls.iter().find(|crawl| CrawlKeys::new(crawl).crawl == in_the_way) {
            None => Ok(()),
            Some(crawl) => Err(Error::new(ErrorKind::Refused, not_over(crawl))),
        }
    }

    async fn crawls_of(&self, spider: &SpiderName) -> Result<Vec<CrawlRef>> {
        let all = self.all_crawls().await?;
        Ok(all.into_iter().filter(|crawl| crawl.spider == *spider).collect())
    }

    /// Forgets a crawl if it is cleaned up, and its end is in the log: otherwise a late copy of one of its
    /// messages would begin it again.
    pub(crate) async fn forget_one(&self, crawl: &CrawlRef) -> Result<()> {
        const STANDING: [&str; 3] = ["status", "cleared", "announced"];
        let key = CrawlKeys::new(crawl).crawl;
        let stored: Vec<Option<String>> =
            self.redis.query(redis::cmd("HMGET").arg(&key).arg(&STANDING)).await?;
        let stored = STANDING.into_iter().zip(stored);
        let stored = stored.filter_map(|(name, text)| Some((name.to_owned(), text?)));
        let fields = Fields::new(key, stored.collect());
        let refused = |text| Err(Error::new(ErrorKind::Refused, text));
        let status: Option<String> = fields.read("status")?;
        let (is_cleared, is_announced) = (fields.count("cleared")? == 1, fields.count("announced")? == 1);
        match status.as_deref() {
            Some("cancelled") if is_cleared => self.unlink_crawl(crawl).await,
            Some("finished") if is_cleared && is_announced => self.unlink_crawl(crawl).await,
            Some("cancelled" | "finished") => refused(format!(
                "crawl {} has only just ended: a worker clears up after it within seconds; try again then",
                crawl.id
            )),
            Some(_) => refused(not_over(crawl)),
            None => Ok(()),
        }
    }

    /// Removes the crawl from the lists first: the hash of a listed crawl must exist.
    pub(crate) async fn unlink_crawl(&self, crawl: &CrawlRef) -> Result<()> {
        for list in [keys::CRAWLS, keys::OPEN_CRAWLS] {
            let () = self.redis.query(redis::cmd("HDEL").arg(list).arg(crawl.id.as_str())).await?;
        }
        self.over.invalidate(crawl);
        self.redis.query(redis::cmd("UNLINK").arg(&CrawlKeys::new(crawl).all()[..])).await
    }
}

fn not_over(crawl: &CrawlRef) -> String {
    format!("crawl {} is not over: wait for its end, or `trawl cancel {}` first", crawl.id, crawl.id)
}
