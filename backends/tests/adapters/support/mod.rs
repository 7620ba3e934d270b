//! A frontier on a real Redis, for any form of the dedup.

mod engines;

use std::time::Duration;

use trawl_backends::redis::{self, Link};
use trawl_common::settings::{Dedup, Redis, ServerUrl};
use trawl_testkit::conformance::carrying::Carrier;
use trawl_testkit::conformance::control::ControlPorts;
use trawl_testkit::servers::{self, VirtualHost};

pub(crate) use self::engines::{BRIEF, LONG};
use self::engines::{carrier_on, records_on};

pub(crate) async fn link(url: ServerUrl) -> Link {
    redis::connect(&Redis { url, ..Redis::default() }).await.unwrap()
}

/// Returns a link to a database that no other test uses.
pub(crate) async fn own_link() -> Link {
    link(servers::own_database().await).await
}

pub(crate) async fn control_ports_on(redis: ServerUrl, dedup: Dedup, lost_after: Duration) -> ControlPorts {
    records_on(link(redis).await, dedup, lost_after)
}

/// Returns an engine on a database and a virtual host of its own.
pub(crate) async fn carrier_with(dedup: Dedup) -> (VirtualHost, Carrier) {
    carrier_on(own_link().await, Vec::new(), dedup).await
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
