//! Orders that have returned survive a replica that takes over.

use std::time::Duration;

use tokio::time::timeout;
use trawl_backends::redis::RedisRecords;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Control, Result, Terms};
use trawl_common::settings::Dedup;
use trawl_engine::{Admission, Past};
use trawl_testkit::faults::signal::Signal;
use trawl_testkit::own_redis::OwnRedis;

use crate::support::{LONG, link};

/// An order that is no part of the log, such as a replay, and one that is.
#[derive(Clone, Copy)]
enum Order {
    Logged,
    Unlogged,
}

impl Order {
    async fn give(self, records: &RedisRecords, crawl: &CrawlRef) -> Result<()> {
        match self {
            Self::Logged => records.pause(crawl).await,
            Self::Unlogged => records.await_durable(crawl).await,
        }
    }
}

#[tokio::test]
async fn an_order_waits_for_a_replica_that_is_behind() {
    let (master, replica) = (OwnRedis::start().await, OwnRedis::start().await);
    replica.replicate(&master).await;
    let records = RedisRecords::new(link(master.url.clone()).await, LONG, Dedup::Plain);
    let crawl = CrawlRef { id: "replicated".parse().unwrap(), spider: "replicated".parse().unwrap() };
    records.open(&crawl, Terms::default(), "producer", LONG, Past::None).await.unwrap();
    for order in [Order::Unlogged, Order::Logged] {
        replica.signal(Signal::Stop).await;
        let mut given = Box::pin(order.give(&records, &crawl));
        let early = timeout(Duration::from_millis(200), &mut given).await;
        replica.signal(Signal::Continue).await;
        assert!(early.is_err(), "it has returned before the replica had it");
        given.await.unwrap();
    }
}
