//! The fleet's adapters keep every promise of their ports, on real servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use trawl_backends::rabbitmq::RabbitMq;
use trawl_backends::redis::{self, Link, RedisCache, RedisFrontier, RedisHosts};
use trawl_common::ports::{Cache, Frontier, Hosts, Queue};
use trawl_common::settings::{self, QueueType, Queues, Redis, ServerUrl};
use trawl_testkit::conformance::queue::Engine;
use trawl_testkit::servers::{self, VirtualHost};

async fn frontier() -> ((), Arc<dyn Frontier>) {
    ((), frontier_on(servers::redis()).await)
}

async fn frontier_on(redis: ServerUrl) -> Arc<dyn Frontier> {
    Arc::new(RedisFrontier::new(link(redis).await))
}

async fn link(url: ServerUrl) -> Link {
    redis::connect(&Redis { url, ..Redis::default() }).await.unwrap()
}

async fn hosts() -> ((), Arc<dyn Hosts>) {
    ((), Arc::new(RedisHosts::new(link(servers::redis()).await)))
}

async fn cache() -> ((), Arc<dyn Cache>) {
    ((), Arc::new(RedisCache::new(link(servers::redis()).await)))
}

/// Each queue type has a database of its own, so that the sweeps of its tests are its own.
async fn engine(kind: QueueType, database: u8) -> (VirtualHost, Engine) {
    let vhost = VirtualHost::new().await;
    let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let queues = Queues { kind, ..Queues::default() };
    let queue: Arc<dyn Queue> = Arc::new(RabbitMq::connect(&broker, &queues).await.unwrap());
    (vhost, Engine { queue, frontier: frontier_on(servers::redis_database(database)).await })
}

trawl_testkit::frontier_conformance!(frontier);
trawl_testkit::hosts_conformance!(hosts);
trawl_testkit::cache_conformance!(cache);

mod quorum {
    use super::*;

    async fn fixture() -> (VirtualHost, Engine) {
        engine(QueueType::Quorum, 1).await
    }

    trawl_testkit::queue_conformance!(fixture);
}

mod classic {
    use super::*;

    async fn fixture() -> (VirtualHost, Engine) {
        engine(QueueType::Classic, 2).await
    }

    trawl_testkit::queue_conformance!(fixture);
}
