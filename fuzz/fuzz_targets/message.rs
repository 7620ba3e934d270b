//! Messages of any publisher: a message that is understood survives a round trip, and any other is safe to show. If the
//! fleet has a key, only the body counts.
//!
//! The input looks like a message on a management page: the name of the queue, headers as `name=` with a letter for the
//! type and the value, a blank line, and the body.
#![no_main]

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldArray, FieldTable, ShortString};
use libfuzzer_sys::fuzz_target;
use trawl_backends::rabbitmq::codec::{self, Trust};
use trawl_backends::rabbitmq::seal::{Author, Purpose, Seal};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::names::CrawlRef;
use trawl_common::settings::{FleetKey, RabbitMq};
use trawl_common::web::url::MAX_URL_BYTES;
use trawl_engine::{Content, Unproven};

fuzz_target!(|input: &[u8]| {
    let (head, body) = split_at_blank_line(input);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let source = lines.next().and_then(source_by_name).unwrap_or(SourceQueue::Bulk);
    let mut headers = FieldTable::default();
    for (name, value) in lines.filter_map(header) {
        headers.insert(name, value);
    }
    let properties = BasicProperties::default().with_headers(headers);
    let delivered = delivery(body, properties);
    read(&delivered, source, &Trust::default());
    let key = FleetKey::try_from("0".repeat(32)).expect("a key");
    let seal = Seal::new(&RabbitMq { key: Some(key), ..RabbitMq::default() });
    read(&delivered, source, &Trust { seal, ..Trust::default() });
});

fn read(delivered: &Delivery, source: SourceQueue, trust: &Trust) {
    match codec::content(delivered, source, trust) {
        Content::Message(message) => {
            // The trace is replaced by that of the last publish.
            let message = Message { trace: None, ..message };
            let is_known_stranger =
                !matches!(trust.seal.author(Purpose::Wake, b"", &FieldTable::default()), Author::Anyone);
            if is_known_stranger {
                let bare = Message::new(message.work.clone(), CrawlRef::adhoc(), message.lane);
                let deadline = message.deadline;
                assert_eq!(message, Message { is_ours: false, deadline, ..bare });
            }
            let body = codec::body(&message.work);
            let properties = codec::properties(&message, &body, &trust.seal);
            let again = codec::content(&delivery(&body, properties), source, trust);
            // Messages that trawl publishes are marked as its own.
            assert_eq!(again, Content::Message(Message { is_ours: true, ..message }));
        }
        Content::Probe(probe) => assert_eq!(probe.source, source),
        Content::Newer(_) => panic!("no message has an id or a signature here"),
        Content::Unproven(unproven) => assert_eq!(unproven, Unproven::Probe, "no message has an id here"),
        Content::Malformed(malformed) => {
            assert!(malformed.text.len() <= MAX_URL_BYTES);
            assert!(malformed.reason.len() <= 1024, "{} bytes of reason", malformed.reason.len());
            for text in [malformed.text, malformed.reason] {
                assert!(!text.contains(char::is_control), "{text:?}");
            }
        }
    }
}

fn split_at_blank_line(input: &[u8]) -> (&[u8], &[u8]) {
    match input.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&input[..at], &input[at + 2..]),
        None => (&[], input),
    }
}

fn source_by_name(name: &str) -> Option<SourceQueue> {
    SourceQueue::ALL.into_iter().find(|source| source.as_str() == name)
}

fn delivery(body: &[u8], properties: BasicProperties) -> Delivery {
    let mut delivery = Delivery::mock(1, "".into(), "url_queue_ttl".into(), false, body.to_vec());
    delivery.properties = properties;
    delivery
}

fn header(line: &str) -> Option<(ShortString, AMQPValue)> {
    let (name, typed) = line.split_once('=')?;
    let mut value = typed.chars();
    let letter = value.next()?;
    Some((short(name)?, value_of(letter, value.as_str())?))
}

fn value_of(letter: char, text: &str) -> Option<AMQPValue> {
    Some(match letter {
        'S' => AMQPValue::LongString(text.into()),
        // Text in no encoding: each character's code is one byte.
        'X' => AMQPValue::LongString(text.chars().map(|c| c as u8).collect::<Vec<_>>().into()),
        's' => AMQPValue::ShortString(short(text)?),
        't' => AMQPValue::Boolean(text == "true"),
        'l' => AMQPValue::LongLongInt(text.parse().ok()?),
        'I' => AMQPValue::LongInt(text.parse().ok()?),
        'i' => AMQPValue::LongUInt(text.parse().ok()?),
        'U' => AMQPValue::ShortInt(text.parse().ok()?),
        'u' => AMQPValue::ShortUInt(text.parse().ok()?),
        'b' => AMQPValue::ShortShortInt(text.parse().ok()?),
        'B' => AMQPValue::ShortShortUInt(text.parse().ok()?),
        'T' => AMQPValue::Timestamp(text.parse().ok()?),
        'd' => AMQPValue::Double(text.parse().ok()?),
        'A' => AMQPValue::FieldArray(FieldArray::default()),
        'F' => AMQPValue::FieldTable(FieldTable::default()),
        'V' => AMQPValue::Void,
        _ => return None,
    })
}

/// AMQP's short strings have at most 255 bytes.
fn short(text: &str) -> Option<ShortString> {
    (text.len() <= 255).then(|| text.into())
}
