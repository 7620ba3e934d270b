//! Messages of any client with permission to publish, on a real broker, in a fleet with a key.

use std::time::Duration;

use lapin::options::BasicPublishOptions;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use serde_json::{Value, json};
use tokio::time::timeout;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::{Hop, Message};
use trawl_common::names::CrawlRef;
use trawl_common::settings::{FleetKey, ServerUrl};
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Broker, Consumer, Content, Parked, Unproven};
use trawl_testkit::attacks::Section;

use super::*;

const URL: &str = "http://site.example/page";
const LIMIT: Duration = Duration::from_secs(60);

const SET_ASIDE: &str = "set aside: headers that cannot be read, or nested more than 32 deep";
const ALONE: &str = "a request for the URL alone";
const OF_A_SPIDER: &str = "a request for the URL alone, of the spider docs";
const PROBE: &str = "dropped and counted: a probe without the fleet's signature";
const MESSAGE: &str = "dropped and counted where that crawl is known, whose record sends the URL again; else a request for the URL alone";

/// A message published to the bulk lane: its body, and its properties as JSON.
struct Attack {
    name: &'static str,
    body: &'static str,
    properties: String,
    gets: &'static str,
}

fn nested(depth: usize, open: &str, close: &str) -> String {
    format!("{{\"headers\": {{\"a\": {}1{}}}}}", open.repeat(depth - 1), close.repeat(depth - 1))
}

fn attacks() -> Vec<Attack> {
    let attack = |name, properties: String, gets| Attack { name, body: URL, properties, gets };
    let forged = |name, headers: Value, gets| attack(name, json!({ "headers": headers }).to_string(), gets);
    let id = CanonicalUrl::parse(URL).unwrap().fingerprint().to_string();
    let ours =
        json!({"message_id": id, "headers": {"crawl": "c1", "spider": "docs-2", "depth": 0}}).to_string();
    let probe = json!({"headers": {"probe": 9_000_000_000_000_000_u64, "before": 0}}).to_string();
    let hop = json!({"crawl": "c1", "hop": "http://other.example/", "hops": 1});
    let limits =
        json!({"lane": "priority", "depth": 0, "deadline": 9_000_000_000_000_000_u64, "refusals": 60_000});
    let signed = json!({"crawl": "c1", "spider": "docs-2", "sig": "0123456789abcdef0123456789abcdef"});
    vec![
        attack("headers nested 40 deep", nested(40, "{\"a\":", "}"), SET_ASIDE),
        attack("headers nested 900 deep: a message of 6 KB", nested(900, "{\"a\":", "}"), SET_ASIDE),
        attack("headers nested 9,000 deep", nested(9_000, "{\"a\":", "}"), SET_ASIDE),
        attack("lists nested 20,000 deep in a header", nested(20_000, "[", "]"), SET_ASIDE),
        attack("headers nested 20 deep: honest", nested(20, "{\"a\":", "}"), ALONE),
        attack("a bare URL: honest", "{}".to_owned(), ALONE),
        Attack {
            name: "a probe from the year 287168",
            body: "probe",
            properties: probe.clone(),
            gets: PROBE,
        },
        attack("a page that says it is a probe", probe, ALONE),
        forged("a slot that nobody reserved", json!({"slot": 1, "until": 1, "wake": 1}), ALONE),
        forged("a turn in a host's line", json!({"turn": 1, "looks": 9}), ALONE),
        forged("another's crawl and spider", json!({"crawl": "c1", "spider": "docs-2"}), ALONE),
        forged("a redirect to another site, under a page of a crawl", hop, ALONE),
        forged("a lane, a depth, a deadline and refusals", limits, ALONE),
        forged("a referrer", json!({"referrer": "http://other.example/"}), ALONE),
        forged("a spider that leads out of the folder for items", json!({"spider": ".."}), ALONE),
        forged("one of ever new spiders", json!({"spider": "never-was-4711"}), ALONE),
        forged(
            "headers that are no text and no numbers",
            json!({"crawl": 7, "depth": "deep", "slot": []}),
            ALONE,
        ),
        forged("a spider that settings let strangers name: honest", json!({"spider": "docs"}), OF_A_SPIDER),
        forged("a death that the broker cannot read", json!({"x-death": "boo"}), ALONE),
        forged("the death of another queue", json!({"x-death": [{"reason": "delivery_limit"}]}), ALONE),
        forged("a signature by guess", signed, ALONE),
        attack("a message just as trawl writes them, without a signature", ours, MESSAGE),
    ]
}

fn reported(content: &Content) -> String {
    match content {
        Content::Message(message) => {
            let docs = CrawlRef::adhoc_of("docs".parse().unwrap());
            let bare = |crawl| Message {
                is_ours: false,
                ..Message::seed(CanonicalUrl::parse(URL).unwrap(), crawl, Lane::Bulk)
            };
            match message {
                message if *message == bare(CrawlRef::adhoc()) => ALONE.to_owned(),
                message if *message == bare(docs) => OF_A_SPIDER.to_owned(),
                other => format!("believed: {other:?}"),
            }
        }
        Content::Malformed(malformed) => format!("set aside: {}", malformed.reason),
        Content::Probe(_) => "a probe".to_owned(),
        Content::Newer(_) => "left to newer workers".to_owned(),
        Content::Unproven(Unproven::Probe) => PROBE.to_owned(),
        Content::Unproven(Unproven::Message { request, .. }) => {
            assert_eq!(reported(&Content::Message((**request).clone())), ALONE);
            MESSAGE.to_owned()
        }
    }
}

async fn by_keys(vhost: &VirtualHost, keys: &[&str]) -> RabbitMq {
    let mut keys = keys.iter().map(|key| FleetKey::try_from(key.repeat(32)).unwrap());
    let (url, key) = (vhost.url.clone(), keys.next());
    let broker = settings::RabbitMq { url, key, former_keys: keys.collect(), ..Default::default() };
    RabbitMq::connect(&broker, &Queues::default(), &Items::default()).await.unwrap()
}

async fn next(queue: &RabbitMq, consumer: &mut dyn Consumer) -> Content {
    let taken = timeout(LIMIT, consumer.next(1)).await.unwrap().unwrap().remove(0);
    queue.ack(&[taken.receipt]).await.unwrap();
    taken.content
}

#[tokio::test]
async fn what_strangers_publish_gains_them_nothing() {
    let vhost = VirtualHost::new().await;
    let queue = by_keys(&vhost, &["a"]).await.open_to_strangers(&["docs".parse().unwrap()]);
    let mut consumer = queue.consume(100, 100).await.unwrap();
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Messages");
    for Attack { name, body, properties, gets } in attacks() {
        vhost.publish("url_queue_ttl", body, &properties).await;
        assert_eq!(reported(&next(&queue, &mut *consumer).await), gets, "{name}");
        section.row(name, gets);
    }
    section.check();
}

#[tokio::test]
async fn what_the_fleet_says_counts_as_long_as_it_knows_the_key() {
    let vhost = VirtualHost::new().await;
    let url = |text: &str| CanonicalUrl::parse(text).unwrap();
    let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
    let message = Message {
        depth: 3,
        slot: Some(UnixMs(7)),
        deadline: Some(UnixMs::now().plus(LONG)),
        hop: Some(Hop { url: url("http://other.example/"), count: 1, as_get: false }),
        ..Message::seed(url(URL), crawl, Lane::Priority)
    };
    by_keys(&vhost, &["a"]).await.publish(std::slice::from_ref(&message)).await.unwrap();
    let new = by_keys(&vhost, &["b", "a"]).await;
    let mut consumer = new.consume(100, 100).await.unwrap();
    assert_eq!(next(&new, &mut *consumer).await, Content::Message(message.clone()), "a key that was changed");
    by_keys(&vhost, &["c"]).await.publish(std::slice::from_ref(&message)).await.unwrap();
    let unknown = next(&new, &mut *consumer).await;
    assert!(matches!(unknown, Content::Unproven(Unproven::Message { .. })), "{unknown:?}");
}

#[tokio::test]
async fn a_publisher_who_may_write_to_one_exchange_reaches_the_lanes_and_nothing_else() {
    let vhost = VirtualHost::new().await;
    let queue = by_keys(&vhost, &["a"]).await;
    let mut consumer = queue.consume(100, 100).await.unwrap();
    let publisher = vhost.writer("^urls$").await;
    let connection = Connection::connect(publisher.reveal(), ConnectionProperties::default()).await.unwrap();
    let publish = async |exchange: &str, key: &str| {
        let channel = connection.create_channel().await.unwrap();
        channel.confirm_select(Default::default()).await.unwrap();
        let (options, none) =
            (BasicPublishOptions { mandatory: true, ..Default::default() }, BasicProperties::default());
        let sent = channel.basic_publish(exchange.into(), key.into(), options, URL.as_bytes(), none).await;
        match sent {
            Ok(confirm) => confirm.await.is_ok_and(|confirmed| confirmed.take_message().is_none()),
            Err(_) => false,
        }
    };
    for lane in ["url_queue_ttl", "priority_queue"] {
        assert!(publish("urls", lane).await, "{lane}");
        assert!(matches!(next(&queue, &mut *consumer).await, Content::Message(_)), "{lane}");
    }
    let own = ["due_queue", "wait.10", "failed_urls", "expired_urls", "control", "items"];
    for beside in own.into_iter().chain(["urls.url_queue_ttl", "urls.task_queue"]) {
        assert!(!publish("urls", beside).await, "{beside}");
        assert!(!publish("", beside).await, "{beside}");
    }
    assert!(!publish("", "url_queue_ttl").await, "whoever may use the default exchange may write to all");
    assert!(!publish("failed_exchange", "failed").await);
}

/// Headers that a broker may fail on when it dead-letters a message.
const DEATHS: [&str; 8] = [
    r#"[1]"#,
    r#"[["a"]]"#,
    r#"[{}]"#,
    r#"[{"reason": 1, "queue": 2, "count": "x"}]"#,
    r#"[{"reason": "expired", "queue": "urls.url_queue_ttl"}, 1]"#,
    r#"{"a": 1}"#,
    r#""boo""#,
    r#"7"#,
];

/// Once a message with such a header has expired in a queue with at-least-once dead-lettering, RabbitMQ 3.10
/// permanently stops dead-lettering on the whole node.
#[tokio::test]
async fn no_death_that_a_stranger_has_written_stops_the_ladder() {
    let vhost = VirtualHost::new().await;
    let queue = by_keys(&vhost, &["a"]).await;
    let publisher = vhost.writer("^urls$").await;
    for lane in ["url_queue_ttl", "priority_queue", "task_queue"] {
        for death in DEATHS {
            let properties = format!(r#"{{"headers": {{"x-death": {death}}}, "expiration": "1"}}"#);
            // Often enough for a supervisor to give up.
            for _ in 0..6 {
                vhost.publish_to("urls", lane, URL, &properties).await;
            }
        }
    }
    let mut headers = FieldTable::default();
    headers.insert("x-death".into(), AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::LongInt(1)])));
    let hostile = BasicProperties::default().with_headers(headers);
    publish_as(&publisher, hostile.clone().with_expiration("1".into())).await;
    let mut consumer = queue.consume(100, 100).await.unwrap();
    publish_as(&publisher, hostile).await;
    let asked = until_readable(&queue, &mut *consumer).await;
    assert!(!asked.is_ours);
    let wake = queue.wake(UnixMs::now().plus(Duration::from_secs(1)));
    let own = Message { is_ours: true, wake: Some(wake.at), ..asked };
    queue.park(&[Parked { message: own.clone(), wake }]).await.unwrap();
    let back = loop {
        let message = until_readable(&queue, &mut *consumer).await;
        if message.is_ours {
            break message;
        }
    };
    assert_eq!(back.work, own.work, "what waits on the ladder comes back");
}

async fn publish_as(publisher: &ServerUrl, properties: BasicProperties) {
    let connection = Connection::connect(publisher.reveal(), ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(Default::default()).await.unwrap();
    let options = BasicPublishOptions::default();
    let sent =
        channel.basic_publish("urls".into(), "url_queue_ttl".into(), options, URL.as_bytes(), properties);
    assert!(sent.await.unwrap().await.unwrap().is_ack());
}

async fn until_readable(queue: &RabbitMq, consumer: &mut dyn Consumer) -> Message {
    loop {
        if let Content::Message(message) = next(queue, consumer).await {
            return message;
        }
    }
}
