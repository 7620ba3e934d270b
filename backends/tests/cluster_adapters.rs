//! The fleet's adapters keep every promise on clusters and over TLS, on real servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "adapters/support/engines.rs"]
mod engines;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use trawl_backends::rabbitmq::RabbitMq;
use trawl_backends::redis::{self, Link, RedisCache, RedisHosts, RedisJobs, RedisPages, RedisSessions};
use trawl_common::ports::{Cache, Error, ErrorKind, Jobs, PageHistories, Sessions};
use trawl_common::settings::{self, Dedup, Encoding, Items, Queues, Redis, ServerUrl};
use trawl_engine::Records;
use trawl_testkit::cluster;
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::conformance::control::ControlPorts;
use trawl_testkit::conformance::hosts::{Frugal, HostPorts};
use trawl_testkit::conformance::queue::Engine;
use trawl_testkit::servers::{self, VirtualHost};

use self::engines::{BRIEF, LONG, carrier_on, records_on};

/// A cluster has only one database. A test whose sweeps visit all crawls locks it for itself; the other tests share it.
static STORE: RwLock<()> = RwLock::const_new(());

type Shared = RwLockReadGuard<'static, ()>;
type Own = RwLockWriteGuard<'static, ()>;

async fn link() -> Link {
    redis::connect(&cluster::redis()).await.unwrap()
}

async fn control_ports_on(redis: &Redis, lost_after: Duration) -> ControlPorts {
    records_on(redis::connect(redis).await.unwrap(), redis.dedup, lost_after)
}

async fn frontier() -> (Shared, Arc<dyn Records>) {
    (STORE.read().await, control_ports_on(&cluster::redis(), LONG).await.frontier)
}

async fn brief_frontier() -> (Shared, Arc<dyn Records>) {
    (STORE.read().await, control_ports_on(&cluster::redis(), BRIEF).await.frontier)
}

async fn emptied() -> Own {
    let own = STORE.write().await;
    let () = ::redis::cmd("FLUSHALL").query_async(&mut link().await).await.unwrap();
    own
}

async fn control_ports() -> (Own, ControlPorts) {
    (emptied().await, control_ports_on(&cluster::redis(), LONG).await)
}

async fn brief_control_ports() -> (Own, ControlPorts) {
    (emptied().await, control_ports_on(&cluster::redis(), BRIEF).await)
}

/// Returns an engine on both clusters, with packed sets: their buckets are keys that scripts do not declare.
async fn carrier() -> ((VirtualHost, Own), Carrier) {
    let own = emptied().await;
    let (vhost, carrier) = carrier_on(link().await, cluster::rabbitmq_nodes(), Dedup::Packed).await;
    ((vhost, own), carrier)
}

async fn hosts() -> (Shared, HostPorts) {
    let hosts = Arc::new(RedisHosts::new(link().await, 100_000_000));
    (STORE.read().await, HostPorts { hosts: hosts.clone(), control: hosts })
}

async fn frugal() -> (Own, Frugal) {
    let own = emptied().await;
    (own, Frugal { hosts: Arc::new(RedisHosts::new(link().await, 1_000_000)), robots_bytes: 1_000_000 })
}

async fn cache() -> (Shared, Arc<dyn Cache>) {
    (STORE.read().await, Arc::new(RedisCache::new(link().await, Encoding::Zstd)))
}

async fn pages() -> (Shared, Arc<dyn PageHistories>) {
    (STORE.read().await, Arc::new(RedisPages::new(link().await)))
}

async fn sessions() -> (Shared, Arc<dyn Sessions>) {
    (STORE.read().await, Arc::new(RedisSessions::new(link().await)))
}

async fn jobs() -> (Own, Arc<dyn Jobs>) {
    let own = emptied().await;
    (own, Arc::new(RedisJobs::new(link().await, NonZeroU32::MIN)))
}

trawl_testkit::jobs_conformance!(jobs);
trawl_testkit::carrying_conformance!(carrier);
trawl_testkit::frontier_conformance!(frontier, brief_frontier);
trawl_testkit::control_conformance!(control_ports, brief_control_ports);
trawl_testkit::hosts_conformance!(hosts, frugal);
trawl_testkit::cache_conformance!(cache);
trawl_testkit::pages_conformance!(pages);
trawl_testkit::sessions_conformance!(sessions);

mod packed {
    use super::*;

    fn redis() -> Redis {
        Redis { dedup: Dedup::Packed, ..cluster::redis() }
    }

    async fn frontier() -> (Shared, Arc<dyn Records>) {
        (STORE.read().await, control_ports_on(&redis(), LONG).await.frontier)
    }

    async fn brief_frontier() -> (Shared, Arc<dyn Records>) {
        (STORE.read().await, control_ports_on(&redis(), BRIEF).await.frontier)
    }

    async fn control_ports() -> (Own, ControlPorts) {
        (emptied().await, control_ports_on(&redis(), LONG).await)
    }

    async fn brief_control_ports() -> (Own, ControlPorts) {
        (emptied().await, control_ports_on(&redis(), BRIEF).await)
    }

    trawl_testkit::frontier_conformance!(frontier, brief_frontier);
    trawl_testkit::control_conformance!(control_ports, brief_control_ports);
}

mod rabbitmq {
    use super::*;

    async fn queue(vhost: &VirtualHost) -> Arc<RabbitMq> {
        let url = vhost.url.clone();
        let broker =
            settings::RabbitMq { url, nodes: cluster::rabbitmq_nodes(), ..settings::RabbitMq::default() };
        Arc::new(RabbitMq::connect(&broker, &Queues::default(), &Items::default()).await.unwrap())
    }

    /// The frontier is in its own database, which only a Redis outside a cluster can have.
    async fn engine(lost_after: Duration) -> (VirtualHost, Engine) {
        let vhost = VirtualHost::new().await;
        let queue = queue(&vhost).await;
        let redis = Redis { url: servers::own_database().await, ..Redis::default() };
        let ControlPorts { frontier, control } = control_ports_on(&redis, lost_after).await;
        (vhost, Engine { queue, frontier, control })
    }

    async fn fixture() -> (VirtualHost, Engine) {
        engine(LONG).await
    }

    async fn brief() -> (VirtualHost, Engine) {
        engine(BRIEF).await
    }

    trawl_testkit::queue_conformance!(fixture);
    trawl_testkit::sweep_conformance!(brief);

    #[tokio::test]
    async fn a_queue_has_a_copy_on_each_of_three_nodes() {
        let vhost = VirtualHost::new().await;
        let _queue = queue(&vhost).await;
        let (leader, mut members) = vhost.members("url_queue_ttl").await;
        members.sort();
        assert_eq!(members, ["mq1@localhost", "mq2@localhost", "mq3@localhost"]);
        assert!(members.contains(&leader));
    }

    #[tokio::test]
    async fn a_node_that_is_away_is_passed_over() {
        let vhost = VirtualHost::new().await;
        let here = vhost.url.clone();
        let away = here.at(&"127.0.0.1:9".parse().unwrap());
        let broker = settings::RabbitMq {
            url: away,
            nodes: cluster::rabbitmq_nodes(),
            ..settings::RabbitMq::default()
        };
        RabbitMq::connect(&broker, &Queues::default(), &Items::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_cluster_is_found_through_any_of_its_nodes() {
    let away = cluster::redis().url.at(&"127.0.0.1:9".parse().unwrap());
    redis::connect(&Redis { url: away, ..cluster::redis() }).await.unwrap();
}

#[tokio::test]
async fn a_node_of_a_cluster_that_is_taken_for_a_server_says_what_to_set() {
    let reported =
        refused(redis::connect(&Redis { cluster: false, nodes: Vec::new(), ..cluster::redis() }).await);
    assert!(reported.contains("redis.cluster = true"), "{reported}");
}

#[tokio::test]
async fn a_server_that_is_taken_for_a_node_of_a_cluster_says_what_to_set() {
    let alone = Redis { url: servers::redis(), cluster: true, ..Redis::default() };
    let reported = refused(redis::connect(&alone).await);
    assert!(reported.contains("redis.cluster = false"), "{reported}");
}

mod tls {
    use super::*;

    /// The certificates are for 127.0.0.1.
    fn by_another_name(url: &ServerUrl) -> ServerUrl {
        ServerUrl::new(url.reveal().replace("127.0.0.1", "localhost"))
    }

    #[tokio::test]
    async fn redis_is_trusted_by_its_authority_alone() {
        for right in [cluster::redis_alone_tls(), cluster::redis_tls()] {
            redis::connect(&right).await.unwrap();

            let reported = refused(redis::connect(&Redis { ca: None, ..right.clone() }).await);
            assert!(reported.contains("UnknownIssuer") && reported.contains("redis.ca"), "{reported}");

            let url = by_another_name(&right.url);
            let reported = refused(redis::connect(&Redis { url, ..right }).await);
            assert!(reported.contains("not valid for name") && reported.contains("localhost"), "{reported}");
        }
    }

    #[tokio::test]
    async fn rabbitmq_is_trusted_by_its_authority_alone() {
        let queues = Queues::default();
        let right = cluster::rabbitmq_tls();
        RabbitMq::connect(&right, &queues, &Items::default()).await.unwrap();

        let reported = refused(
            RabbitMq::connect(&settings::RabbitMq { ca: None, ..right.clone() }, &queues, &Items::default())
                .await,
        );
        assert!(reported.contains("UnknownIssuer") && reported.contains("rabbitmq.ca"), "{reported}");

        let url = by_another_name(&right.url);
        let reported = refused(
            RabbitMq::connect(&settings::RabbitMq { url, ..right }, &queues, &Items::default()).await,
        );
        assert!(reported.contains("not valid for name") && reported.contains("localhost"), "{reported}");
    }
}

/// Returns the message of a permanent error; it must be on one line and without a password.
fn refused<T>(result: Result<T, Error>) -> String {
    let error = result.err().unwrap();
    let reported = error.to_string();
    assert_eq!(error.kind, ErrorKind::Refused, "{reported}");
    assert!(!reported.contains('\n') && !reported.contains("guest:guest"), "{reported}");
    reported
}
