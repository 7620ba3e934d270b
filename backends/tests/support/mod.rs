//! A frontier on a real Redis, for any form of the dedup.

use std::sync::Arc;
use std::time::Duration;

use trawl_backends::rabbitmq::{QueueDepths, RabbitMq};
use trawl_backends::redis::{self, Link, RedisPages, RedisRecords};
use trawl_common::settings::{self, Dedup, Items, Queues, Redis, ServerUrl};
use trawl_engine::Coordinator;
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::conformance::control::ControlPorts;
use trawl_testkit::servers::{self, VirtualHost};

pub(crate) const LONG: Duration = Duration::from_secs(600);
pub(crate) const BRIEF: Duration = Duration::from_millis(200);

pub(crate) async fn link(url: ServerUrl) -> Link {
    redis::connect(&Redis { url, ..Redis::default() }).await.unwrap()
}

pub(crate) async fn control_ports_on(redis: ServerUrl, dedup: Dedup, lost_after: Duration) -> ControlPorts {
    let redis = Arc::new(RedisRecords::new(link(redis).await, lost_after, dedup));
    ControlPorts { frontier: redis.clone(), control: redis }
}

/// Returns an engine on a database and a virtual host of its own.
pub(crate) async fn carrier_with(dedup: Dedup) -> (VirtualHost, Carrier) {
    let vhost = VirtualHost::new().await;
    let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let depths = QueueDepths::new(&broker).unwrap();
    let broker = RabbitMq::connect(&broker, &Queues::default(), &Items::default()).await.unwrap();
    let redis = link(servers::own_database().await).await;
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

/// Tests that an engine with this dedup keeps every promise, and so do its records alone.
macro_rules! keeps_promises {
    ($dedup:expr) => {
        mod promises {
            use std::sync::Arc;

            use trawl_engine::Records;
            use trawl_testkit::conformance::carrying::Carrier;
            use trawl_testkit::conformance::control::ControlPorts;
            use trawl_testkit::servers::{self, VirtualHost};

            use $crate::support::{BRIEF, LONG, carrier_with, control_ports_on};

            async fn carrier() -> (VirtualHost, Carrier) {
                carrier_with($dedup).await
            }

            async fn frontier() -> ((), Arc<dyn Records>) {
                ((), control_ports_on(servers::redis(), $dedup, LONG).await.frontier)
            }

            async fn brief_frontier() -> ((), Arc<dyn Records>) {
                ((), control_ports_on(servers::redis(), $dedup, BRIEF).await.frontier)
            }

            async fn control_ports() -> ((), ControlPorts) {
                ((), control_ports_on(servers::own_database().await, $dedup, LONG).await)
            }

            async fn brief_control_ports() -> ((), ControlPorts) {
                ((), control_ports_on(servers::own_database().await, $dedup, BRIEF).await)
            }

            trawl_testkit::carrying_conformance!(carrier);
            trawl_testkit::frontier_conformance!(frontier, brief_frontier);
            trawl_testkit::control_conformance!(control_ports, brief_control_ports);
        }
    };
}
