use std::time::Duration;

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use trawl_common::format::{FORMAT, REQUESTS};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::{Hop, Malformed, Message};
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::trace::{TRACE_PARENT, Trace};
use trawl_common::frontier::{Request, Task, Work};
use trawl_common::names::CrawlRef;
use trawl_common::request::NewRequest;
use trawl_common::settings;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::url::{Fingerprint, MAX_URL_BYTES};
use trawl_engine::{Content, Probe, ProbeTimes};

use super::write::{put_number, put_text};
use super::*;
use crate::rabbitmq::newer::{self, FORMAT_HEADER};
use crate::rabbitmq::seal::{Purpose, Seal};

/// The properties with which a message is sent.
fn sent(message: &Message, seal: &Seal) -> BasicProperties {
    properties(message, &body(&message.work), seal)
}

fn delivery(body: &[u8], properties: BasicProperties) -> Delivery {
    let mut delivery = Delivery::mock(1, "".into(), "url_queue_ttl".into(), false, body.to_vec());
    delivery.properties = properties;
    delivery
}

fn malformed(body: &[u8], properties: BasicProperties) -> Malformed {
    match content(&delivery(body, properties), SourceQueue::Bulk, &Trust::default()) {
        Content::Malformed(malformed) => malformed,
        other => panic!("{other:?}"),
    }
}

fn full() -> Message {
    Message {
        work: Work::Url("https://example.com/a".parse().unwrap()),
        crawl: CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() },
        lane: Lane::Priority,
        depth: 3,
        deadline: Some(UnixMs(1_700_000_000_123)),
        until: Some(UnixMs(1_700_000_000_456)),
        wake: Some(UnixMs(1_700_000_000_321)),
        slot: Some(UnixMs(1_700_000_000_456)),
        turn: Some((UnixMs(1_700_000_000_789), 3)),
        since: Some(UnixMs(1_700_000_000_012)),
        referrer: Some("https://example.com/".parse().unwrap()),
        hop: Some(Hop { url: "https://example.com/b".parse().unwrap(), count: 2, as_get: false }),
        refusals: 3,
        lapses: 5,
        left: 4,
        is_ours: true,
        trace: None,
    }
}

#[test]
fn a_message_survives_the_wire() {
    let delivery = delivery(b"https://example.com/a", sent(&full(), &Seal::default()));
    assert_eq!(content(&delivery, SourceQueue::Bulk, &Trust::default()), Content::Message(full()));
}

/// With a header that this program knows nothing of, and one of the broker's.
fn newer(key: Option<&str>) -> (Delivery, Trust) {
    let key = key.map(|key| settings::FleetKey::try_from(key.repeat(32)).unwrap());
    let seal = Seal::new(&settings::RabbitMq { key, ..settings::RabbitMq::default() });
    let mut headers = FieldTable::default();
    put_number(&mut headers, FORMAT_HEADER, FORMAT + 1);
    put_text(&mut headers, "colour", "red");
    seal.sign(Purpose::Wake, b"https://example.com/a", &mut headers);
    headers.insert("x-death".into(), AMQPValue::FieldArray(Default::default()));
    let id = Fingerprint::from_text("https://example.com/a").to_string();
    let properties = BasicProperties::default().with_headers(headers).with_message_id(id.into());
    let trust = Trust { seal, ..Trust::default() };
    (delivery(b"https://example.com/a", properties.with_type("new".into())), trust)
}

#[test]
fn a_message_of_a_newer_format_is_passed_on_as_it_came() {
    for key in [None, Some("a")] {
        let (came, trust) = newer(key);
        let Content::Newer(newer) = content(&came, SourceQueue::Bulk, &trust) else { panic!("{key:?}") };
        let (properties, body) = newer::read(&newer).unwrap();
        assert_eq!((newer.format, &body), (FORMAT + 1, &came.data));
        let mut expected = came.properties.headers().clone().unwrap();
        expected = expected.inner().iter().filter(|(name, _)| name.as_str() != "x-death").fold(
            FieldTable::default(),
            |mut table, (name, value)| {
                table.insert(name.clone(), value.clone());
                table
            },
        );
        assert_eq!(properties, came.properties.clone().with_headers(expected));
        // It comes back as the same.
        let again = delivery(&body, properties);
        assert_eq!(content(&again, SourceQueue::Due, &trust), Content::Newer(newer));
    }
}

#[test]
fn a_format_that_a_stranger_writes_says_nothing() {
    let (mut came, trust) = newer(Some("a"));
    let mut headers = came.properties.headers().clone().unwrap();
    put_text(&mut headers, "colour", "blue");
    came.properties = came.properties.with_headers(headers);
    assert!(matches!(
        content(&came, SourceQueue::Bulk, &trust),
        Content::Message(Message { is_ours: false, .. })
    ));
    let (came, _) = newer(None);
    let unnamed = delivery(&came.data, came.properties.clone().with_message_id("7".into()));
    let read = content(&unnamed, SourceQueue::Bulk, &Trust::default());
    assert!(matches!(read, Content::Message(Message { is_ours: false, .. })), "{read:?}");
}

#[test]
fn a_trace_travels_beside_the_signature_and_a_strangers_says_nothing() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let key = settings::FleetKey::try_from("a".repeat(32)).unwrap();
    let seal = Seal::new(&settings::RabbitMq { key: Some(key), ..settings::RabbitMq::default() });
    let trust = Trust { seal, ..Trust::default() };
    let now = UnixMs::now();
    let trace = Trace::read(PARENT, Some("trawl=1:00f067aa0ba902b8"), now).map(Box::new);
    let traced = Message { trace: trace.clone(), ..full() };
    let signed = sent(&traced, &trust.seal);
    let read = |properties| match content(
        &delivery(b"https://example.com/a", properties),
        SourceQueue::Bulk,
        &trust,
    ) {
        Content::Message(message) => message,
        other => panic!("{other:?}"),
    };
    let arrived = read(signed.clone());
    let since = arrived.trace.as_ref().unwrap().since;
    assert!(since >= now, "{since}");
    let trace = trace.map(|trace| Box::new(Trace { since, ..*trace }));
    assert_eq!(arrived, Message { trace, ..full() });
    // The signature also holds for a message as the previous version wrote it, and for one whose trace somebody
    // removed.
    let names = |properties: &BasicProperties| -> Vec<String> {
        let headers = properties.headers().clone().unwrap_or_default();
        headers.inner().keys().map(|name| name.as_str().to_owned()).collect()
    };
    let plain = sent(&full(), &trust.seal);
    assert!(!names(&plain).contains(&TRACE_PARENT.to_owned()), "what is not traced carries nothing");
    assert_eq!(read(plain), full());
    let mut strange = FieldTable::default();
    put_text(&mut strange, TRACE_PARENT, PARENT);
    assert_eq!(read(BasicProperties::default().with_headers(strange)).trace, None);
}

#[test]
fn a_bare_url_from_any_client_is_a_message_of_the_adhoc_crawl() {
    let delivery = delivery(b" https://example.com/a\n", BasicProperties::default());
    let seed = Message::seed("https://example.com/a".parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk);
    let strangers = Message { is_ours: false, ..seed };
    assert_eq!(content(&delivery, SourceQueue::Bulk, &Trust::default()), Content::Message(strangers));
}

fn message_of(body: &[u8], properties: BasicProperties, source: SourceQueue, trust: &Trust) -> Message {
    match content(&delivery(body, properties), source, trust) {
        Content::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

fn sealed() -> Trust {
    let key = settings::FleetKey::try_from("a".repeat(32)).ok();
    let seal = Seal::new(&settings::RabbitMq { key, ..settings::RabbitMq::default() });
    Trust { seal, spiders: vec!["docs".parse().unwrap()] }
}

#[test]
fn a_task_is_read_as_it_was_written_also_when_it_comes_back() {
    let line =
        r#"{"recipe": "http://a.example/", "unique": "1", "priority": -2.5, "retries": 0, "project": "p"}"#;
    let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
    let task = Task::new(&crawl.spider, NewTask::from_line(line).unwrap());
    let id = task.key.id().to_string();
    let task = Message { depth: 2, ..Message::new(task.into(), crawl, Lane::Task) };
    for trust in [Trust::default(), sealed()] {
        for source in [SourceQueue::Task, SourceQueue::Due, SourceQueue::Expired] {
            let properties = sent(&task, &trust.seal);
            assert_eq!(properties.message_id().as_ref().map(ShortString::as_str), Some(&*id));
            assert_eq!(message_of(b"http://a.example/", properties, source, &trust), task);
        }
    }
    let plain = Task::new(&task.crawl.spider, NewTask::from_line(r#""a""#).unwrap());
    let plain = Message::new(plain.into(), task.crawl, Lane::Task);
    let is_ours = |body: &[u8]| {
        message_of(body, sent(&plain, &Seal::default()), SourceQueue::Task, &Trust::default()).is_ours
    };
    assert!(is_ours(b"a") && !is_ours(b"b"), "its id names another task");
}

#[test]
fn a_bare_recipe_from_any_client_is_a_task_of_the_spider_that_it_names() {
    let mut headers = FieldTable::default();
    put_text(&mut headers, "spider", "docs");
    put_text(&mut headers, "priority", "3");
    put_number(&mut headers, "retries", 1_000);
    for trust in [Trust::default(), sealed()] {
        let properties = BasicProperties::default().with_headers(headers.clone());
        let message = message_of(b"any text\n", properties, SourceQueue::Task, &trust);
        assert!(message.is_request() && message.lane == Lane::Task);
        assert_eq!(message.crawl, CrawlRef::adhoc_of("docs".parse().unwrap()));
        let task = message.work.task().unwrap();
        assert_eq!((task.new.recipe.as_str(), task.new.priority.get()), ("any text\n", 3.0));
        let is_known = trust.seal.is_set();
        assert_eq!(
            task.new.retries,
            (!is_known).then_some(1_000),
            "what strangers may not say counts for nothing"
        );
    }
    for (value, priority) in [(AMQPValue::LongInt(-7), -7.0), (AMQPValue::Double(2.5), 2.5)] {
        headers.insert("priority".into(), value);
        let properties = BasicProperties::default().with_headers(headers.clone());
        let message = message_of(b"any text", properties, SourceQueue::Task, &Trust::default());
        assert_eq!(message.work.task().unwrap().new.priority.get(), priority);
    }
    assert_eq!(malformed_in(SourceQueue::Task, b"").reason, "the recipe is empty");
    assert_eq!(malformed_in(SourceQueue::Task, &[0xff]).reason, "not UTF-8");
}

fn malformed_in(source: SourceQueue, body: &[u8]) -> Malformed {
    match content(&delivery(body, BasicProperties::default()), source, &Trust::default()) {
        Content::Malformed(malformed) => malformed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_queue_of_tasks_gave_up_is_a_task() {
    let mut death = FieldTable::default();
    put_text(&mut death, "reason", "delivery_limit");
    put_text(&mut death, "queue", "task_queue");
    let mut headers = FieldTable::default();
    headers.insert("x-death".into(), AMQPValue::FieldArray(vec![AMQPValue::FieldTable(death)].into()));
    let properties = BasicProperties::default().with_headers(headers);
    let message = message_of(b"recipe", properties, SourceQueue::Expired, &Trust::default());
    assert!(message.work.task().is_some() && message.deadline.is_none());
}

#[test]
fn the_smaller_of_two_times_to_live_is_the_deadline() {
    let deadline = |expiration: &str, headers: FieldTable| {
        let properties = BasicProperties::default().with_expiration(expiration.into()).with_headers(headers);
        match content(&delivery(b"https://example.com/a", properties), SourceQueue::Bulk, &Trust::default()) {
            Content::Message(message) => message.deadline,
            other => panic!("{other:?}"),
        }
    };
    let before = UnixMs::now();
    let expires = deadline("300000", FieldTable::default()).unwrap();
    assert!(expires >= before.plus(Duration::from_secs(300)), "{expires}");
    let mut headers = FieldTable::default();
    put_number(&mut headers, "deadline", before.0 + 1000);
    assert_eq!(deadline("300000", headers.clone()), Some(UnixMs(before.0 + 1000)));
    assert!(deadline("0", headers).unwrap() < UnixMs(before.0 + 1000));
    assert_eq!(deadline("soon", FieldTable::default()), None, "a broker refuses it; others may not");
}

#[test]
fn a_message_expires_in_its_lane_unless_its_deadline_has_passed() {
    let now = UnixMs(1_700_000_000_000);
    let expiring = |deadline| expiring(BasicProperties::default(), deadline, now).expiration().clone();
    assert_eq!(expiring(Some(UnixMs(now.0 + 300_000))), Some("300000".into()));
    assert_eq!(expiring(Some(now)), None);
    assert_eq!(expiring(None), None);
}

#[test]
fn what_was_given_back_too_often_has_not_expired() {
    let death = |reason: &str| {
        let mut death = FieldTable::default();
        put_text(&mut death, "reason", reason);
        AMQPValue::FieldTable(death)
    };
    let deadline = |deaths: Vec<AMQPValue>| {
        let mut headers = FieldTable::default();
        headers.insert("x-death".into(), AMQPValue::FieldArray(deaths.into()));
        let delivery = delivery(b"https://example.com/a", BasicProperties::default().with_headers(headers));
        match content(&delivery, SourceQueue::Expired, &Trust::default()) {
            Content::Message(message) => message.deadline,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(deadline(vec![death("delivery_limit"), death("expired")]), None);
    assert!(deadline(vec![death("expired"), death("delivery_limit")]).is_some());
    assert!(deadline(Vec::new()).is_some());
}

#[test]
fn a_bare_url_may_name_the_spider_that_it_is_for() {
    let mut headers = FieldTable::default();
    put_text(&mut headers, "spider", "docs");
    let delivery = delivery(b"https://example.com/a", BasicProperties::default().with_headers(headers));
    let Content::Message(message) = content(&delivery, SourceQueue::Bulk, &Trust::default()) else {
        panic!()
    };
    assert_eq!(message.crawl, CrawlRef::adhoc_of("docs".parse().unwrap()));
    assert!(message.is_request());
}

#[test]
fn whatever_crawl_of_strangers_a_message_names_it_is_for_that_of_its_spider() {
    for (crawl, spider) in [("adhoc", "docs"), ("adhoc.shop", "docs"), ("adhoc.shop", "default")] {
        let mut headers = FieldTable::default();
        put_text(&mut headers, "crawl", crawl);
        put_text(&mut headers, "spider", spider);
        let delivery = delivery(b"https://example.com/a", BasicProperties::default().with_headers(headers));
        let Content::Message(message) = content(&delivery, SourceQueue::Bulk, &Trust::default()) else {
            panic!()
        };
        assert_eq!(message.crawl, CrawlRef::adhoc_of(spider.parse().unwrap()));
    }
}

#[test]
fn a_url_that_an_older_version_sent_stays_as_it_is_in_its_record() {
    let old = "http://example.com./%7ea";
    let read = |properties| match content(
        &delivery(old.as_bytes(), properties),
        SourceQueue::Bulk,
        &Trust::default(),
    ) {
        Content::Message(message) => (message.work.to_string(), message.is_ours),
        other => panic!("{other:?}"),
    };
    let sent = BasicProperties::default().with_message_id(Fingerprint::from_text(old).to_string().into());
    assert_eq!(read(sent), (old.to_owned(), true));
    assert_eq!(read(BasicProperties::default()), ("http://example.com/~a".to_owned(), false));
}

#[test]
fn a_strangers_message_that_outlives_its_lane_without_a_deadline_has_met_the_lanes() {
    let bare = delivery(b"https://example.com/a", BasicProperties::default());
    let expired = match content(&bare, SourceQueue::Expired, &Trust::default()) {
        Content::Message(message) => message,
        other => panic!("{other:?}"),
    };
    assert!(expired.is_expired(UnixMs::now()));
    let with_deadline = delivery(b"https://example.com/a", sent(&full(), &Seal::default()));
    assert_eq!(content(&with_deadline, SourceQueue::Expired, &Trust::default()), Content::Message(full()));
    let ours = Message { deadline: None, ..full() };
    let of_trawl = delivery(&body(&ours.work), sent(&ours, &Seal::default()));
    assert_eq!(content(&of_trawl, SourceQueue::Expired, &Trust::default()), Content::Message(ours));
}

#[test]
fn a_probe_is_told_from_a_message() {
    let times = ProbeTimes { sent: UnixMs(1_700_000_030_123), previous: UnixMs(1_700_000_000_123) };
    let probe = Probe { source: SourceQueue::Due, times };
    let delivery = delivery(b"probe", probe_properties(probe, &Seal::default()));
    assert_eq!(content(&delivery, SourceQueue::Due, &Trust::default()), Content::Probe(probe));
}

#[test]
fn what_is_no_message_says_why() {
    let reason = |body: &[u8], name: &'static str, value: AMQPValue| {
        let mut headers = FieldTable::default();
        headers.insert(name.into(), value);
        let properties = BasicProperties::default().with_headers(headers);
        malformed(body, properties).reason
    };
    let url = b"https://example.com/a";
    assert_eq!(reason(&[0xff, 0xfe], "x", AMQPValue::Void), "not UTF-8");
    assert_eq!(reason(&[b'x'; 100_000], "x", AMQPValue::Void), "longer than 8192 bytes");
    assert_eq!(reason(url, "deadline", AMQPValue::Boolean(true)), "header deadline: not a whole number");
    assert_eq!(reason(url, "depth", AMQPValue::LongInt(-1)), "header depth: below zero");
    assert_eq!(reason(url, "crawl", AMQPValue::LongInt(7)), "header crawl: not text");
    assert!(reason(url, "crawl", AMQPValue::LongString("{x}".into())).starts_with("header crawl: `{x}`"));
    assert!(
        reason(url, "lane", AMQPValue::LongString("fast".into())).contains("`priority`, `bulk` or `task`")
    );
}

#[test]
fn what_is_shown_of_a_hostile_body_is_short_and_printable() {
    let body = [b"\x1b[2J", &[0xff; 20_000][..]].concat();
    let text = malformed(&body, BasicProperties::default()).text;
    assert!(text.len() <= MAX_URL_BYTES && !text.contains('\u{1b}'));
}

#[test]
fn what_is_shown_of_a_request_that_is_none_has_nothing_that_may_be_secret() {
    let url = r#""url":"https://example.com/q","body":"S3","headers":{"authorization":"S3"}"#;
    let shown = r#"{"authorisation":"…","body":"…","headers":"…","url":"https://example.com/q"}"#;
    let object = format!(r#"{{{url},"authorisation":"S3"}}"#);
    let cut = format!("{{{url}");
    let no_text = [cut.as_bytes(), b"\xff"].concat();
    let mut headers = FieldTable::default();
    headers.insert("deadline".into(), AMQPValue::Boolean(true));
    let properties = BasicProperties::default().with_headers(headers);
    for (body, properties, shown) in [
        (object.as_bytes(), BasicProperties::default(), shown),
        (POST.as_bytes(), properties, r#""method":"POST","url":"https://example.com/q"}"#),
        (cut.as_bytes(), BasicProperties::default(), "{…} (75 bytes)"),
        (&no_text[..], BasicProperties::default(), "{…} ("),
    ] {
        let Malformed { text, reason } = malformed(body, properties);
        assert!(text.contains(shown), "{text}");
        assert!(!text.contains("S3") && !reason.contains("S3"), "{text} {reason}");
    }
}

fn request(json: &str) -> Message {
    let new = NewRequest::from_json(json).unwrap();
    let request = Request::new(new.url.parse().unwrap(), new).unwrap();
    Message { work: request.into(), ..full() }
}

const POST: &str =
    r#"{"url":"https://example.com/q","method":"POST","headers":[["a","b"]],"body":"x","data":{"n":1}}"#;

#[test]
fn a_request_is_read_as_it_was_written_also_when_a_redirect_has_made_it_a_get() {
    let message = request(POST);
    let hop = message.hop.clone().map(|hop| Hop { as_get: true, ..hop });
    let redirected = Message { hop, lane: Lane::Bulk, ..message.clone() };
    for message in [message, redirected] {
        for trust in [Trust::default(), sealed()] {
            let properties = sent(&message, &trust.seal);
            assert_eq!(properties.content_type(), &Some("application/json".into()));
            assert_eq!(message_of(POST.as_bytes(), properties, SourceQueue::Due, &trust), message);
        }
    }
}

/// They look for its format where its body has the name that its `message_id` says.
#[test]
fn older_programs_know_a_request_for_one_of_a_newer_format() {
    let properties = sent(&request(POST), &Seal::default());
    let format =
        properties.headers().as_ref().and_then(|headers| headers.inner().get(FORMAT_HEADER).cloned());
    assert_eq!(format, Some(AMQPValue::LongLongInt(REQUESTS as i64)));
    let id = Fingerprint::from_text(POST).to_string();
    assert_eq!(properties.message_id().as_ref().map(ShortString::as_str), Some(&*id));
}

#[test]
fn the_message_of_a_url_is_what_it_was_before_there_were_requests() {
    let plain = Message::seed("https://example.com/a".parse().unwrap(), full().crawl, Lane::Bulk);
    assert_eq!(&*body(&plain.work), b"https://example.com/a");
    let properties = sent(&plain, &Seal::default());
    let names = |properties: &BasicProperties| -> Vec<String> {
        let headers = properties.headers().clone().unwrap_or_default();
        headers.inner().keys().map(|name| name.as_str().to_owned()).collect()
    };
    assert_eq!(names(&properties), ["crawl", "depth", "lane", "spider"]);
    assert_eq!(properties.content_type(), &Some("text/plain".into()));
    let all = "crawl deadline depth hop hops lane lapses left looks referrer refusals since slot spider turn until wake";
    assert_eq!(names(&sent(&full(), &Seal::default())).join(" "), all);
}

#[test]
fn a_json_object_from_any_client_is_a_request_of_the_spider_that_it_names() {
    let mut headers = FieldTable::default();
    put_text(&mut headers, "spider", "docs");
    for trust in [Trust::default(), sealed()] {
        let properties = BasicProperties::default().with_headers(headers.clone());
        let message = message_of(POST.as_bytes(), properties, SourceQueue::Priority, &trust);
        assert!(message.is_request() && message.lane == Lane::Priority);
        assert_eq!(message.crawl, CrawlRef::adhoc_of("docs".parse().unwrap()));
        assert_eq!(message.work, request(POST).work);
    }
    let urgent = r#"{"url": "https://example.com/a", "priority": 1, "retries": 1000000}"#;
    for trust in [Trust::default(), sealed()] {
        let message = message_of(urgent.as_bytes(), BasicProperties::default(), SourceQueue::Bulk, &trust);
        assert_eq!((message.lane, message.work.priority().get()), (Lane::Priority, 1.0));
        let is_known = trust.seal.is_set();
        assert_eq!(message.work.retries(), (!is_known).then_some(1_000_000), "as a stranger's task");
    }
    let plain = br#" {"url": "HTTPS://example.com/a#b"}"#;
    let plain = message_of(plain, BasicProperties::default(), SourceQueue::Bulk, &Trust::default());
    assert_eq!(plain.work, full().work, "a URL that says no more");
    for (body, why) in [
        (r#"{"url": "/a"}"#, "not an absolute URL"),
        (r#"{"url": "https://example.com/", "headers": {"host": "x"}}"#, "may not be set"),
        ("{", "not JSON"),
    ] {
        let reason = malformed(body.as_bytes(), BasicProperties::default()).reason;
        assert!(reason.contains(why), "{reason}");
    }
}
