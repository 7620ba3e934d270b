//! A message that only newer programs understand goes through RabbitMQ unchanged.

use serde_json::json;
use tokio::time::timeout;
use trawl_common::format::FORMAT;
use trawl_common::web::url::Fingerprint;
use trawl_engine::{Consumer, Content};

use super::*;

const URL: &str = "http://site.example/a";

async fn next(consumer: &mut dyn Consumer) -> Delivery {
    timeout(Duration::from_secs(20), consumer.next(1)).await.unwrap().unwrap().remove(0)
}

#[tokio::test]
async fn a_message_that_only_newer_workers_read_comes_back_as_it_was_until_one_takes_it() {
    let (vhost, engine) = engine(QueueType::Quorum, LONG).await;
    let headers = json!({"v": FORMAT + 1, "crawl": "c", "lane": "bulk", "colour": {"hue": 7}});
    let properties = json!({
        "message_id": Fingerprint::from_text(URL).to_string(), "headers": headers, "type": "new", "delivery_mode": 2,
    });
    vhost.publish("url_queue_ttl", URL, &properties.to_string()).await;
    let mut consumer = engine.queue.consume(10, 10).await.unwrap();
    let mut came = Vec::new();
    for _ in 0..3 {
        let Delivery { content, receipt } = next(&mut *consumer).await;
        let Content::Newer(newer) = content else { panic!("{content:?}") };
        engine.queue.pass_on(std::slice::from_ref(&newer), engine.queue.wake(UnixMs::now())).await.unwrap();
        engine.queue.ack(&[receipt]).await.unwrap();
        came.push(newer);
    }
    let written = String::from_utf8_lossy(&came[0].message);
    assert!(["colour", "hue", "new"].iter().all(|part| written.contains(part)), "{written}");
    assert!(came.iter().all(|newer| *newer == came[0]), "{came:?}");
}

/// In a fleet without a key anybody may publish such a message.
#[tokio::test]
async fn what_a_broker_acts_on_is_not_passed_on() {
    let (vhost, engine) = engine(QueueType::Quorum, LONG).await;
    let headers = json!({"v": FORMAT + 1, "x-death": [1], "CC": ["failed_urls"], "BCC": ["failed_urls"]});
    let properties = json!({
        "message_id": Fingerprint::from_text(URL).to_string(), "headers": headers, "reply_to": "amq.rabbitmq.reply-to.x",
        "user_id": "guest",
    });
    vhost.publish("url_queue_ttl", URL, &properties.to_string()).await;
    let mut consumer = engine.queue.consume(10, 10).await.unwrap();
    let Content::Newer(newer) = next(&mut *consumer).await.content else { panic!("it is newer") };
    let written = String::from_utf8_lossy(&newer.message);
    assert!(
        ["x-death", "CC", "guest", "amq.rabbitmq"].iter().all(|part| !written.contains(part)),
        "{written}"
    );
    engine.queue.pass_on(&[newer], engine.queue.wake(UnixMs::now())).await.unwrap();
    assert!(matches!(next(&mut *consumer).await.content, Content::Newer(_)));
}
