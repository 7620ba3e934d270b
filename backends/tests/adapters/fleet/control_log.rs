//! Orders about crawls and hosts survive a RabbitMQ that loses all data, then a Redis that does, and the loss of Redis'
//! last second.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use trawl_backends::fleet::records_of;
use trawl_backends::redis::{RedisHosts, RedisRecords};
use trawl_common::frontier::StartReply;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claim, Control, Finish, HostControl, NewWork, SourcesRead, Stats, Terms};
use trawl_common::settings::{self, Dedup, ServerUrl, Settings};
use trawl_common::web::host::HostKey;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Admission, Claims, Lease, Past, Recovery, Settlements};
use trawl_testkit::own_redis::OwnRedis;
use trawl_testkit::servers::{self, VirtualHost};

use crate::support::{BRIEF, LONG, link, own_link};

/// Records and hosts in their own Redis, beside this RabbitMQ.
async fn store(vhost: &VirtualHost) -> (Arc<RedisRecords>, Arc<RedisHosts>) {
    store_on(vhost, servers::own_database().await).await
}

async fn store_on(vhost: &VirtualHost, redis: ServerUrl) -> (Arc<RedisRecords>, Arc<RedisHosts>) {
    let rabbitmq = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let settings = Settings { rabbitmq, ..Settings::default() };
    records_of(&settings, link(redis).await).unwrap()
}

/// A crawl of its own spider.
fn crawl(id: &str) -> CrawlRef {
    CrawlRef { id: id.parse().unwrap(), spider: id.parse().unwrap() }
}

#[tokio::test]
async fn what_was_ordered_is_restored_from_a_rabbitmq_that_was_emptied_before_redis_was() {
    let vhost = VirtualHost::new().await;
    let (records, hosts) = store(&vhost).await;
    let worker = "w".parse().unwrap();
    let terms = Terms { max_pages: NonZeroU64::new(7), ..Terms::default() };
    for id in ["limited", "paused", "cancelled"] {
        // Its producer has not ended, or the crawl would be finished.
        records.open(&crawl(id), terms, "producer", LONG, Past::None).await.unwrap();
    }
    records.pause(&crawl("paused")).await.unwrap();
    records.cancel(&crawl("cancelled")).await.unwrap();
    let host = HostKey::from_text("bad.example");
    hosts.block(&host).await.unwrap();
    records.sweep(&worker).await.unwrap();

    vhost.empty().await;
    let restored = async {
        loop {
            // The program notices the end of a connection a moment later.
            records.sweep(&worker).await.unwrap();
            let (later, later_hosts) = store(&vhost).await;
            later.sweep(&worker).await.unwrap();
            if later_hosts.host(&host).await.unwrap().is_some_and(|state| state.blocked.is_some()) {
                return later;
            }
        }
    };
    let later = timeout(LONG, restored).await.expect("the block is restored");
    let expected = [("limited", CrawlState::Running), ("paused", CrawlState::Paused)];
    for (id, status) in expected {
        assert_eq!(later.crawl_stats(&crawl(id).id).await.unwrap().unwrap().status, status, "{id}");
        assert_eq!(later.terms(&crawl(id)).await.unwrap().max_pages, terms.max_pages, "{id}");
    }
    // A crawl that is over is created again for a program that meets it, and for no other.
    let reopened = later.open(&crawl("cancelled"), terms, "producer", LONG, Past::Possible).await;
    assert!(reopened.is_err_and(|error| !error.is_temporary()), "it stays cancelled");
}

async fn status(records: &RedisRecords, id: &str) -> CrawlState {
    records.crawl_stats(&crawl(id).id).await.unwrap().unwrap().status
}

async fn is_blocked(hosts: &RedisHosts, host: &HostKey) -> bool {
    hosts.host(host).await.unwrap().is_some_and(|state| state.blocked.is_some())
}

#[tokio::test]
async fn what_was_ordered_holds_in_a_redis_that_has_lost_its_last_second() {
    let vhost = VirtualHost::new().await;
    let mut redis = OwnRedis::start().await;
    let (records, hosts) = store_on(&vhost, redis.url.clone()).await;
    for id in ["paused", "resumed", "cancelled"] {
        records.open(&crawl(id), Terms::default(), "producer", LONG, Past::None).await.unwrap();
    }
    let [bad, good] = ["bad.example", "good.example"].map(HostKey::from_text);
    records.pause(&crawl("resumed")).await.unwrap();
    hosts.block(&good).await.unwrap();
    redis.save().await;
    records.pause(&crawl("paused")).await.unwrap();
    records.resume(&crawl("resumed")).await.unwrap();
    records.cancel(&crawl("cancelled")).await.unwrap();
    hosts.block(&bad).await.unwrap();
    hosts.unblock(&good).await.unwrap();
    redis.restart().await;

    let (records, hosts) = store_on(&vhost, redis.url.clone()).await;
    assert_eq!(status(&records, "cancelled").await, CrawlState::Running, "it is forgotten");
    records.sweep(&"w".parse().unwrap()).await.unwrap();
    assert_eq!(status(&records, "paused").await, CrawlState::Paused);
    assert_eq!(status(&records, "resumed").await, CrawlState::Running);
    assert_eq!(status(&records, "cancelled").await, CrawlState::Cancelled);
    assert!(is_blocked(&hosts, &bad).await && !is_blocked(&hosts, &good).await);

    // Later orders come after that, in a Redis that loses data once more.
    redis.save().await;
    records.resume(&crawl("paused")).await.unwrap();
    hosts.unblock(&bad).await.unwrap();
    redis.restart().await;
    let (records, hosts) = store_on(&vhost, redis.url.clone()).await;
    records.sweep(&"w".parse().unwrap()).await.unwrap();
    assert_eq!(status(&records, "paused").await, CrawlState::Running);
    assert!(!is_blocked(&hosts, &bad).await);
}

#[tokio::test]
async fn no_page_begins_and_no_order_is_taken_before_a_redis_knows_again_what_it_has_lost() {
    let vhost = VirtualHost::new().await;
    let mut redis = OwnRedis::start().await;
    let (records, _) = store_on(&vhost, redis.url.clone()).await;
    let (worker, url) = ("w".parse().unwrap(), CanonicalUrl::parse("http://site.example/").unwrap());
    let claim = |id| Claim { crawl: crawl(id), key: url.clone().into() };
    for id in ["started", "resumed"] {
        let lease = records.open(&crawl(id), Terms::default(), "producer", LONG, Past::None).await.unwrap();
        records.admit(&lease, &[NewWork::seed(url.clone(), Lane::Bulk)]).await.unwrap();
        records.claim(&worker, &[Message::seed(url.clone(), crawl(id), Lane::Bulk)]).await.unwrap();
    }
    assert_eq!(records.start(&worker, &[claim("resumed")]).await.unwrap(), [StartReply::Go]);
    redis.save().await;
    for id in ["started", "resumed"] {
        records.cancel(&crawl(id)).await.unwrap();
    }
    redis.restart().await;

    let (records, _) = store_on(&vhost, redis.url.clone()).await;
    assert!(records.resume(&crawl("resumed")).await.is_err(), "it stays cancelled");
    redis.restart().await;
    let (records, _) = store_on(&vhost, redis.url.clone()).await;
    assert_eq!(records.start(&worker, &[claim("started")]).await.unwrap(), [StartReply::Lost]);
    assert_eq!(status(&records, "started").await, CrawlState::Cancelled);
}

#[tokio::test]
async fn a_crawl_that_finished_is_not_begun_anew_in_a_redis_that_forgets_it_before_its_end_was_announced() {
    let vhost = VirtualHost::new().await;
    let (records, _) = store(&vhost).await;
    let lease = records.open(&crawl("ended"), Terms::default(), "producer", LONG, Past::None).await.unwrap();
    records.close(lease, None).await.unwrap();
    let (later, _) = store(&vhost).await;
    let reopened = later.open(&crawl("ended"), Terms::default(), "producer", LONG, Past::Possible).await;
    assert!(reopened.is_err_and(|error| !error.is_temporary()));
}

#[tokio::test]
async fn what_was_ordered_is_written_again_when_somebody_deletes_the_stream_while_all_goes_on() {
    let vhost = VirtualHost::new().await;
    let (records, _) = store(&vhost).await;
    let worker = "w".parse().unwrap();
    records.open(&crawl("paused"), Terms::default(), "producer", LONG, Past::None).await.unwrap();
    records.pause(&crawl("paused")).await.unwrap();
    records.sweep(&worker).await.unwrap();
    vhost.delete("control").await;
    let restored = async {
        loop {
            // The program notices the end of its reading a moment later.
            records.sweep(&worker).await.unwrap();
            let (later, _) = store(&vhost).await;
            later.sweep(&worker).await.unwrap();
            if let Some(stats) = later.crawl_stats(&crawl("paused").id).await.unwrap() {
                return stats.status;
            }
        }
    };
    assert_eq!(timeout(LONG, restored).await.expect("it is restored"), CrawlState::Paused);
}

#[tokio::test]
async fn a_page_limit_counts_what_was_done_before_redis_was_emptied() {
    let vhost = VirtualHost::new().await;
    let (records, _) = store(&vhost).await;
    let (worker, crawl) = ("w".parse().unwrap(), crawl("limited"));
    let url = |number| CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap();
    let claims = |numbers: std::ops::Range<usize>| -> Vec<Claim> {
        numbers.map(|number| Claim { crawl: crawl.clone(), key: url(number).into() }).collect()
    };
    let messages = |numbers: std::ops::Range<usize>| -> Vec<Message> {
        numbers.map(|number| Message::seed(url(number), crawl.clone(), Lane::Bulk)).collect()
    };
    let terms = Terms { max_pages: NonZeroU64::new(5), ..Terms::default() };
    let lease = records.open(&crawl, terms, "producer", LONG, Past::None).await.unwrap();
    let new: Vec<NewWork> = (0..9).map(|number| NewWork::seed(url(number), Lane::Bulk)).collect();
    records.admit(&lease, &new).await.unwrap();
    records.claim(&worker, &messages(0..4)).await.unwrap();
    records.start(&worker, &claims(0..4)).await.unwrap();
    let done: Vec<Finish> =
        claims(0..4).into_iter().map(|claim| Finish::new(claim, Terminal::Done)).collect();
    records.finish(&worker, &done).await.unwrap();
    records.sweep(&worker).await.unwrap();

    let (later, _) = store(&vhost).await;
    // The first time the messages are requeued, so that Redis knows all of them.
    for _ in 0..2 {
        later.claim(&worker, &messages(4..6)).await.unwrap();
    }
    let started = later.start(&worker, &claims(4..6)).await.unwrap();
    assert_eq!(started, [StartReply::Go, StartReply::Awaited], "one of five is left");
}

/// Opens a crawl of at most `pages` pages, to read its sources.
async fn begin(records: &RedisRecords, id: &str, holder: &str, pages: u64, ttl: Duration) -> Lease {
    let terms = Terms { max_pages: NonZeroU64::new(pages), ..Terms::default() };
    records.open(&crawl(id), terms, holder, ttl, Past::None).await.unwrap()
}

async fn admit(records: &RedisRecords, lease: &Lease) {
    let url = CanonicalUrl::parse("http://site.example/").unwrap();
    records.admit(lease, &[NewWork::seed(url, Lane::Bulk)]).await.unwrap();
}

/// Returns whether discovery has ended, whether the crawl is incomplete, and its page limit, in a Redis that has
/// forgotten the crawl.
async fn as_logged(vhost: &VirtualHost, id: &str) -> (bool, bool, Option<u64>) {
    let (later, _) = store(vhost).await;
    later.sweep(&"w".parse().unwrap()).await.unwrap();
    let stats = later.crawl_stats(&crawl(id).id).await.unwrap().unwrap();
    let terms = later.terms(&crawl(id)).await.unwrap();
    (stats.discovered, stats.incomplete, terms.max_pages.map(NonZeroU64::get))
}

#[tokio::test]
async fn the_end_of_discovery_is_logged_with_the_terms_of_the_crawl_when_its_answer_was_lost() {
    let vhost = VirtualHost::new().await;
    let redis = servers::own_database().await;
    let (records, _) = store_on(&vhost, redis.clone()).await;
    let first = begin(&records, "closed", "one 0001", 5, LONG).await;
    let second = begin(&records, "closed", "two 0002", 7, LONG).await;
    admit(&records, &second).await;
    records.close(second, Some(SourcesRead::default())).await.unwrap();
    // A process that carries it out, and dies before it logs that.
    let dies = RedisRecords::new(link(redis).await, LONG, Dedup::Plain);
    dies.close(first.clone(), Some(SourcesRead::default())).await.unwrap();
    assert_eq!(as_logged(&vhost, "closed").await, (false, false, Some(7)), "nobody has logged it");
    records.close(first, Some(SourcesRead::default())).await.unwrap();
    assert_eq!(as_logged(&vhost, "closed").await, (true, false, Some(7)));
}

#[tokio::test]
async fn the_end_of_discovery_without_a_producer_is_logged() {
    let vhost = VirtualHost::new().await;
    let rabbitmq = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let mut settings = Settings { rabbitmq, ..Settings::default() };
    settings.recovery.lost_after = BRIEF;
    let (records, _) = records_of(&settings, own_link().await).unwrap();
    let dead = begin(&records, "left", "dead 0001", 7, BRIEF).await;
    admit(&records, &dead).await;
    let ended = async {
        while !records.crawl_stats(&crawl("left").id).await.unwrap().unwrap().discovered {
            records.sweep(&"w".parse().unwrap()).await.unwrap();
        }
    };
    timeout(LONG, ended).await.expect("the sweeper ends discovery");
    assert_eq!(as_logged(&vhost, "left").await, (true, true, Some(7)));
}

#[tokio::test]
async fn a_crawl_that_ends_with_its_discovery_stays_incomplete_in_a_redis_that_forgets_it() {
    let vhost = VirtualHost::new().await;
    let (records, _) = store(&vhost).await;
    let lease = begin(&records, "ended", "producer 0001", 7, LONG).await;
    let unread = SourcesRead { incomplete: true, ..SourcesRead::default() };
    records.close(lease, Some(unread)).await.unwrap();
    assert!(records.crawl_stats(&crawl("ended").id).await.unwrap().unwrap().empty);
    let (later, _) = store(&vhost).await;
    assert!(
        later.open(&crawl("ended"), Terms::default(), "producer", LONG, Past::Possible).await.is_err(),
        "it is over"
    );
    let stats = later.crawl_stats(&crawl("ended").id).await.unwrap().unwrap();
    assert_eq!((stats.status, stats.incomplete), (CrawlState::Finished, true));
    assert!(!stats.empty, "it is not known what came of it");
}

#[tokio::test]
async fn a_session_without_sources_changes_nothing_of_what_is_logged_of_them() {
    let vhost = VirtualHost::new().await;
    let (records, _) = store(&vhost).await;
    let reader = begin(&records, "read", "producer 0001", 7, LONG).await;
    admit(&records, &reader).await;
    records.close(reader, Some(SourcesRead::default())).await.unwrap();
    for pages in [7, 9] {
        let silent = begin(&records, "read", "api", pages, LONG).await;
        let (discovered, ..) = as_logged(&vhost, "read").await;
        assert_eq!(discovered, pages == 7, "another limit is logged");
        records.close(silent, None).await.unwrap();
        assert_eq!(as_logged(&vhost, "read").await, (true, false, Some(pages)));
    }
    let silent = begin(&records, "read", "api", 9, LONG).await;
    let reader = begin(&records, "read", "producer 0001", 9, LONG).await;
    records.close(reader, Some(SourcesRead::default())).await.unwrap();
    assert!(!as_logged(&vhost, "read").await.0, "its sources were read again");
    records.close(silent, None).await.unwrap();
    assert_eq!(as_logged(&vhost, "read").await, (true, false, Some(9)));
}
