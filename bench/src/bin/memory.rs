//! Measures the memory that a URL takes in Redis (in the dedup, as a record, in the outbox), and the time that each
//! call keeps Redis busy with it. Uses the fleet's own adapter, on the empty server that `REDIS_URL` names.
//!
//! ```sh
//! eval "$(scripts/servers start /tmp/servers)"
//! cargo run --release -p trawl-bench --bin memory -- --thousands 10000
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::slice;
use std::time::Duration;

use anstream::println;
use clap::Parser;
use clap::value_parser;
use redis::{FromRedisValue, InfoDict};
use serde::Serialize;
use trawl_backends::redis::{Link, RedisRecords, connect};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Claim, Error, ErrorKind, Finish, NewWork, Result, Terms};
use trawl_common::settings::{Dedup, Redis, ServerUrl};
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Admission, Claims, Linking, Outbox, Past, Settlements};

/// Number of URLs per call, as many as the adapter sends at once.
const BATCH: usize = 500;
/// Number of URLs over which a call is timed.
const WINDOW: usize = 10_000;
/// Longer than a run.
const LONG: Duration = Duration::from_secs(24 * 3600);
/// Time until a URL's deadline, the default of the bulk lane.
const WORTH: Duration = Duration::from_secs(3600);

/// Measure the bytes of Redis that a URL takes, and the time that it keeps Redis busy
#[derive(Parser)]
struct Args {
    /// An empty Redis, which is emptied again at the end
    #[arg(long, env = "REDIS_URL", hide_env_values = true)]
    redis: String,
    /// Number of URLs, in thousands
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u32).range(30..=1_000_000))]
    thousands: u32,
    /// Admit them as links of a page, each with the page as its referrer
    #[arg(long)]
    links: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    redis: String,
    urls: usize,
    links: bool,
    plain: Figures,
    packed: Figures,
}

/// The measurements with one form of the dedup.
#[derive(Default, Serialize)]
struct Figures {
    /// Bytes per URL.
    bytes: BTreeMap<&'static str, f64>,
    /// Processor time of Redis' only thread for commands, in microseconds per URL: other programs do not affect it.
    micros: BTreeMap<&'static str, f64>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let link = connect(&Redis { url: ServerUrl::new(&args.redis), ..Redis::default() }).await?;
    if ask::<u64>(&link, &["DBSIZE"]).await? > 0 {
        return Err(Error::new(ErrorKind::Refused, "REDIS_URL: this Redis is not empty"));
    }
    let urls = args.thousands as usize * 1000;
    let report = Report {
        redis: info(&link, "server", "redis_version").await?,
        urls,
        links: args.links,
        plain: measure(&link, urls, args.links, Dedup::Plain).await?,
        packed: measure(&link, urls, args.links, Dedup::Packed).await?,
    };
    // Freeing a set of millions takes longer than a call may take.
    let () = ask(&link, &["FLUSHALL", "ASYNC"]).await?;
    if args.json {
        println!("{}", serde_json::to_string(&report).unwrap_or_default());
    } else {
        print(&report);
    }
    Ok(())
}

fn print(report: &Report) {
    let Report { redis, urls, links: _, plain, packed } = report;
    println!("{urls} URLs of 64 characters, Redis {redis}");
    for (unit, plain, packed) in
        [("bytes a URL", &plain.bytes, &packed.bytes), ("µs a URL", &plain.micros, &packed.micros)]
    {
        println!("\n{unit:<24} {:>8} {:>8}", "plain", "packed");
        for (name, figure) in plain {
            println!("{name:<24} {figure:>8.2} {:>8.2}", packed[name]);
        }
    }
}

/// Takes `urls` URLs of a new spider from their admission to their end.
async fn measure(link: &Link, urls: usize, links: bool, dedup: Dedup) -> Result<Figures> {
    let records = RedisRecords::new(link.clone(), LONG, dedup);
    let spider = match dedup {
        Dedup::Plain => "plain",
        Dedup::Packed => "packed",
    };
    let mut run = Run { link, records, crawl: crawl(spider), figures: Figures::default() };
    let empty = run.memory().await?;
    run.admit(urls, links).await?;
    let admitted = run.memory().await?;
    run.confirm(urls).await?;
    let confirmed = run.memory().await?;
    run.handle(urls).await?;
    run.finish(urls).await?;
    let finished = run.memory().await?;

    let each = |more: u64, less: u64| (more as f64 - less as f64) / urls as f64;
    run.figures.bytes.insert("dedup", each(finished, empty));
    run.figures.bytes.insert("record", each(confirmed, finished));
    run.figures.bytes.insert("outbox", each(admitted, confirmed));
    Ok(run.figures)
}

struct Run<'a> {
    link: &'a Link,
    records: RedisRecords,
    crawl: CrawlRef,
    figures: Figures,
}

impl Run<'_> {
    async fn admit(&mut self, urls: usize, links: bool) -> Result<()> {
        let lease = self.records.open(&self.crawl, Terms::default(), "bench", LONG, Past::Possible).await?;
        let parent = seed(urls);
        self.records.admit(&lease, slice::from_ref(&parent)).await?;
        self.records.claim(&worker(), &[parent.message(&self.crawl)]).await?;
        let page = self.claim(urls);
        let admit = async |run: &Self, batch: Range<usize>| {
            let seeds = batch.map(seed);
            if links {
                let links = seeds.map(|seed| NewWork { depth: 1, ..seed }).collect();
                run.records.admit_links(&worker(), &[Linking { page: page.clone(), links }]).await.map(drop)
            } else {
                run.records.admit(&lease, &seeds.collect::<Vec<_>>()).await.map(drop)
            }
        };
        self.time("admit, the first", 0..WINDOW, &admit).await?;
        self.pass(WINDOW..urls - WINDOW, &admit).await?;
        self.time("admit, the last", urls - WINDOW..urls, &admit).await?;
        self.time("admit again", urls - WINDOW..urls, &admit).await?;
        self.records.finish(&worker(), &[Finish::new(page, Terminal::Done)]).await.map(drop)
    }

    async fn confirm(&mut self, urls: usize) -> Result<()> {
        let confirm = async |run: &Self, batch: Range<usize>| {
            let messages: Vec<_> = batch.map(|number| seed(number).message(&run.crawl)).collect();
            run.records.confirm(&messages).await
        };
        self.time("confirm", 0..WINDOW, &confirm).await?;
        self.pass(WINDOW..urls, &confirm).await
    }

    /// Claims and starts some of the URLs, as a worker does.
    async fn handle(&mut self, urls: usize) -> Result<()> {
        let claim = async |run: &Self, batch: Range<usize>| {
            let messages: Vec<_> = batch.map(|at| seed(at).message(&run.crawl)).collect();
            run.records.claim(&worker(), &messages).await.map(drop)
        };
        let start = async |run: &Self, batch: Range<usize>| {
            let claims: Vec<Claim> = batch.map(|at| run.claim(at)).collect();
            run.records.start(&worker(), &claims).await.map(drop)
        };
        self.time("claim", urls - WINDOW..urls, &claim).await?;
        self.time("start", urls - WINDOW..urls, &start).await
    }

    async fn finish(&mut self, urls: usize) -> Result<()> {
        let finish = async |run: &Self, batch: Range<usize>| {
            let ends: Vec<_> = batch.map(|at| Finish::new(run.claim(at), Terminal::Done)).collect();
            run.records.finish(&worker(), &ends).await.map(drop)
        };
        let take_and_finish = async |run: &Self, batch: Range<usize>| {
            let messages: Vec<_> = batch.clone().map(|at| seed(at).message(&run.crawl)).collect();
            run.records.claim(&worker(), &messages).await?;
            finish(run, batch).await
        };
        self.time("finish", urls - WINDOW..urls, &finish).await?;
        self.pass(0..urls - WINDOW, &take_and_finish).await
    }

    /// Calls `step` for each batch of `urls`.
    async fn pass(
        &self,
        urls: Range<usize>,
        step: impl AsyncFn(&Self, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        for first in urls.clone().step_by(BATCH) {
            step(self, first..urls.end.min(first + BATCH)).await?;
        }
        Ok(())
    }

    /// Calls `step` for each batch of `urls`, and records the time that Redis was busy.
    async fn time(
        &mut self,
        name: &'static str,
        urls: Range<usize>,
        step: impl AsyncFn(&Self, Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let before = self.busy().await?;
        self.pass(urls.clone(), step).await?;
        let micros = (self.busy().await? - before) * 1e6 / urls.len() as f64;
        self.figures.micros.insert(name, micros);
        Ok(())
    }

    /// Returns the time that Redis has been busy, in seconds.
    async fn busy(&self) -> Result<f64> {
        let user: f64 = info(self.link, "cpu", "used_cpu_user_main_thread").await?;
        let system: f64 = info(self.link, "cpu", "used_cpu_sys_main_thread").await?;
        Ok(user + system)
    }

    fn claim(&self, number: usize) -> Claim {
        Claim { crawl: self.crawl.clone(), key: url(number).into() }
    }

    async fn memory(&self) -> Result<u64> {
        info(self.link, "memory", "used_memory").await
    }
}

fn crawl(spider: &str) -> CrawlRef {
    let name = "they are names";
    CrawlRef {
        id: format!("20260101-120000-{spider}").parse().expect(name),
        spider: spider.parse().expect(name),
    }
}

fn worker() -> WorkerId {
    "machine-a1b2c3".parse().expect("it is a name")
}

/// Returns a URL of 64 characters, on one of a thousand hosts.
fn url(number: usize) -> CanonicalUrl {
    let text = format!("https://www.site-{:04}.example/catalogue/item-{number:014}.html", number % 1000);
    CanonicalUrl::parse(&text).expect("it is written as a URL")
}

fn seed(number: usize) -> NewWork {
    NewWork { deadline: Some(UnixMs::now().plus(WORTH)), ..NewWork::seed(url(number), Lane::Bulk) }
}

async fn ask<T: FromRedisValue>(link: &Link, command: &[&str]) -> Result<T> {
    let answer = redis::cmd(command[0]).arg(&command[1..]).query_async(&mut link.clone()).await;
    answer.map_err(|error| Error::new(ErrorKind::Unavailable, format!("redis: {error}")))
}

/// Returns one field of the server's INFO.
async fn info<T: FromRedisValue>(link: &Link, section: &str, field: &str) -> Result<T> {
    let info: InfoDict = ask(link, &["INFO", section]).await?;
    info.get(field).ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("redis: INFO does not say {field}")))
}
