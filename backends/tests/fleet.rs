//! The fleet's adapters keep every promise of their ports, on real servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use trawl_backends::rabbitmq::RabbitMq;
use trawl_backends::redis::{self, Link, RedisCache, RedisFrontier, RedisHosts, RedisPages};
use trawl_common::ports::{Cache, Frontier, Pages};
use trawl_common::settings::{self, Dedup, Items, QueueType, Queues, Redis, ServerUrl};
use trawl_testkit::conformance::control::Helm;
use trawl_testkit::conformance::hosts::Doors;
use trawl_testkit::conformance::queue::Engine;
use trawl_testkit::conformance::random::{AfterCrash, obeys_the_model, steps};
use trawl_testkit::servers::{self, VirtualHost};

const LONG: Duration = Duration::from_secs(600);
const BRIEF: Duration = Duration::from_millis(200);

async fn link(url: ServerUrl) -> Link {
    redis::connect(&Redis { url, ..Redis::default() }).await.unwrap()
}

async fn helm_on(redis: ServerUrl, patience: Duration) -> Helm {
    let redis = Arc::new(RedisFrontier::new(link(redis).await, patience, Dedup::Plain));
    Helm { frontier: redis.clone(), control: redis }
}

async fn frontier() -> ((), Arc<dyn Frontier>) {
    ((), helm_on(servers::redis(), LONG).await.frontier)
}

async fn brief_frontier() -> ((), Arc<dyn Frontier>) {
    ((), helm_on(servers::redis(), BRIEF).await.frontier)
}

async fn helm() -> ((), Helm) {
    ((), helm_on(servers::own_database().await, LONG).await)
}

async fn brief_helm() -> ((), Helm) {
    ((), helm_on(servers::own_database().await, BRIEF).await)
}

async fn hosts() -> ((), Doors) {
    let hosts = Arc::new(RedisHosts::new(link(servers::redis()).await));
    ((), Doors { hosts: hosts.clone(), control: hosts })
}

async fn cache() -> ((), Arc<dyn Cache>) {
    ((), Arc::new(RedisCache::new(link(servers::redis()).await)))
}

async fn pages() -> ((), Arc<dyn Pages>) {
    ((), Arc::new(RedisPages::new(link(servers::redis()).await)))
}

async fn engine(kind: QueueType, patience: Duration) -> (VirtualHost, Engine) {
    let vhost = VirtualHost::new().await;
    let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let queues = Queues { kind, ..Queues::default() };
    let queue = Arc::new(RabbitMq::connect(&broker, &queues, &Items::default()).await.unwrap());
    let Helm { frontier, control } = helm_on(servers::own_database().await, patience).await;
    (vhost, Engine { queue, frontier, control })
}

trawl_testkit::frontier_conformance!(frontier, brief_frontier);
trawl_testkit::control_conformance!(helm, brief_helm);
trawl_testkit::hosts_conformance!(hosts);
trawl_testkit::cache_conformance!(cache);
trawl_testkit::pages_conformance!(pages);

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_calls_makes_the_books_disagree(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let redis = servers::own_database().await;
            let connect = async || Ok(helm_on(redis.clone(), LONG).await);
            obeys_the_model(connect, AfterCrash::Held, &steps).await.unwrap();
        });
    }
}

mod records {
    use trawl_common::lane::Lane;
    use trawl_common::message::Message;
    use trawl_common::names::{CrawlRef, SpiderName};
    use trawl_common::ports::{Heard, NewUrl, Terms};
    use trawl_common::time::UnixMs;
    use trawl_common::url::CanonicalUrl;

    use super::*;

    const PENDING: &str = "{crawled_urls}:pending:c";

    /// A frontier on which a URL with a deadline was admitted, and its record.
    async fn admitted() -> (Link, RedisFrontier, Message, String) {
        let link = link(servers::own_database().await).await;
        let frontier = RedisFrontier::new(link.clone(), LONG, Dedup::Plain);
        let crawl = CrawlRef { id: "c".parse().unwrap(), spider: SpiderName::default() };
        let lease = frontier.open(&crawl, Terms::default(), "producer", LONG).await.unwrap();
        let url = CanonicalUrl::parse("http://site.example/0").unwrap();
        let url = NewUrl { deadline: Some(UnixMs::now().plus(LONG)), ..NewUrl::seed(url, Lane::Bulk) };
        frontier.admit(&lease, std::slice::from_ref(&url)).await.unwrap();
        let message = url.message(&crawl);
        let text = read(&link, &message).await;
        (link, frontier, message, text)
    }

    async fn read(link: &Link, message: &Message) -> String {
        let mut read = ::redis::cmd("HGET");
        read.arg(PENDING).arg(message.url.as_str()).query_async(&mut link.clone()).await.unwrap()
    }

    #[tokio::test]
    async fn the_usual_record_is_an_instant_and_how_long_it_is_until_the_deadline() {
        let (_, _, message, text) = admitted().await;
        let (since, left) = text.strip_prefix('n').and_then(|rest| rest.split_once('+')).unwrap();
        let deadline = since.parse::<u64>().unwrap() + left.parse::<u64>().unwrap();
        assert_eq!(Some(UnixMs(deadline)), message.deadline);
    }

    #[tokio::test]
    async fn a_record_as_they_were_before_they_were_short_is_read() {
        let (link, frontier, message, _) = admitted().await;
        let mut write = ::redis::cmd("HSET");
        write.arg(PENDING).arg(message.url.as_str()).arg("p 5000 - 0 2 priority 3 7000 http://site.example/");
        let () = write.query_async(&mut link.clone()).await.unwrap();
        let worker = "w".parse().unwrap();
        let heard = frontier.hear(&worker, std::slice::from_ref(&message)).await.unwrap();
        assert_eq!(heard, [Heard::Take { attempts: 2, starts: 0, deadline: Some(UnixMs(7000)) }]);
        let text = read(&link, &message).await;
        assert!(text.starts_with('h') && text.ends_with(" p3 http://site.example/ w 0 2"), "{text}");
    }
}
