//! Queues as trawl declares them, and as others have declared them.

use lapin::options::{BasicGetOptions, BasicPublishOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use serde_json::json;
use tokio::time::timeout;
use trawl_common::frontier::Task;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::ErrorKind;
use trawl_common::settings::{Failed, Topology};
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_engine::{Broker, Consumer, Content, Delivery, Probe, ProbeTimes};

use super::*;

const URL: &str = "http://site.example/0";
/// The lanes and the letters as the prototype declares them.
const PROTOTYPES: [(&str, u64); 3] =
    [("url_queue_ttl", 3_600_000), ("priority_queue", 1_800_000), ("failed_urls", 86_400_000)];

async fn connect(vhost: &VirtualHost, queues: &Queues) -> trawl_common::ports::Result<RabbitMq> {
    let broker = settings::RabbitMq { url: vhost.url.clone(), ..settings::RabbitMq::default() };
    RabbitMq::connect(&broker, queues, &Items::default()).await
}

async fn channel(vhost: &VirtualHost) -> Channel {
    let connection = Connection::connect(vhost.url.reveal(), ConnectionProperties::default()).await;
    connection.unwrap().create_channel().await.unwrap()
}

async fn send(vhost: &VirtualHost, queue: &str) {
    send_by(vhost, "", queue).await;
}

async fn send_by(vhost: &VirtualHost, exchange: &str, key: &str) {
    let (channel, none) = (channel(vhost).await, BasicProperties::default());
    channel.confirm_select(Default::default()).await.unwrap();
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let sent =
        channel.basic_publish(exchange.into(), key.into(), options, URL.as_bytes(), none).await.unwrap();
    assert!(sent.await.unwrap().is_ack());
}

async fn next(consumer: &mut dyn Consumer) -> (Message, Delivery) {
    let taken = timeout(LONG, consumer.next(1)).await.unwrap().unwrap();
    match &taken[0].content {
        Content::Message(message) => (message.clone(), taken[0].clone()),
        other => panic!("{other:?}"),
    }
}

/// Waits until a queue has so many messages that nobody has taken.
async fn holds(vhost: &VirtualHost, queue: &str, messages: u32) {
    let channel = channel(vhost).await;
    let look = QueueDeclareOptions { passive: true, ..Default::default() };
    let looking = async {
        while channel.queue_declare(queue.into(), look, FieldTable::default()).await.unwrap().message_count()
            != messages
        {}
    };
    timeout(LONG, looking).await.unwrap();
}

/// RabbitMQ 4 gives up a message after 20 deliveries by default, and others may set such a policy.
#[tokio::test]
async fn what_was_given_back_too_often_is_handled_as_any_other_message() {
    let vhost = VirtualHost::new().await;
    vhost.set_policy(json!({"delivery-limit": 20})).await;
    let queue = connect(&vhost, &Queues::default()).await.unwrap();
    send(&vhost, "url_queue_ttl").await;
    let mut consumer = queue.consume(8, 8).await.unwrap();
    for _ in 0..30 {
        let (message, delivery) = next(&mut *consumer).await;
        assert_eq!((message.work.as_str(), message.deadline), (URL, None));
        queue.release(&[delivery.receipt]).await.unwrap();
    }
    drop((consumer, queue));
    holds(&vhost, "url_queue_ttl", 0).await;
    holds(&vhost, "expired_urls", 1).await;
}

#[tokio::test]
async fn queues_have_a_delivery_limit_that_a_crash_loop_does_not_reach() {
    let vhost = VirtualHost::new().await;
    connect(&vhost, &Queues::default()).await.unwrap();
    for queue in ["url_queue_ttl", "priority_queue", "due_queue", "expired_urls", "failed_urls"] {
        assert_eq!(vhost.queue(queue).await["arguments"]["x-delivery-limit"], 1_000_000, "{queue}");
    }
}

#[tokio::test]
async fn what_is_published_to_the_exchange_comes_once_from_an_inlet_that_dead_letters_nothing() {
    let vhost = VirtualHost::new().await;
    let queue = connect(&vhost, &Queues::default()).await.unwrap();
    for (lane, taken) in
        [("url_queue_ttl", Lane::Bulk), ("priority_queue", Lane::Priority), ("task_queue", Lane::Task)]
    {
        let arguments = &vhost.queue(&format!("urls.{lane}")).await["arguments"];
        assert_eq!(*arguments, json!({"x-queue-type": "quorum", "x-delivery-limit": 1_000_000}));
        vhost.publish_to("urls", lane, URL, "{}").await;
        holds(&vhost, lane, 0).await;
        holds(&vhost, &format!("urls.{lane}"), 1).await;
        let mut consumer = queue.consume(8, 8).await.unwrap();
        let (message, delivery) = next(&mut *consumer).await;
        assert_eq!(message.lane, taken);
        queue.ack(&[delivery.receipt]).await.unwrap();
        drop(consumer);
    }
}

#[tokio::test]
async fn how_long_dead_letters_are_kept_is_a_setting() {
    let vhost = VirtualHost::new().await;
    let queues = Queues { failed: Failed { ttl: Duration::from_secs(7 * 24 * 3600) }, ..Queues::default() };
    connect(&vhost, &queues).await.unwrap();
    assert_eq!(vhost.queue("failed_urls").await["arguments"]["x-message-ttl"], 604_800_000);
}

#[tokio::test]
async fn queues_of_others_are_taken_as_they_are_and_what_is_missing_of_trawls_own_is_declared() {
    let vhost = VirtualHost::new().await;
    for (queue, ttl) in PROTOTYPES {
        vhost.declare(queue, true, json!({"x-message-ttl": ttl})).await;
    }
    let arguments = async || {
        let mut found = Vec::new();
        for (queue, _) in PROTOTYPES {
            found.push(vhost.queue(queue).await["arguments"].clone());
        }
        found
    };
    let before = arguments().await;
    let passive = Queues { topology: Topology::Passive, ..Queues::default() };
    let queue = connect(&vhost, &passive).await.unwrap();
    let message = Message::seed(URL.parse().unwrap(), CrawlRef::adhoc(), Lane::Priority);
    queue.publish(std::slice::from_ref(&message)).await.unwrap();
    let mut consumer = queue.consume(8, 8).await.unwrap();
    assert_eq!(next(&mut *consumer).await.0, message);
    drop(consumer);
    send_by(&vhost, "urls", "url_queue_ttl").await;
    let mut consumer = queue.consume(8, 8).await.unwrap();
    next(&mut *consumer).await;
    drop(consumer);

    let conflict = connect(&vhost, &Queues::default()).await.err().unwrap().to_string();
    for part in ["url_queue_ttl", "priority_queue", "failed_urls", "queues.topology = \"passive\""] {
        assert!(conflict.contains(part), "{part}: {conflict}");
    }
    assert_eq!(arguments().await, before);
}

/// They would have other arguments than that program's own.
#[tokio::test]
async fn what_another_program_is_to_declare_is_left_to_it_and_named() {
    let vhost = VirtualHost::new().await;
    let passive = Queues { topology: Topology::Passive, ..Queues::default() };
    let refused = connect(&vhost, &passive).await.err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Refused);
    for part in ["no queue priority_queue", "for the other program to declare: start that first"] {
        assert!(refused.to_string().contains(part), "{part}: {refused}");
    }
}

#[tokio::test]
async fn a_queue_that_the_broker_has_no_place_for_does_not_count_as_declared() {
    let vhost = VirtualHost::new().await;
    for (queue, ttl) in PROTOTYPES {
        vhost.declare(queue, true, json!({"x-message-ttl": ttl})).await;
    }
    vhost.limit_queues(PROTOTYPES.len()).await;
    let passive = Queues { topology: Topology::Passive, ..Queues::default() };
    let error = connect(&vhost, &passive).await.err().unwrap().to_string();
    assert!(error.contains("limit"), "{error}");
}

#[tokio::test]
async fn beside_queues_of_others_tasks_are_taken_from_a_queue_of_their_own() {
    let vhost = VirtualHost::new().await;
    for (queue, ttl) in PROTOTYPES {
        vhost.declare(queue, true, json!({"x-message-ttl": ttl})).await;
    }
    let passive = Queues { topology: Topology::Passive, ..Queues::default() };
    let queue = connect(&vhost, &passive).await.unwrap();
    let task = Task::new(&SpiderName::default(), NewTask::from_recipe("a".parse().unwrap()));
    let message = Message::new(task.into(), CrawlRef::adhoc(), Lane::Task);
    queue.publish(std::slice::from_ref(&message)).await.unwrap();
    let mut consumer = queue.consume(8, 8).await.unwrap();
    assert_eq!(next(&mut *consumer).await.0, message);
}

#[tokio::test]
async fn queues_of_other_programs_are_listened_to_whenever_they_are_there() {
    let vhost = VirtualHost::new().await;
    vhost.declare("url_queue", false, json!({})).await;
    let listen = ["url_queue", "later"].map(|name| name.parse().unwrap()).to_vec();
    let queue = connect(&vhost, &Queues { listen, ..Queues::default() }).await.unwrap();
    let mut consumer = queue.consume(8, 8).await.unwrap();
    for name in ["url_queue", "later"] {
        vhost.declare(name, false, json!({})).await;
        send(&vhost, name).await;
        let (message, delivery) = next(&mut *consumer).await;
        assert_eq!((message.crawl, message.lane), (CrawlRef::adhoc(), Lane::Bulk));
        queue.ack(&[delivery.receipt]).await.unwrap();
    }
    let own = Queues { listen: vec!["failed_urls".parse().unwrap()], ..Queues::default() };
    let refused = connect(&vhost, &own).await.err().unwrap().to_string();
    assert!(refused.contains("failed_urls is a queue of trawl's own"), "{refused}");
}

#[tokio::test]
async fn a_message_whose_deadline_is_known_expires_by_itself() {
    let vhost = VirtualHost::new().await;
    let queue = connect(&vhost, &Queues::default()).await.unwrap();
    let deadline = Some(UnixMs::now().plus(Duration::from_secs(300)));
    let seed = Message::seed(URL.parse().unwrap(), CrawlRef::adhoc(), Lane::Priority);
    queue.publish(&[Message { deadline, ..seed }]).await.unwrap();
    let got = channel(&vhost).await.basic_get("priority_queue".into(), BasicGetOptions::default()).await;
    let ms: u64 =
        got.unwrap().unwrap().delivery.properties.expiration().clone().unwrap().as_str().parse().unwrap();
    assert!((290_000..=300_000).contains(&ms), "{ms}");
}

#[tokio::test]
async fn no_probe_waits_in_the_queue_of_tasks_for_workers_that_there_are_not() {
    let vhost = VirtualHost::new().await;
    let queue = connect(&vhost, &Queues::default()).await.unwrap();
    assert_eq!(vhost.queue("task_queue").await["arguments"]["x-message-ttl"], json!(null));
    let times = ProbeTimes { sent: UnixMs(2_000), previous: UnixMs(1_000) };
    assert_eq!(queue.probe(times).await.unwrap(), [Probe { source: SourceQueue::Task, times }]);
    let _consumer = queue.consume(8, 8).await.unwrap();
    assert_eq!(queue.probe(times).await.unwrap(), [], "it comes back to who takes tasks");
}

#[tokio::test]
async fn a_task_that_takes_long_holds_up_none_of_those_that_follow() {
    let vhost = VirtualHost::new().await;
    let queue = connect(&vhost, &Queues::default()).await.unwrap();
    for _ in 0..8 {
        send(&vhost, "task_queue").await;
    }
    let mut consumer = queue.consume(100, 4).await.unwrap();
    let (_, _slow) = next(&mut *consumer).await;
    for _ in 0..7 {
        let (_, quick) = next(&mut *consumer).await;
        queue.ack(&[quick.receipt]).await.unwrap();
    }
}
