//! A packed dedup keeps every promise of a plain one, and a plain one becomes packed while crawls continue.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use ::redis::{AsyncCommands, FromRedisValue};
use proptest::prelude::*;
use trawl_backends::redis::{Link, Packing, RedisRecords};
use trawl_common::frontier::Recrawl;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Claim, Control, Finish, NewWork, Terms};
use trawl_common::settings::Dedup;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Admission, Claims, Lease, Past, Recovery, Settlements};

use crate::support::{LONG, own_link};

keeps_promises!(trawl_common::settings::Dedup::Packed);

fn page(number: usize) -> CanonicalUrl {
    CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap()
}

fn crawl(id: &str) -> CrawlRef {
    CrawlRef { id: id.parse().unwrap(), spider: SpiderName::default() }
}

/// A database, and the crawls of its spider one after the other.
struct Store {
    link: Link,
}

impl Store {
    async fn new() -> Self {
        Self { link: own_link().await }
    }

    fn frontier(&self, dedup: Dedup) -> RedisRecords {
        RedisRecords::new(self.link.clone(), LONG, dedup)
    }

    async fn ask<T: FromRedisValue>(&self, command: &[&str]) -> T {
        let mut ask = ::redis::cmd(command[0]);
        ask.arg(&command[1..]).query_async(&mut self.link.clone()).await.unwrap()
    }

    /// Returns the number of URLs that the packed set reports, and the number of integers in each bucket.
    async fn packed(&self) -> (usize, Vec<usize>) {
        let (urls, buckets): (usize, usize) =
            self.ask(&["HMGET", "{crawled_urls}:p", "urls", "buckets"]).await;
        let mut sizes = Vec::with_capacity(buckets);
        for bucket in 0..buckets {
            sizes.push(self.ask(&["SCARD", &format!("{{crawled_urls}}:p:{bucket}")]).await);
        }
        (urls, sizes)
    }
}

async fn open(frontier: &RedisRecords, id: &str) -> Lease {
    frontier.open(&crawl(id), Terms::default(), "producer", LONG, Past::Possible).await.unwrap()
}

async fn admit(frontier: &RedisRecords, lease: &Lease, pages: Range<usize>) -> Vec<bool> {
    let urls: Vec<NewWork> = pages.map(|number| NewWork::seed(page(number), Lane::Bulk)).collect();
    frontier.admit(lease, &urls).await.unwrap()
}

async fn finish(frontier: &RedisRecords, crawl: &CrawlRef, pages: Range<usize>) -> Vec<bool> {
    let claim = |number| Claim { crawl: crawl.clone(), key: page(number).into() };
    let worker = "worker".parse().unwrap();
    let message = |number| Message::seed(page(number), crawl.clone(), Lane::Bulk);
    let messages: Vec<Message> = pages.clone().map(message).collect();
    frontier.claim(&worker, &messages).await.unwrap();
    let finishes: Vec<Finish> = pages.map(|number| Finish::new(claim(number), Terminal::Done)).collect();
    frontier.finish(&worker, &finishes).await.unwrap()
}

#[tokio::test]
async fn buckets_grow_in_number_and_stay_small() {
    let store = Store::new().await;
    let frontier = store.frontier(Dedup::Packed);
    let lease = open(&frontier, "c").await;
    assert!(admit(&frontier, &lease, 0..20_000).await.into_iter().all(|new| new));

    let (urls, sizes) = store.packed().await;
    assert_eq!((urls, sizes.iter().sum()), (20_000, 20_000));
    assert!(sizes.len() > 100 && sizes.iter().all(|&size| size < 512), "{sizes:?}");
    let last = format!("{{crawled_urls}}:p:{}", sizes.len() - 1);
    assert_eq!(store.ask::<String>(&["OBJECT", "ENCODING", &last]).await, "intset");
    assert_eq!(store.ask::<u64>(&["EXISTS", "crawled_urls"]).await, 0);
}

#[tokio::test]
async fn the_form_that_a_spider_has_stays_whatever_the_settings_of_a_program() {
    for (first, second) in [(Dedup::Plain, Dedup::Packed), (Dedup::Packed, Dedup::Plain)] {
        let store = Store::new().await;
        let (first_program, second_program) = (store.frontier(first), store.frontier(second));
        let lease = open(&first_program, "c").await;
        assert_eq!(admit(&first_program, &lease, 0..2).await, [true, true]);
        assert_eq!(admit(&second_program, &lease, 1..3).await, [false, true]);
        assert!(second_program.has_seen(&lease.crawl, &page(0)).await.unwrap());
        assert!(first_program.has_seen(&lease.crawl, &page(2)).await.unwrap());
        assert_eq!(store.ask::<u64>(&["EXISTS", "crawled_urls"]).await, u64::from(first == Dedup::Plain));
        assert_eq!(
            store.ask::<u64>(&["EXISTS", "{crawled_urls}:p"]).await,
            u64::from(first == Dedup::Packed)
        );
    }
}

#[tokio::test]
async fn packing_can_be_broken_off_and_loses_nothing_of_what_goes_on_meanwhile() {
    let store = Store::new().await;
    let frontier = store.frontier(Dedup::Plain);
    let lease = open(&frontier, "first").await;
    admit(&frontier, &lease, 0..3_000).await;
    finish(&frontier, &lease.crawl, 0..2_000).await;

    let spider = SpiderName::default();
    let mut broken_off = Packing::new(store.link.clone(), &spider);
    for _ in 0..2 {
        assert!(broken_off.step().await.unwrap() > 0);
    }
    drop(broken_off);

    // In either set, old pages are known, new ones are taken, and cancelled ones are forgotten.
    assert_eq!(admit(&frontier, &lease, 0..3_000).await, [false; 3_000]);
    assert_eq!(
        admit(&frontier, &lease, 2_900..3_500).await,
        [[false; 100].as_slice(), &[true; 500]].concat()
    );
    assert!(frontier.has_seen(&lease.crawl, &page(2_999)).await.unwrap());
    finish(&frontier, &lease.crawl, 3_000..3_400).await;
    frontier.cancel(&lease.crawl).await.unwrap();

    let mut packing = Packing::new(store.link.clone(), &spider);
    while packing.step().await.unwrap() > 0 {}

    assert_eq!(store.ask::<u64>(&["EXISTS", "crawled_urls"]).await, 0);
    let (urls, sizes) = store.packed().await;
    assert_eq!((urls, sizes.iter().sum()), (2_400, 2_400));
    frontier.renew(&lease, Duration::ZERO).await.unwrap();
    let lease = open(&frontier, "second").await;
    let new = admit(&frontier, &lease, 0..3_500).await;
    let was_done = |number: usize| number < 2_000 || (3_000..3_400).contains(&number);
    assert_eq!(new, (0..3_500).map(|number| !was_done(number)).collect::<Vec<_>>());
}

#[tokio::test]
async fn packing_nothing_leaves_a_spider_as_it_is() {
    let store = Store::new().await;
    assert_eq!(Packing::new(store.link.clone(), &SpiderName::default()).step().await.unwrap(), 0);
    assert_eq!(store.ask::<u64>(&["DBSIZE"]).await, 0);
}

#[tokio::test]
async fn the_set_of_a_recrawl_goes_with_it() {
    let store = Store::new().await;
    let frontier = store.frontier(Dedup::Packed);
    let terms = Terms { recrawl: Recrawl::Always, ..Terms::default() };
    let lease = frontier.open(&crawl("again"), terms, "producer", LONG, Past::Possible).await.unwrap();
    admit(&frontier, &lease, 0..1_000).await;
    finish(&frontier, &lease.crawl, 0..1_000).await;
    let own = "{crawled_urls}:seen:again:p*";
    assert!(store.ask::<Vec<String>>(&["KEYS", own]).await.len() > 2);
    frontier.close(lease, None).await.unwrap();
    frontier.sweep(&"worker".parse().unwrap()).await.unwrap();
    assert_eq!(store.ask::<Vec<String>>(&["KEYS", own]).await, [""; 0]);
    assert_eq!(store.packed().await.0, 1_000);
}

/// A step of a spider's crawls, with pages by number.
#[derive(Clone, Debug)]
enum Step {
    Admit(Range<usize>),
    Finish(Range<usize>),
    /// Cancels the crawl, which forgets the pending pages, and starts the next one.
    Cancel,
}

fn step() -> impl Strategy<Value = Step> {
    let pages = || (0..2_000_usize, 1..600_usize).prop_map(|(first, count)| first..first + count);
    prop_oneof![4 => pages().prop_map(Step::Admit), 2 => pages().prop_map(Step::Finish), 1 => Just(Step::Cancel)]
}

async fn says_what_a_set_says(steps: &[Step]) {
    let store = Store::new().await;
    let frontier = store.frontier(Dedup::Packed);
    let (mut seen, mut pending) = (HashSet::new(), HashSet::new());
    let mut lease = open(&frontier, "0").await;
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Admit(pages) => {
                let new = admit(&frontier, &lease, pages.clone()).await;
                assert_eq!(new, pages.clone().map(|page| seen.insert(page)).collect::<Vec<_>>());
                pending.extend(pages.clone().zip(new).filter_map(|(page, new)| new.then_some(page)));
            }
            Step::Finish(pages) => {
                // Claiming a page that was never admitted admits it.
                seen.extend(pages.clone());
                let ended = finish(&frontier, &lease.crawl, pages.clone()).await;
                assert!(ended.into_iter().all(|ended| ended));
                pending.retain(|page| !pages.contains(page));
            }
            Step::Cancel => {
                frontier.cancel(&lease.crawl).await.unwrap();
                seen.retain(|page| !pending.contains(page));
                pending.clear();
                let () = store.link.clone().del("{crawled_urls}:leases").await.unwrap();
                lease = open(&frontier, &(number + 1).to_string()).await;
            }
        }
        if !seen.is_empty() {
            let (urls, sizes) = store.packed().await;
            assert_eq!((urls, sizes.iter().sum()), (seen.len(), seen.len()));
        }
    }
    for number in (0..2_600).step_by(13) {
        let known = frontier.has_seen(&lease.crawl, &page(number)).await.unwrap();
        assert_eq!(known, seen.contains(&number), "page {number}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_packed_set_says_exactly_what_a_set_says(steps in prop::collection::vec(step(), 1..12)) {
        runtime().block_on(says_what_a_set_says(&steps));
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
