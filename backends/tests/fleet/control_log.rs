//! What was ordered of crawls and hosts outlives RabbitMQ's loss of all data, and then that of Redis.

use std::num::NonZeroU64;
use std::sync::Arc;

use tokio::time::timeout;
use trawl_backends::fleet::records_of;
use trawl_backends::redis::{RedisHosts, RedisRecords};
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Control, HostControl, Stats, Terms};
use trawl_common::settings::{self, Settings};
use trawl_common::web::host::HostKey;
use trawl_engine::Records;
use trawl_testkit::servers::{self, VirtualHost};

use crate::support::{LONG, link};

/// Records and hosts on a Redis of their own, beside this RabbitMQ.
async fn store(vhost: &VirtualHost) -> (Arc<RedisRecords>, Arc<RedisHosts>) {
    let rabbitmq = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let settings = Settings { rabbitmq, ..Settings::default() };
    records_of(&settings, link(servers::own_database().await).await).unwrap()
}

/// A crawl of a spider of its own.
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
        // Its producer has not ended: else it would be finished.
        records.begin(&crawl(id), terms, "producer", LONG).await.unwrap();
    }
    records.pause(&crawl("paused")).await.unwrap();
    records.cancel(&crawl("cancelled")).await.unwrap();
    let host = HostKey::from_text("bad.example");
    hosts.block(&host).await.unwrap();
    records.sweep(&worker).await.unwrap();

    vhost.empty().await;
    let restored = async {
        loop {
            // It notices a connection's end a moment later.
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
    // What is over is made again for whoever meets it, and for no other.
    let reopened = later.open(&crawl("cancelled"), terms, "producer", LONG).await;
    assert!(reopened.is_err_and(|error| !error.is_temporary()), "it stays cancelled");
}
