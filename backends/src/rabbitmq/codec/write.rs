//! Writing messages to be sent.

use std::borrow::Cow;

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use trawl_common::format::REQUESTS;
use trawl_common::frontier::Work;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::trace::{TRACE_PARENT, TRACE_STATE};
use trawl_common::names::CrawlRef;
use trawl_common::priority::Priority;
use trawl_common::spider::item::Item;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::url::Fingerprint;
use trawl_engine::Probe;

use super::super::newer::FORMAT_HEADER;
use super::super::seal::{Purpose, Seal};
use super::{BEFORE, PROBE};

const PERSISTENT: u8 = 2;

/// Returns the body of a message.
pub fn body(work: &Work) -> Cow<'_, [u8]> {
    match work {
        Work::Url(url) => url.as_str().as_bytes().into(),
        Work::Request(request) => request.payload().into_bytes().into(),
        Work::Task(task) => task.new.recipe.as_str().as_bytes().into(),
    }
}

/// Returns the properties and headers of a message with this body.
pub fn properties(message: &Message, body: &[u8], seal: &Seal) -> BasicProperties {
    let mut headers = crawl_headers(&message.crawl);
    put_text(&mut headers, "lane", message.lane.as_str());
    put_number(&mut headers, "depth", message.depth.into());
    if let Some(deadline) = message.deadline {
        put_number(&mut headers, "deadline", deadline.0);
    }
    if let Some(until) = message.until {
        put_number(&mut headers, "until", until.0);
    }
    if let Some(wake) = message.wake {
        put_number(&mut headers, "wake", wake.0);
    }
    if let Some(slot) = message.slot {
        put_number(&mut headers, "slot", slot.0);
    }
    if let Some((turn, looks)) = message.turn {
        put_number(&mut headers, "turn", turn.0);
        put_number(&mut headers, "looks", looks.into());
    }
    if let Some(since) = message.since {
        put_number(&mut headers, "since", since.0);
    }
    if let Some(referrer) = &message.referrer {
        put_text(&mut headers, "referrer", referrer.as_str());
    }
    if let Some(hop) = &message.hop {
        put_text(&mut headers, "hop", &hop.target());
        put_number(&mut headers, "hops", hop.count.into());
    }
    if message.refusals > 0 {
        put_number(&mut headers, "refusals", message.refusals.into());
    }
    if message.lapses > 0 {
        put_number(&mut headers, "lapses", message.lapses.into());
    }
    if message.left > 0 {
        put_number(&mut headers, "left", message.left.into());
    }
    match &message.work {
        Work::Url(_) => {}
        Work::Request(_) => put_number(&mut headers, FORMAT_HEADER, REQUESTS),
        Work::Task(task) => put_task(&mut headers, &task.new),
    }
    seal.sign(Purpose::Wake, body, &mut headers);
    let now = UnixMs::now();
    if let Some(trace) = &message.trace {
        put_text(&mut headers, TRACE_PARENT, &trace.parent_header());
        put_text(&mut headers, TRACE_STATE, &trace.state_header(now));
    }
    let (id, content_type) = match &message.work {
        Work::Url(url) => (url.fingerprint(), "text/plain"),
        // Older programs, which do not read such a body, recognise trawl's own messages by this.
        Work::Request(_) => (Fingerprint::of_bytes(body), "application/json"),
        Work::Task(task) => (task.key.id(), "text/plain"),
    };
    envelope(id, now).with_content_type(content_type.into()).with_headers(headers)
}

fn put_task(headers: &mut FieldTable, NewTask { unique, priority, retries, project, .. }: &NewTask) {
    if let Some(unique) = unique {
        put_text(headers, "unique", unique.as_str());
    }
    if *priority != Priority::default() {
        put_text(headers, "priority", &priority.to_string());
    }
    if let Some(retries) = retries {
        put_number(headers, "retries", (*retries).into());
    }
    if let Some(project) = project {
        put_text(headers, "project", project.as_str());
    }
}

/// Adds the expiration for a lane, where the broker may remove the message after its deadline. A message whose
/// deadline has already passed has to arrive, and to be settled.
pub(crate) fn expiring(
    properties: BasicProperties,
    deadline: Option<UnixMs>,
    now: UnixMs,
) -> BasicProperties {
    match deadline.filter(|&deadline| deadline > now) {
        Some(deadline) => properties.with_expiration(deadline.wait_from(now).as_millis().to_string().into()),
        None => properties,
    }
}

/// Returns the properties and headers of an item.
pub(crate) fn item_properties(item: &Item) -> BasicProperties {
    let mut headers = FieldTable::default();
    put_text(&mut headers, "crawl", item.crawl.as_str());
    put_text(&mut headers, "spider", item.spider.as_str());
    if let Some(kind) = &item.item {
        put_text(&mut headers, "item", kind);
    }
    BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_content_type("application/json".into())
        .with_message_id(item.id.as_str().into())
        .with_headers(headers)
}

/// Returns the properties and headers of a dead letter.
pub(crate) fn dead_letter_properties(dead_letter: &DeadLetter) -> BasicProperties {
    let mut headers = crawl_headers(&dead_letter.crawl);
    let cause = &dead_letter.cause;
    put_text(&mut headers, "reason", cause.reason.as_str());
    if let Some(class) = cause.class {
        put_text(&mut headers, "class", class.as_str());
    }
    if let Some(status) = cause.status {
        put_number(&mut headers, "status", status.into());
    }
    put_text(&mut headers, "error", &cause.error);
    put_number(&mut headers, "attempts", cause.attempts.into());
    if let Some(worker) = &cause.worker {
        put_text(&mut headers, "worker", worker.as_str());
    }
    put_number(&mut headers, "failed_at", cause.failed_at.0);
    let id = Fingerprint::from_text(&dead_letter.url);
    envelope(id, cause.failed_at).with_content_type("text/plain".into()).with_headers(headers)
}

fn envelope(id: Fingerprint, at: UnixMs) -> BasicProperties {
    BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_message_id(id.to_string().into())
        .with_timestamp(at.0 / 1000)
}

fn crawl_headers(crawl: &CrawlRef) -> FieldTable {
    let mut headers = FieldTable::default();
    put_text(&mut headers, "crawl", crawl.id.as_str());
    put_text(&mut headers, "spider", crawl.spider.as_str());
    headers
}

pub(super) fn put_text(headers: &mut FieldTable, name: &'static str, value: &str) {
    headers.insert(ShortString::from(name), AMQPValue::LongString(LongString::from(value)));
}

pub(super) fn put_number(headers: &mut FieldTable, name: &'static str, value: u64) {
    headers.insert(ShortString::from(name), AMQPValue::LongLongInt(value.min(i64::MAX as u64) as i64));
}

/// The body of a probe.
pub(crate) const PROBE_BODY: &[u8] = b"probe";

/// Returns the properties and headers of a probe through a queue.
pub(crate) fn probe_properties(probe: Probe, seal: &Seal) -> BasicProperties {
    let mut headers = FieldTable::default();
    put_number(&mut headers, PROBE, probe.times.sent.0);
    put_number(&mut headers, BEFORE, probe.times.previous.0);
    seal.sign(Purpose::Probe(probe.source), PROBE_BODY, &mut headers);
    BasicProperties::default().with_delivery_mode(PERSISTENT).with_headers(headers)
}
