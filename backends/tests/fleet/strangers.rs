//! What anybody may publish who may publish at all, on a real broker.

use std::time::Duration;

use tokio::time::timeout;
use trawl_common::ports::Content;
use trawl_testkit::attacks::Section;

use super::*;

const URL: &str = "http://site.example/page";

/// A page's URL published to the bulk lane with these headers, as JSON.
struct Attack {
    name: &'static str,
    headers: String,
    gets: &'static str,
}

fn nested(depth: usize, open: &str, close: &str) -> String {
    format!("{{\"a\": {}1{}}}", open.repeat(depth - 1), close.repeat(depth - 1))
}

fn attacks() -> Vec<Attack> {
    let attack = |name, headers: String, gets| Attack { name, headers, gets };
    let set_aside = "set aside: headers that cannot be read, or nested more than 32 deep";
    vec![
        attack("headers nested 40 deep", nested(40, "{\"a\":", "}"), set_aside),
        attack("headers nested 900 deep: a message of 6 KB", nested(900, "{\"a\":", "}"), set_aside),
        attack("headers nested 9,000 deep", nested(9_000, "{\"a\":", "}"), set_aside),
        attack("lists nested 20,000 deep in a header", nested(20_000, "[", "]"), set_aside),
        attack("headers nested 20 deep: honest", nested(20, "{\"a\":", "}"), "a request"),
    ]
}

fn told(content: &Content) -> String {
    match content {
        Content::Message(_) => "a request".to_owned(),
        Content::Malformed(malformed) => format!("set aside: {}", malformed.reason),
        Content::Probe(_) => "a probe".to_owned(),
    }
}

#[tokio::test]
async fn what_strangers_publish_gains_them_nothing() {
    let (vhost, engine) = engine(QueueType::Quorum, LONG).await;
    let mut consumer = engine.queue.consume(100).await.unwrap();
    let mut section = Section::new("Messages");
    for Attack { name, headers, gets } in attacks() {
        vhost.publish("url_queue_ttl", URL, &headers).await;
        let taken = timeout(Duration::from_secs(60), consumer.next(1)).await.expect(name).expect(name);
        assert_eq!(told(&taken[0].content), gets, "{name}");
        engine.queue.ack(&[taken[0].receipt]).await.unwrap();
        section.row(name, gets);
    }
    section.check();
}
