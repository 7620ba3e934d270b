use std::sync::{Arc, Mutex};

use super::*;
use crate::frontier::lane::Lane;
use crate::frontier::message::Message;
use crate::time::UnixMs;

const NOW: UnixMs = UnixMs(1_700_000_000_123);
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_trace_survives_its_headers() {
    let trace = Trace::read(PARENT, None, NOW).unwrap();
    assert_eq!(
        (trace.id, trace.parent, trace.since),
        (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7, NOW)
    );
    let sent = UnixMs(NOW.0 - 5_000);
    for attempt in [None, Some(7)] {
        let trace = Trace { attempt, since: sent, ..trace };
        assert_eq!(trace.parent_header(), PARENT);
        let state = format!("other=1, {},more=2", trace.state_header(sent));
        assert_eq!(Trace::read(&trace.parent_header(), Some(&state), NOW), Some(trace));
    }
}

#[test]
fn what_is_no_trace_or_is_not_sampled_is_none() {
    let wrong = [
        "",
        "00",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
    ];
    for parent in wrong {
        assert_eq!(Trace::read(parent, None, NOW), None, "{parent}");
    }
    // Later versions may have more fields.
    assert!(Trace::read(&PARENT.replacen("00", "01", 1), None, NOW).is_some());
    for state in ["trawl=", "trawl=soon", "trawl=99999999999999999999", "trawl=1:x", "trawl=\u{1}"] {
        assert_eq!(Trace::read(PARENT, Some(state), NOW).unwrap().attempt, None, "{state}");
    }
    let ahead = Trace::read(PARENT, Some("trawl=9999999999999"), NOW).unwrap();
    assert_eq!(ahead.since, NOW, "nothing waits for less than no time");
}

#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<Span>>>);

impl Exporter for Collected {
    fn export(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }
}

/// All tests that need an exporter, in one test: a process has only one.
#[test]
fn a_url_has_one_trace_whose_attempts_are_linked() {
    let url = |number: u32| format!("https://site.example:8443/{number}?token=abc&q=1").parse().unwrap();
    let message = |number| Message::seed(url(number), CrawlRef::adhoc(), Lane::Bulk);
    // Without an exporter, nothing is traced.
    let mut before = [message(0)];
    Admission::begin().end(&mut before, None);
    take_up(&mut before[0]);
    assert_eq!(before[0].trace, None);

    let collected = Collected::default();
    start(0.5, Box::new(collected.clone()));
    let mut messages: Vec<Message> = (0..1_000).map(message).collect();
    Admission::begin().end(&mut messages, None);
    let traced = messages.iter().filter(|message| message.trace.is_some()).count();
    assert!((400..600).contains(&traced), "{traced} of 1000");
    // Another process traces the same ones, even if a message has lost its trace.
    for sent in &messages {
        let mut lost = Message { trace: None, ..sent.clone() };
        take_up(&mut lost);
        assert_eq!(lost.trace.is_some(), sent.trace.is_some());
    }
    collected.0.lock().unwrap().clear();

    let mut message = messages.into_iter().find(|message| message.trace.is_some()).unwrap();
    let root = message.trace.as_ref().unwrap().parent;
    sent(&message, "url_queue_ttl", UnixMs::now());
    for outcome in ["retry", "done"] {
        waited(&message, "due_queue");
        take_up(&mut message);
        let trace = message.trace.as_deref();
        step(trace, "schedule", Default::default());
        fetched(trace, message.work.url().unwrap(), 0, Ok(Some(200)), Default::default());
        Attempt::new(&message, outcome, None).unwrap().end(Default::default());
    }
    let spans = collected.0.lock().unwrap().clone();
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    let attempt = ["wait in due_queue", "schedule", "GET", "settle", "process"];
    assert_eq!(names, [&["send url_queue_ttl"], &attempt[..], &attempt[..]].concat());
    assert!(spans.iter().all(|span| span.trace == spans[0].trace));
    let [first, second] = [&spans[5], &spans[10]];
    assert_eq!([first.parent, second.parent], [Some(root); 2]);
    assert_eq!([first.retry_of, second.retry_of], [None, Some(first.id)]);
    assert!(spans[2..5].iter().all(|span| span.parent == Some(first.id)));
    let full = message.work.as_str().replace("abc", "REDACTED");
    for span in [&spans[3], first] {
        assert!(span.attributes.contains(&("url.full", full.clone().into())), "{:?}", span.attributes);
    }
    assert!(spans[3].attributes.contains(&("server.port", 8443.into())));
}
