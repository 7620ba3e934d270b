use amq_protocol::frame::parsing::parse_frame;
use amq_protocol::frame::{AMQPContentHeader, AMQPFrame, gen_frame};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldArray, FieldTable};
use proptest::prelude::*;

use super::*;

/// Returns the output of a screen that gets `arrived` in pieces of this length.
fn screened(arrived: &[u8], pieces: usize) -> Vec<u8> {
    let (mut screen, mut out) = (Screen::default(), Vec::new());
    for piece in arrived.chunks(pieces) {
        screen.put(piece);
        let mut into = [0; 1000];
        loop {
            match screen.take(&mut into) {
                0 => break,
                count => out.extend_from_slice(&into[..count]),
            }
        }
    }
    out
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, 0, 1], &(payload.len() as u32).to_be_bytes()[..], payload, &[0xce]].concat()
}

/// A message's properties that are headers alone, as these bytes have them.
fn headers(entries: &[u8]) -> Vec<u8> {
    let head = [&60u16.to_be_bytes()[..], &[0; 10], &(1u16 << 13).to_be_bytes()].concat();
    frame(2, &[&head, &(entries.len() as u32).to_be_bytes()[..], entries].concat())
}

/// Headers of tables, or of arrays, within one another.
fn nested(kind: u8, depth: usize) -> Vec<u8> {
    let block = |entries: Vec<u8>| [&[kind], &(entries.len() as u32).to_be_bytes()[..], &entries].concat();
    let name: &[u8] = if kind == b'F' { b"\x01a" } else { b"" };
    let mut value = block(Vec::new());
    for _ in 1..depth {
        value = block([name, &value].concat());
    }
    [b"\x01a", &value[..]].concat()
}

fn read(bytes: &[u8]) -> AMQPFrame {
    let (rest, frame) = parse_frame(bytes).expect("the library reads it");
    assert!(rest.is_empty());
    frame
}

fn headers_of(frame: AMQPFrame) -> FieldTable {
    match frame {
        AMQPFrame::Header(_, AMQPContentHeader { properties, .. }) => properties.headers().clone().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn headers_nested_as_deep_as_a_frame_can_hold_are_one_that_says_so() {
    for (kind, level) in [(b'F', 7), (b'A', 5)] {
        for depth in [MAX_DEPTH, 900, (128 << 10) / level - 10] {
            let arrived = headers(&nested(kind, depth));
            let out = screened(&arrived, 1000);
            assert_eq!(out.len(), arrived.len());
            let headers = headers_of(read(&out));
            let names: Vec<&str> = headers.inner().keys().map(|name| name.as_str()).collect();
            assert_eq!(names, [UNREADABLE], "{depth}");
        }
        let arrived = headers(&nested(kind, MAX_DEPTH - 1));
        assert_eq!(screened(&arrived, 7), arrived, "what is not too deep stays");
        read(&arrived);
    }
}

#[test]
fn honest_frames_stay_as_they_are_however_they_arrive() {
    let mut death = FieldTable::default();
    death.insert("routing-keys".into(), AMQPValue::FieldArray(FieldArray::from(vec![AMQPValue::Void])));
    death.insert("time".into(), AMQPValue::Timestamp(1_700_000_000));
    let mut headers = FieldTable::default();
    headers.insert("x-death".into(), AMQPValue::FieldArray(vec![AMQPValue::FieldTable(death)].into()));
    headers.insert("größe".into(), AMQPValue::LongString(vec![0xff, 0xfe].into()));
    headers.insert("n".into(), AMQPValue::Double(0.5));
    let properties = BasicProperties::default()
        .with_content_type("text/plain".into())
        .with_headers(headers)
        .with_priority(3)
        .with_timestamp(7)
        .with_message_id("id".into());
    let header = AMQPContentHeader { class_id: 60, body_size: 3, properties };
    let mut buffer = vec![0; 1000];
    let (_, length) =
        gen_frame(&AMQPFrame::Header(1, header))(buffer.as_mut_slice().into()).unwrap().into_inner();
    let all = [&buffer[..length as usize], &frame(3, b"\x02\xce\xff"), &frame(8, b"")].concat();
    for pieces in [1, 2, 7, 8, 100, all.len()] {
        assert_eq!(screened(&all, pieces), all);
    }
    assert_eq!(screened(b"AMQP\0\0\x09\x01", 3), b"AMQP\0\0\x09\x01");
}

#[test]
fn names_that_are_no_text_are_made_some() {
    assert_eq!(screened(&headers(b"\x02a\xffV"), 5), headers(b"\x02a?V"));
    let delivered = |name: &[u8]| {
        let text = [&[name.len() as u8], name].concat();
        frame(1, &[&[0, 60, 0, 60], &text[..], &[0, 0, 0, 0, 0, 0, 0, 1, 0], &text, &text].concat())
    };
    assert_eq!(screened(&delivered(b"\xc3\x28"), 5), delivered(b"?("));
    read(&screened(&delivered(b"\xff"), 9));
    let id = |id: &[u8]| {
        let head = [&60u16.to_be_bytes()[..], &[0; 10], &(1u16 << 7).to_be_bytes()].concat();
        frame(2, &[&head[..], &[id.len() as u8], id].concat())
    };
    assert_eq!(screened(&id(b"\xe4"), 99), id(b"?"));
}

#[test]
fn headers_that_cannot_be_read_end_no_connection_whatever_their_length() {
    for length in 2..40 {
        let out = screened(&headers(&vec![b'z'; length]), 99);
        assert!(headers_of(read(&out)).inner().len() <= 2, "{length}");
    }
}

proptest! {
    #[test]
    fn whatever_headers_hold_the_library_reads_them(entries in prop::collection::vec(any::<u8>(), 2..300)) {
        read(&screened(&headers(&entries), 64));
    }

    #[test]
    fn what_looks_like_headers_is_read(
        parts in prop::collection::vec(prop::sample::select(vec![
            &b"\x01a"[..], b"F\0\0\0\x07", b"A\0\0\0\x05", b"V", b"t\x01", b"S\0\0\0\x02hi", b"x\0\0\0\0", b"D\0\0\0\0\0",
            b"\0", b"T\0\0\0\0\0\0\0\0", b"F\0\0\0\0", b"A\0\0\0\x01V",
        ]), 1..60)
    ) {
        let entries = parts.concat();
        prop_assume!(entries.len() > 1);
        let arrived = headers(&entries);
        let out = screened(&arrived, 64);
        read(&out);
        // Frames that the library would have read are unchanged.
        if parse_frame(&arrived[..]).is_ok() {
            prop_assert_eq!(out, arrived);
        }
    }
}

#[test]
fn the_brokers_version_is_noted_when_it_starts_a_connection() {
    let entry = |name: &str, kind: u8, value: &[u8]| {
        [&[name.len() as u8], name.as_bytes(), &[kind], &(value.len() as u32).to_be_bytes(), value].concat()
    };
    let properties = [
        entry("capabilities", b'F', &[1, b'a', b't', 1]),
        entry("product", b'S', b"RabbitMQ"),
        entry("version", b'S', b"3.10.8"),
    ]
    .concat();
    let payload = [&[0, 10, 0, 10, 0, 9][..], &(properties.len() as u32).to_be_bytes(), &properties].concat();
    let head = [&[1, 0, 0][..], &(payload.len() as u32).to_be_bytes()].concat();
    let mut screen = Screen::default();
    screen.put(&[&head[..], &payload, &[0xCE]].concat());
    assert_eq!(screen.version.as_deref(), Some("3.10.8"));
}
