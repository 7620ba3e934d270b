//! Several workers of one process, as behind an API that serves several runners.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use trawl_backends::rabbitmq::RabbitMq;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::names::CrawlRef;
use trawl_common::settings::{self, Items, Queues};
use trawl_engine::{Broker, Consumer, Delivery};
use trawl_testkit::servers::VirtualHost;

/// The time after which a call that hangs fails.
const LIMIT: Duration = Duration::from_secs(30);

/// Returns the only message that a worker with a window of one gets.
async fn next(consumer: &mut dyn Consumer) -> Delivery {
    timeout(LIMIT, consumer.next(9)).await.unwrap().unwrap().remove(0)
}

#[tokio::test]
async fn what_one_worker_acknowledges_counts_whoever_joined_or_left_since() {
    let vhost = VirtualHost::new().await;
    let settings = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    let broker = RabbitMq::connect(&settings, &Queues::default(), &Items::default()).await.unwrap();
    let (one, other): (Arc<dyn Broker>, Arc<dyn Broker>) = (broker.for_worker(), broker.for_worker());
    let urls = (0..4).map(|number| format!("https://site.example/{number}").parse().unwrap());
    let messages: Vec<_> = urls.map(|url| Message::seed(url, CrawlRef::adhoc(), Lane::Bulk)).collect();
    broker.publish(&messages).await.unwrap();
    let mut consumer = one.consume(1, 0).await.unwrap();
    let first = next(&mut *consumer).await;
    let mut others = other.consume(1, 0).await.unwrap();
    let taken = next(&mut *others).await;
    one.ack(&[first.receipt]).await.unwrap();
    let second = next(&mut *consumer).await;
    other.ack(&[taken.receipt]).await.unwrap();
    other.close().await.unwrap();
    one.ack(&[second.receipt]).await.unwrap();
    next(&mut *consumer).await;
}
