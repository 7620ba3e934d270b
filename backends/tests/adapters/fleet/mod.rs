//! The fleet's adapters keep every promise of their ports, on real servers.

mod control_log;
mod durability;
mod journal;
mod kept_crawls;
mod large;
mod newer;
mod readmission;
mod silent;
mod strangers;
mod topology;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use trawl_backends::rabbitmq::RabbitMq;
use trawl_backends::redis::{Link, RedisCache, RedisHosts, RedisPages, RedisRecords, RedisSessions};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{Cache, Hosts, PageHistories, RobotsEntry, Sessions};
use trawl_common::settings::{self, Dedup, Encoding, Items, QueueType, Queues};
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::Delivery;
use trawl_testkit::conformance::control::ControlPorts;
use trawl_testkit::conformance::hosts::{Frugal, HostPorts};
use trawl_testkit::conformance::queue::Engine;
use trawl_testkit::servers::{self, VirtualHost};

use crate::support::{BRIEF, LONG, control_ports_on, link, own_link};

keeps_promises!(trawl_common::settings::Dedup::Plain);

async fn hosts() -> ((), HostPorts) {
    let hosts = Arc::new(RedisHosts::new(link(servers::redis()).await, 100_000_000));
    ((), HostPorts { hosts: hosts.clone(), control: hosts })
}

async fn frugal() -> ((), Frugal) {
    let redis = own_link().await;
    ((), Frugal { hosts: Arc::new(RedisHosts::new(redis, 1_000_000)), robots_bytes: 1_000_000 })
}

async fn cache() -> ((), Arc<dyn Cache>) {
    ((), Arc::new(RedisCache::new(link(servers::redis()).await, Encoding::Zstd)))
}

async fn pages() -> ((), Arc<dyn PageHistories>) {
    ((), Arc::new(RedisPages::new(link(servers::redis()).await)))
}

async fn sessions() -> ((), Arc<dyn Sessions>) {
    ((), Arc::new(RedisSessions::new(link(servers::redis()).await)))
}

async fn engine(kind: QueueType, lost_after: Duration) -> (VirtualHost, Engine) {
    let vhost = VirtualHost::new().await;
    let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let queues = Queues { kind, ..Queues::default() };
    let queue = Arc::new(RabbitMq::connect(&broker, &queues, &Items::default()).await.unwrap());
    let ControlPorts { frontier, control } =
        control_ports_on(servers::own_database().await, Dedup::Plain, lost_after).await;
    (vhost, Engine { queue, frontier, control })
}

trawl_testkit::hosts_conformance!(hosts, frugal);
trawl_testkit::cache_conformance!(cache);

mod plain {
    use super::*;

    async fn cache() -> ((), Arc<dyn Cache>) {
        ((), Arc::new(RedisCache::new(link(servers::redis()).await, Encoding::Plain)))
    }

    trawl_testkit::cache_conformance!(cache);

    fn response(body: Vec<u8>) -> Response {
        Response {
            status: 200,
            headers: Default::default(),
            redirected_to: None,
            fetched_at: UnixMs(1_700_000_000_000),
            address: None,
            body: body.into(),
        }
    }

    #[tokio::test]
    async fn cached_responses_keep_to_a_budget_that_all_processes_share_and_the_oldest_go_first() {
        let link = own_link().await;
        let cache = || RedisCache::new(link.clone(), Encoding::Plain).within(1_000_000);
        let processes = [cache(), cache()];
        let url = |number: usize| format!("http://site.example/{number}").parse().unwrap();
        let response = response(vec![b'x'; 100_000]);
        for number in 0..30 {
            processes[number % 2].put(&url(number), &response, LONG).await.unwrap();
        }
        let mut kept = Vec::new();
        for number in 0..30 {
            if processes[0].get(&url(number)).await.unwrap().is_some() {
                kept.push(number);
            }
        }
        assert_eq!(kept, (21..30).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_page_in_the_cache_reads_well() {
        let link = own_link().await;
        let cache = RedisCache::new(link.clone(), Encoding::Plain);
        let url = "http://site.example/a".parse().unwrap();
        let response = response("<title>Hello</title>".into());
        cache.put(&url, &response, LONG).await.unwrap();
        let mut get = ::redis::cmd("GET");
        let stored: String =
            get.arg("content:http://site.example/a").query_async(&mut link.clone()).await.unwrap();
        assert!(stored.ends_with("}\n<title>Hello</title>"), "{stored}");
        let other = RedisCache::new(link, Encoding::Zstd);
        assert_eq!(other.get(&url).await.unwrap().unwrap().body, response.body, "whatever settings say");
    }
}
trawl_testkit::pages_conformance!(pages);
trawl_testkit::sessions_conformance!(sessions);

#[tokio::test]
async fn robots_files_that_lapse_soon_make_room_for_those_that_are_kept_for_long() {
    let hosts = RedisHosts::new(own_link().await, 1_000_000);
    let url = |number: usize| CanonicalUrl::parse(&format!("http://h{number}.example/")).unwrap();
    let key = |number| RobotsKey::origin(&url(number).origin());
    let body: Vec<u8> = std::iter::repeat_with(rand::random::<u8>).take(100_000).collect();
    let file = RobotsFile { status: 200, body: body.into(), failure: None };
    for number in 0..30 {
        let ttl = if number < 5 { 2 * LONG } else { LONG };
        hosts.keep_robots(&key(number), &file, ttl).await.unwrap();
    }
    let mut kept = Vec::new();
    for number in 0..30 {
        if hosts.robots(&key(number), LONG).await.unwrap() == RobotsEntry::Known(file.clone()) {
            kept.push(number);
        }
    }
    assert_eq!(kept, [0, 1, 2, 3, 4, 26, 27, 28, 29]);
}

/// Some are acknowledged one by one and some together; a task must not acknowledge what another one has acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_may_acknowledge_at_once() {
    const MESSAGES: usize = 3_000;
    let (_vhost, Engine { queue, .. }) = engine(QueueType::Classic, LONG).await;
    let crawl = CrawlRef::adhoc();
    let message = |number| {
        let url = CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap();
        Message::seed(url, crawl.clone(), Lane::Bulk)
    };
    queue.publish(&(0..MESSAGES).map(message).collect::<Vec<_>>()).await.unwrap();
    let mut consumer = queue.consume(32, 32).await.unwrap();
    let (mut received, mut acking) = (0, JoinSet::new());
    while received < MESSAGES {
        let batch = timeout(LONG, consumer.next(8)).await.unwrap().unwrap();
        received += batch.len();
        for Delivery { receipt, .. } in batch {
            let queue = Arc::clone(&queue);
            acking.spawn(async move { queue.ack(&[receipt]).await });
        }
    }
    while let Some(acked) = acking.join_next().await {
        acked.unwrap().unwrap();
    }
}

mod quorum {
    use super::*;

    async fn fixture() -> (VirtualHost, Engine) {
        engine(QueueType::Quorum, LONG).await
    }

    async fn brief() -> (VirtualHost, Engine) {
        engine(QueueType::Quorum, BRIEF).await
    }

    trawl_testkit::queue_conformance!(fixture);
    trawl_testkit::sweep_conformance!(brief);
    trawl_testkit::recovery_conformance!(brief);
}

mod classic {
    use super::*;

    async fn fixture() -> (VirtualHost, Engine) {
        engine(QueueType::Classic, LONG).await
    }

    async fn brief() -> (VirtualHost, Engine) {
        engine(QueueType::Classic, BRIEF).await
    }

    trawl_testkit::queue_conformance!(fixture);
    trawl_testkit::sweep_conformance!(brief);
}

mod requests {
    use trawl_common::frontier::ClaimReply;
    use trawl_common::frontier::lane::Lane;
    use trawl_common::frontier::message::Message;
    use trawl_common::frontier::outcome::Terminal;
    use trawl_common::names::CrawlRef;
    use trawl_common::ports::{Claim, Finish};
    use trawl_common::web::url::CanonicalUrl;
    use trawl_engine::{Claims, Settlements};

    use super::*;

    const ASKED: &str = "{crawled_urls}:seen:adhoc";
    const TAKE: ClaimReply = ClaimReply::Take { attempts: 0, starts: 0, deadline: None };

    async fn ask(frontier: &RedisRecords, number: usize) -> ClaimReply {
        let url = CanonicalUrl::parse(&format!("http://site.example/{number}")).unwrap();
        let message = Message { is_ours: false, ..Message::seed(url, CrawlRef::adhoc(), Lane::Bulk) };
        let worker = "w".parse().unwrap();
        let reply = frontier.claim(&worker, std::slice::from_ref(&message)).await.unwrap()[0];
        let finish = Finish::new(Claim::new(&message), Terminal::Done);
        frontier.finish(&worker, &[finish]).await.unwrap();
        reply
    }

    async fn asked(link: &Link) -> u64 {
        ::redis::cmd("ZCARD").arg(ASKED).query_async(&mut link.clone()).await.unwrap()
    }

    /// Makes all requested URLs older by this much.
    async fn age(link: &Link, by: Duration) {
        let mut connection = link.clone();
        let urls: Vec<String> =
            ::redis::cmd("ZRANGE").arg(ASKED).arg(0).arg(-1).query_async(&mut connection).await.unwrap();
        for url in urls {
            let mut add = ::redis::cmd("ZINCRBY");
            add.arg(ASKED).arg(-(by.as_millis() as i64)).arg(url);
            let _: f64 = add.query_async(&mut connection).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_url_is_taken_again_when_it_is_asked_for_again_after_a_while() {
        let link = own_link().await;
        let frontier = RedisRecords::new(link.clone(), LONG, Dedup::Plain).with_again(LONG);
        assert_eq!(ask(&frontier, 0).await, TAKE);
        age(&link, LONG - Duration::from_secs(60)).await;
        assert_eq!(ask(&frontier, 0).await, ClaimReply::Drop);
        age(&link, Duration::from_secs(60)).await;
        assert_eq!(ask(&frontier, 0).await, TAKE);
        let now_and_always = RedisRecords::new(link, LONG, Dedup::Plain).with_again(Duration::ZERO);
        assert_eq!(ask(&now_and_always, 0).await, TAKE);
    }

    #[tokio::test]
    async fn what_was_asked_for_long_ago_takes_no_memory() {
        let link = own_link().await;
        let frontier = RedisRecords::new(link.clone(), LONG, Dedup::Plain).with_again(LONG);
        for number in 0..40 {
            ask(&frontier, number).await;
        }
        assert_eq!(asked(&link).await, 40);
        age(&link, LONG).await;
        for number in 100..120 {
            ask(&frontier, number).await;
        }
        assert_eq!(asked(&link).await, 20, "each call forgets more than it learns");
        let left: i64 = ::redis::cmd("PTTL").arg(ASKED).query_async(&mut link.clone()).await.unwrap();
        assert!(
            left > 0 && left <= LONG.as_millis() as i64,
            "and when nobody asks any more, all goes: {left}"
        );
    }
}

mod records {
    use trawl_common::frontier::ClaimReply;
    use trawl_common::frontier::lane::Lane;
    use trawl_common::frontier::message::Message;
    use trawl_common::names::{CrawlRef, SpiderName};
    use trawl_common::ports::{Claim, NewWork, Terms};
    use trawl_common::time::UnixMs;
    use trawl_common::web::url::CanonicalUrl;
    use trawl_engine::{Admission, Claims, Outbox, Parking, Past, Settlements};

    use super::*;

    const PENDING: &str = "{crawled_urls}:pending:c";

    /// Returns a frontier to which a URL with a deadline was admitted, and its record.
    async fn admitted() -> (Link, RedisRecords, Message, String) {
        let link = own_link().await;
        let frontier = RedisRecords::new(link.clone(), LONG, Dedup::Plain);
        let crawl = CrawlRef { id: "c".parse().unwrap(), spider: SpiderName::default() };
        let lease = frontier.open(&crawl, Terms::default(), "producer", LONG, Past::Possible).await.unwrap();
        let url = CanonicalUrl::parse("http://site.example/0").unwrap();
        let url = NewWork { deadline: Some(UnixMs::now().plus(LONG)), ..NewWork::seed(url, Lane::Bulk) };
        frontier.admit(&lease, std::slice::from_ref(&url)).await.unwrap();
        let message = url.message(&crawl);
        let text = read(&link, &message).await;
        (link, frontier, message, text)
    }

    async fn read(link: &Link, message: &Message) -> String {
        let mut read = ::redis::cmd("HGET");
        read.arg(PENDING).arg(message.work.as_str()).query_async(&mut link.clone()).await.unwrap()
    }

    #[tokio::test]
    async fn the_usual_record_is_an_instant_and_how_long_it_is_until_the_deadline() {
        let (_, _, message, text) = admitted().await;
        let (since, left) = text.strip_prefix('n').and_then(|rest| rest.split_once('+')).unwrap();
        let deadline = since.parse::<u64>().unwrap() + left.parse::<u64>().unwrap();
        assert_eq!(Some(UnixMs(deadline)), message.deadline);
    }

    #[tokio::test]
    async fn the_message_of_a_parked_url_that_comes_too_early_waits_for_its_time_and_a_copy_is_dropped() {
        let (_, frontier, message, _) = admitted().await;
        let worker = "w".parse().unwrap();
        let reply = async |wake| {
            let message = Message { wake, ..message.clone() };
            frontier.claim(&worker, &[message]).await.unwrap()[0]
        };
        reply(None).await;
        let until = UnixMs::now().plus(LONG);
        let claim = Claim::new(&message);
        frontier.park(&worker, &[Parking { claim, until, failed: false }]).await.unwrap();
        frontier.confirm(&[Message { wake: Some(until), ..message.clone() }]).await.unwrap();
        assert_eq!(reply(Some(until)).await, ClaimReply::Wait { until });
        assert_eq!(reply(Some(until)).await, ClaimReply::Wait { until }, "and again");
        assert_eq!(
            reply(Some(UnixMs(until.0 - 1))).await,
            ClaimReply::Drop,
            "from when it was parked before"
        );
        assert_eq!(reply(None).await, ClaimReply::Drop, "from before it was parked");
    }

    #[tokio::test]
    async fn a_message_for_another_spiders_crawl_begins_none_that_no_sweep_finds() {
        let (link, frontier, message, _) = admitted().await;
        let worker = "w".parse().unwrap();
        let id = message.crawl.id.clone();
        let forged = CrawlRef { id: id.clone(), spider: "other".parse().unwrap() };
        let forged = Message { crawl: forged, ..message.clone() };
        assert_eq!(frontier.claim(&worker, &[forged]).await.unwrap(), [ClaimReply::Unknown]);
        let mut look = ::redis::cmd("EXISTS");
        look.arg("{crawled_urls:other}:crawl:c").arg("{crawled_urls:other}:pending:c");
        let left: u64 = look.query_async(&mut link.clone()).await.unwrap();
        assert_eq!(left, 0);
        let taken = frontier.claim(&worker, &[message]).await.unwrap();
        assert!(matches!(taken[..], [ClaimReply::Take { .. }]), "{taken:?}");
    }
}

mod vanishing {
    use trawl_common::names::WorkerId;
    use trawl_common::ports::{Heartbeat, Stats};
    use trawl_engine::Heartbeats;

    use super::*;

    fn beat(worker: &WorkerId) -> Heartbeat {
        Heartbeat { in_flight: 7, ..Heartbeat::idle(worker.clone()) }
    }

    #[tokio::test]
    async fn a_worker_that_says_nothing_any_more_has_vanished_unless_it_said_that_it_ends() {
        let redis = own_link().await;
        let records = RedisRecords::new(redis, LONG, Dedup::Plain);
        let [living, gone, ended] = ["w1", "w2", "w3"].map(|name| name.parse::<WorkerId>().unwrap());
        records.beat(&beat(&living), LONG).await.unwrap();
        records.beat(&beat(&gone), Duration::from_millis(1)).await.unwrap();
        records.beat(&beat(&ended), LONG).await.unwrap();
        records.leave(&ended).await.unwrap();
        let vanished = async { records.vanished().await.unwrap() };
        let looking = async {
            loop {
                let vanished = records.vanished().await.unwrap();
                if !vanished.is_empty() {
                    return vanished;
                }
            }
        };
        let all = timeout(Duration::from_secs(10), looking).await.unwrap();
        assert_eq!(all.iter().map(|one| (&one.worker, one.in_flight)).collect::<Vec<_>>(), [(&gone, 7)]);
        let lives: Vec<WorkerId> =
            records.workers().await.unwrap().into_iter().map(|state| state.worker).collect();
        assert_eq!(lives, std::slice::from_ref(&living));
        records.beat(&beat(&gone), LONG).await.unwrap();
        assert_eq!(vanished.await, [], "it speaks again");
    }
}
