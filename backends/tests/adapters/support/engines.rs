//! Engines for the conformance suites, on any servers.

use std::sync::Arc;
use std::time::Duration;

use trawl_backends::rabbitmq::{QueueDepths, RabbitMq};
use trawl_backends::redis::{Link, RedisPages, RedisRecords};
use trawl_common::settings::{self, Dedup, Items, Node, Queues};
use trawl_engine::Coordinator;
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::conformance::control::ControlPorts;
use trawl_testkit::servers::VirtualHost;

pub(crate) const LONG: Duration = Duration::from_secs(600);
pub(crate) const BRIEF: Duration = Duration::from_millis(200);

/// Returns the records of this Redis.
pub(crate) fn records_on(redis: Link, dedup: Dedup, lost_after: Duration) -> ControlPorts {
    let redis = Arc::new(RedisRecords::new(redis, lost_after, dedup));
    ControlPorts { frontier: redis.clone(), control: redis }
}

/// Returns an engine on this Redis, and on a virtual host of its own of RabbitMQ, which has these nodes besides.
pub(crate) async fn carrier_on(redis: Link, nodes: Vec<Node>, dedup: Dedup) -> (VirtualHost, Carrier) {
    let vhost = VirtualHost::new().await;
    let broker = settings::RabbitMq { url: vhost.url.clone(), nodes, ..settings::RabbitMq::default() };
    let depths = QueueDepths::new(&broker).unwrap();
    let broker = RabbitMq::connect(&broker, &Queues::default(), &Items::default()).await.unwrap();
    let records = Arc::new(RedisRecords::new(redis.clone(), LONG, dedup).with_queues(depths));
    let pages = Arc::new(RedisPages::new(redis));
    let engine = Arc::new(Coordinator::new(records.clone(), Arc::new(broker), pages.clone()));
    let carrier = Carrier {
        engine,
        stats: records.clone(),
        control: records,
        pages,
        health: Arc::default(),
        claims_ahead: true,
    };
    (vhost, carrier)
}
