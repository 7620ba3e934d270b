//! A fleet with a key.

use std::fs;

use futures::StreamExt;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable};
use tokio::time::timeout;
use trawl_common::web::url::Fingerprint;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

const KEY: (&str, &str) = ("TRAWL__RABBITMQ__KEY", "0123456789abcdef0123456789abcdef");

#[tokio::test]
async fn what_waits_when_a_key_is_set_for_the_first_time_is_fetched_once_and_in_its_own_crawl() {
    let fleet = Fleet::new().await;
    let site = Site::serve(40).await;
    let list: String = (0..40).map(|number| format!("{}\n", site.page(number))).collect();
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let produced = fleet.command(&["producer", "list.txt", &spider, &crawl, "-q"]).output().await.unwrap();
    assert_eq!(produced.status.code(), Some(0), "{}", String::from_utf8_lossy(&produced.stderr));

    let worker = fleet.worker(&[KEY]);
    let waited = timeout(LIMIT, fleet.command(&["wait", &fleet.name]).env(KEY.0, KEY.1).output()).await;
    assert_eq!(waited.unwrap().unwrap().status.code(), Some(0));
    assert!(site.log().values().all(|asked| *asked == 1), "{:?}", site.log());
    let items = fleet.items().await;
    assert_eq!(items.iter().filter(|item| item["crawl"] == fleet.name.as_str()).count(), 40);
    ends_well(worker).await;
}

#[tokio::test]
async fn a_stranger_keeps_his_url_and_his_forged_headers_do_nothing() {
    let fleet = Fleet::new().await;
    let site = Site::serve(2).await;
    let worker = fleet.worker(&[KEY]);
    crate::fleet::consumed(&fleet).await;
    let properties = format!(
        r#"{{"headers": {{"crawl": "{0}", "spider": "{0}", "probe": 9000000000000000}}}}"#,
        fleet.name
    );
    fleet.vhost.publish("url_queue_ttl", "probe", &properties).await;
    fleet.vhost.publish("url_queue_ttl", &site.page(0), &properties).await;
    fleet.vhost.publish("url_queue_ttl", &site.page(1), "{}").await;
    let counted = async {
        loop {
            let printed = fleet.command(&["status", "adhoc", "--json"]).output().await.unwrap();
            let stats: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap_or_default();
            if stats["done"] == 2 {
                return;
            }
        }
    };
    timeout(LIMIT, counted).await.unwrap();
    let items = fleet.items().await;
    assert!(items.iter().all(|item| item["crawl"] == "adhoc" && item["spider"] == "default"), "{items:?}");
    ends_well(worker).await;
}

#[tokio::test]
async fn what_proves_to_be_a_strangers_is_acknowledged_even_in_a_lane_that_acknowledges_nothing_later() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let worker = fleet.worker(&[KEY, ("TRAWL__QUEUES__PRIORITY__ACKS", "none")]);
    crate::fleet::consumed(&fleet).await;
    let url = site.page(0);
    let properties = format!(
        r#"{{"message_id": "{}", "headers": {{"crawl": "forgotten", "spider": "{}"}}}}"#,
        Fingerprint::from_text(&url),
        fleet.name
    );
    fleet.vhost.publish("priority_queue", &url, &properties).await;
    timeout(LIMIT, site.asked_for(1)).await.unwrap();
    ends_well(worker).await;
    let channel = crate::fleet::channel_of(&fleet).await;
    // A probe may be left there: the sweeper sends one now and then.
    while let Some(left) = channel.basic_get("priority_queue".into(), Default::default()).await.unwrap() {
        assert_ne!(left.data, url.as_bytes(), "it would come again to each worker that starts");
    }
}

/// Returns the messages in a stream so far.
async fn bodies(fleet: &Fleet, stream: &str) -> Vec<String> {
    fleet.vhost.publish(stream, "the end", "{}").await;
    let channel = crate::fleet::channel_of(fleet).await;
    channel.basic_qos(100, BasicQosOptions::default()).await.unwrap();
    let mut first = FieldTable::default();
    first.insert("x-stream-offset".into(), AMQPValue::LongString("first".into()));
    let options = BasicConsumeOptions::default();
    let mut consumer = channel.basic_consume(stream.into(), "test".into(), options, first).await.unwrap();
    let mut bodies = Vec::new();
    loop {
        let delivery = timeout(LIMIT, consumer.next()).await.unwrap().unwrap().unwrap();
        delivery.ack(BasicAckOptions::default()).await.unwrap();
        match String::from_utf8(delivery.data).unwrap() {
            end if end == "the end" => return bodies,
            body => bodies.push(body),
        }
    }
}

#[tokio::test]
async fn only_producers_and_workers_seal_the_log_of_what_was_ordered() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    fs::write(fleet.folder.path().join("list.txt"), site.page(0)).unwrap();
    let spider = format!("--spider={}", fleet.name);
    let commands = [&["producer", "list.txt", &spider, "-q"][..], &["dlq", "replay", "--yes"]];
    for words in commands {
        assert!(fleet.command(words).env(KEY.0, KEY.1).status().await.unwrap().success());
    }
    let records = bodies(&fleet, "control").await;
    let seals = records.iter().filter(|record| record.contains("sealed")).count();
    assert_eq!(seals, 1, "{records:?}");
}
