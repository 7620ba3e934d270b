//! The list of crawls, and each one's stats.

use std::collections::{BTreeMap, HashMap};

use trawl_common::frontier::crawl::{Counts, CrawlState, CrawlStats, HostStats};
use trawl_common::frontier::judging::Judging;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{Period, Recrawl};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Error, ErrorKind, Result, Terms};
use trawl_common::time::UnixMs;

use crate::redis::RedisRecords;
use crate::redis::crawls::news::JUDGING;
use crate::redis::fields::Fields;
use crate::redis::keys::{self, CrawlKeys};

impl RedisRecords {
    /// Adds the crawl to the list of all crawls; an id belongs to the spider that had it first.
    pub(crate) async fn index(&self, crawl: &CrawlRef) -> Result<()> {
        self.write(&entering(crawl)).await
    }

    /// Adds the crawl to the list, unless another spider has a crawl with that id.
    pub(crate) async fn claim_id(&self, crawl: &CrawlRef) -> Result<()> {
        let () = self.redis.query(&entering(crawl)).await?;
        let id = crawl.id.as_str();
        match self.spider_of(crawl).await?.filter(|known| known != crawl.spider.as_str()) {
            None => self.note_open(crawl).await,
            Some(other) => {
                let message = format!("{id} is a crawl of the spider {other}: give this one another id");
                Err(Error::new(ErrorKind::Refused, message))
            }
        }
    }

    /// Returns the spider of the crawl with this id in the list.
    pub(crate) async fn spider_of(&self, crawl: &CrawlRef) -> Result<Option<String>> {
        self.redis.query(redis::cmd("HGET").arg(keys::CRAWLS).arg(crawl.id.as_str())).await
    }

    pub(crate) async fn all_crawls(&self) -> Result<Vec<CrawlRef>> {
        let index: BTreeMap<Vec<u8>, Vec<u8>> =
            self.redis.query(redis::cmd("HGETALL").arg(keys::CRAWLS)).await?;
        let mut crawls = Vec::with_capacity(index.len());
        for (id, spider) in index {
            match crawl_of(&id, &spider) {
                Some(crawl) => crawls.push(crawl),
                None => self.name_entry(&id, &spider),
            }
        }
        Ok(crawls)
    }

    pub(crate) async fn read_stats(&self, crawl: &CrawlRef) -> Result<Option<CrawlStats>> {
        let keys = CrawlKeys::new(crawl);
        // Not a transaction, because a full server refuses even those that only read.
        let call = self.scripts.stats.on(&keys);
        let (fields, pending, stalled_at, held, judging): (
            HashMap<String, String>,
            u64,
            String,
            String,
            String,
        ) = self.redis.run(&call).await?;
        let fields = Fields::new(keys.crawl, fields);
        // The counters of a crawl that this server had forgotten do not tell what came of it before.
        let is_restored = fields.count("restored")? > 0;
        let Some(status) = fields.read("status")? else { return Ok(None) };
        let mut counts = Counts { admitted: fields.count("admitted")?, ..Counts::default() };
        for terminal in Terminal::ALL {
            *counts.of(terminal) = fields.count(terminal.as_str())?;
        }
        let mut reasons = BTreeMap::new();
        for name in fields.names().filter(|name| name.contains(':')) {
            reasons.insert(name.to_owned(), fields.count(name)?);
        }
        reasons.retain(|_, count| *count > 0);
        let mut incomplete = fields.count("incomplete")? > 0;
        for name in fields.names().filter(|name| name.starts_with("unread ")) {
            incomplete |= fields.count(name)? > 0;
        }
        let recrawl: Recrawl = fields.read("recrawl")?.unwrap_or_default();
        let judging = Some(judging).filter(|text| !text.is_empty()).map(|text| (JUDGING.to_owned(), text));
        let noted = Fields::new(keys.told, judging.into_iter().collect());
        let judging: Judging = noted.read(JUDGING)?.unwrap_or_default();
        let judging = match (is_restored, fields.read::<Period>("replays")?) {
            (true, _) => Judging::default(),
            (_, Some(_)) => judging.of_replay(),
            (_, None) => judging,
        };
        let started = fields.read("started")?.map_or_else(UnixMs::now, UnixMs);
        let ended = fields.read("ended")?.map_or_else(UnixMs::now, UnixMs);
        let stats = CrawlStats {
            incomplete,
            stalled: status == CrawlState::Running && pending > 0 && stalled_at == counts.ended().to_string(),
            held: Some(held).filter(|why| status == CrawlState::Paused && !why.is_empty()),
            dedup: recrawl.into(),
            counts,
            pending,
            bytes: fields.count("bytes")?,
            reasons,
            left_out: fields.count("left_out")?,
            judging,
            seconds: ended.wait_from(started).as_secs_f64(),
            discovered: fields.read::<String>("discovery")?.is_some_and(|discovery| discovery == "ended"),
            ..CrawlStats::empty(crawl.clone(), status, started)
        };
        let stats = stats.concluded();
        Ok(Some(CrawlStats { empty: stats.empty && !is_restored, ..stats }))
    }

    pub(crate) async fn read_terms(&self, crawl: &CrawlRef) -> Result<Terms> {
        const TERMS: [&str; 5] = ["recrawl", "max_pages", "max_per_host", "file", "replays"];
        let key = CrawlKeys::new(crawl).crawl;
        let stored: Vec<Option<String>> = self.redis.query(redis::cmd("HMGET").arg(&key).arg(&TERMS)).await?;
        let stored = TERMS.into_iter().zip(stored);
        let stored = stored.filter_map(|(name, text)| Some((name.to_owned(), text?)));
        let fields = Fields::new(key, stored.collect());
        Ok(Terms {
            recrawl: fields.read("recrawl")?.unwrap_or_default(),
            max_pages: fields.read("max_pages")?,
            max_per_host: fields.read("max_per_host")?,
            file: fields.read("file")?,
            replays: fields.read("replays")?,
        })
    }

    /// Fails if the stored fields of a crawl cannot be read.
    pub(crate) async fn check_fields(&self, crawl: &CrawlRef) -> Result<()> {
        self.read_terms(crawl).await?;
        self.read_stats(crawl).await.map(drop)
    }

    /// Returns the stats by host. Each counter is a field, `<host> <name>`. They are read in parts, because there may
    /// be a million hosts.
    pub(crate) async fn read_hosts(&self, crawl: &CrawlRef, most: usize) -> Result<Vec<HostStats>> {
        let key = CrawlKeys::new(crawl).hosts;
        let mut hosts: HashMap<String, HostStats> = HashMap::new();
        let mut cursor = 0;
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&key).arg(cursor).arg("COUNT").arg(1000);
            let (next, fields): (u64, Vec<(String, i64)>) = self.redis.query(&scan).await?;
            for (field, count) in fields {
                let Some((host, name)) = field.split_once(' ') else { continue };
                let stats = hosts.entry(host.to_owned()).or_default();
                let count = count.max(0) as u64;
                match name {
                    "admitted" => stats.counts.admitted = count,
                    "bytes" => stats.bytes = count,
                    name => {
                        if let Some(terminal) = Terminal::ALL.into_iter().find(|one| one.as_str() == name) {
                            *stats.counts.of(terminal) = count;
                        }
                    }
                }
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        let named = hosts.into_iter().map(|(host, stats)| HostStats { host, ..stats });
        let mut hosts: Vec<HostStats> = named.collect();
        hosts.sort_by(|a, b| b.counts.admitted.cmp(&a.counts.admitted).then_with(|| a.host.cmp(&b.host)));
        hosts.truncate(most);
        Ok(hosts)
    }
}

/// Returns the crawl of an entry in the list; `None` if it cannot be read.
fn crawl_of(id: &[u8], spider: &[u8]) -> Option<CrawlRef> {
    let (id, spider) = (str::from_utf8(id).ok()?, str::from_utf8(spider).ok()?);
    Some(CrawlRef { id: id.parse().ok()?, spider: spider.parse().ok()? })
}

/// Returns the command that adds a crawl to the list, unless there is one with that id.
fn entering(crawl: &CrawlRef) -> redis::Cmd {
    redis::cmd("HSETNX").arg(keys::CRAWLS).arg(crawl.id.as_str()).arg(crawl.spider.as_str()).to_owned()
}
