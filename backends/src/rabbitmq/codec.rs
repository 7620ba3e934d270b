//! Messages as AMQP knows them: the body is the URL, or the recipe of a task, and nothing else; the rest are headers.

use std::time::Duration;

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, LongString, ShortString};
use trawl_common::format;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::line::Line;
use trawl_common::frontier::message::{Hop, Malformed, Message};
use trawl_common::frontier::{Task, Work};
use trawl_common::jobs::Priority;
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::spider::item::Item;
use trawl_common::task::{InvalidRecipe, NewTask};
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_common::trace::{TRACE_PARENT, TRACE_STATE, Trace};
use trawl_common::web::url::{CanonicalUrl, Fingerprint, InvalidUrl, MAX_URL_BYTES};
use trawl_engine::{Content, Probe, ProbeTimes, Unproven};

use super::names;
use super::newer::{self, FORMAT_HEADER};
use super::screen::{DEEPEST, UNREADABLE};
use super::seal::{Author, Purpose, Seal};

const PERSISTENT: u8 = 2;
/// The header that makes a message a probe, with the instant at which it was sent, in ms.
const PROBE: &str = "probe";
/// When the probe before it was sent.
const BEFORE: &str = "before";

/// The body of a message.
pub fn body(work: &Work) -> &[u8] {
    match work {
        Work::Url(url) => url.as_str().as_bytes(),
        Work::Task(task) => task.new.recipe.as_str().as_bytes(),
    }
}

/// The properties and headers of a message.
pub fn properties(message: &Message, seal: &Seal) -> BasicProperties {
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
    if let Some(referrer) = &message.referrer {
        put_text(&mut headers, "referrer", referrer.as_str());
    }
    if let Some(hop) = &message.hop {
        put_text(&mut headers, "hop", hop.url.as_str());
        put_number(&mut headers, "hops", hop.count.into());
    }
    if message.refusals > 0 {
        put_number(&mut headers, "refusals", message.refusals.into());
    }
    if let Work::Task(task) = &message.work {
        put_task(&mut headers, &task.new);
    }
    seal.sign(Purpose::Wake, body(&message.work), &mut headers);
    let now = UnixMs::now();
    if let Some(trace) = &message.trace {
        put_text(&mut headers, TRACE_PARENT, &trace.parent_header());
        put_text(&mut headers, TRACE_STATE, &trace.state_header(now));
    }
    envelope(id_of(&message.work), now).with_headers(headers)
}

/// What the `message_id` of a message says that a program of trawl's sent.
fn id_of(work: &Work) -> Fingerprint {
    match work {
        Work::Url(url) => url.fingerprint(),
        Work::Task(task) => task.key.id(),
    }
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

/// The same for a lane, where the broker may take it out when its deadline has passed. One whose deadline has passed is to
/// arrive, and to be settled.
pub(super) fn expiring(
    properties: BasicProperties,
    deadline: Option<UnixMs>,
    now: UnixMs,
) -> BasicProperties {
    match deadline.filter(|&deadline| deadline > now) {
        Some(deadline) => properties.with_expiration(deadline.wait_from(now).as_millis().to_string().into()),
        None => properties,
    }
}

/// The properties and headers of an item.
pub(super) fn item_properties(item: &Item) -> BasicProperties {
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

/// The properties and headers of a dead letter.
pub(super) fn dead_letter_properties(dead_letter: &DeadLetter) -> BasicProperties {
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
    envelope(Fingerprint::of(&dead_letter.url), cause.failed_at).with_headers(headers)
}

fn envelope(id: Fingerprint, at: UnixMs) -> BasicProperties {
    BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_content_type("text/plain".into())
        .with_message_id(id.to_string().into())
        .with_timestamp(at.0 / 1000)
}

fn crawl_headers(crawl: &CrawlRef) -> FieldTable {
    let mut headers = FieldTable::default();
    put_text(&mut headers, "crawl", crawl.id.as_str());
    put_text(&mut headers, "spider", crawl.spider.as_str());
    headers
}

fn put_text(headers: &mut FieldTable, name: &'static str, value: &str) {
    headers.insert(ShortString::from(name), AMQPValue::LongString(LongString::from(value)));
}

fn put_number(headers: &mut FieldTable, name: &'static str, value: u64) {
    headers.insert(ShortString::from(name), AMQPValue::LongLongInt(value.min(i64::MAX as u64) as i64));
}

/// The body of a probe.
pub(super) const PROBE_BODY: &[u8] = b"probe";

/// The properties and headers of a probe through a line.
pub(super) fn probe_properties(probe: Probe, seal: &Seal) -> BasicProperties {
    let mut headers = FieldTable::default();
    put_number(&mut headers, PROBE, probe.times.sent.0);
    put_number(&mut headers, BEFORE, probe.times.previous.0);
    seal.sign(Purpose::Probe(probe.line), PROBE_BODY, &mut headers);
    BasicProperties::default().with_delivery_mode(PERSISTENT).with_headers(headers)
}

/// Whom a fleet believes what.
#[derive(Clone, Default)]
pub struct Trust {
    /// The keys by which it recognizes its own messages.
    pub seal: Seal,
    /// The spiders that a stranger may name, if strangers can be recognized.
    pub spiders: Vec<SpiderName>,
}

/// Reads what arrived from the queue of `line`.
pub fn content(delivery: &Delivery, line: Line, trust: &Trust) -> Content {
    let none = FieldTable::default();
    let headers = Headers(delivery.properties.headers().as_ref().unwrap_or(&none));
    if let Some(sent) = headers.number(PROBE).ok().flatten().map(UnixMs) {
        let previous = headers.number(BEFORE).ok().flatten().map(UnixMs).unwrap_or_default();
        match trust.seal.author(Purpose::Probe(line), &delivery.data, headers.0) {
            Author::Fleet | Author::Anyone => {
                return Content::Probe(Probe { line, times: ProbeTimes { sent, previous } });
            }
            Author::Stranger if delivery.data == PROBE_BODY => return Content::Unproven(Unproven::Probe),
            // Of what else a stranger sends the body counts, and it alone.
            Author::Stranger => {}
        }
    }
    message(delivery, headers, line, trust).unwrap_or_else(Content::Malformed)
}

fn message(
    delivery: &Delivery,
    headers: Headers<'_>,
    line: Line,
    trust: &Trust,
) -> Result<Content, Malformed> {
    let malformed = |reason: String| Malformed { text: shown(&delivery.data), reason };
    if headers.0.contains_key(UNREADABLE) {
        return Err(malformed(format!("headers that cannot be read, or nested more than {DEEPEST} deep")));
    }
    let body = std::str::from_utf8(&delivery.data).map_err(|_| malformed(InvalidUrl::NotUtf8.to_string()))?;
    let author = trust.seal.author(Purpose::Wake, &delivery.data, headers.0);
    let id = delivery.properties.message_id().as_ref();
    let is_named = |names: Fingerprint| id.is_some_and(|id| id.as_str() == names.to_string());
    let is_ours = |is_named: bool| match author {
        Author::Fleet => true,
        Author::Stranger => false,
        Author::Anyone => is_named,
    };
    if is_ours(is_named(Fingerprint::of(body)))
        && let Some(format) = headers.number(FORMAT_HEADER).map_err(malformed)?
        && format::is_newer(format)
    {
        return Ok(Content::Newer(newer::write_down(delivery, format)));
    }
    let lane = match author {
        Author::Stranger => lane_of(line, headers),
        Author::Fleet | Author::Anyone => {
            headers.parsed("lane").map_err(malformed)?.unwrap_or_else(|| lane_of(line, headers))
        }
    };
    let (work, is_named) = if lane == Lane::Task {
        let spider = headers.parsed("spider").ok().flatten().unwrap_or_default();
        let task = task(body, headers, spider).map_err(malformed)?;
        let is_named = is_named(task.key.id());
        (Work::from(task), is_named)
    } else {
        let is_named = is_named(Fingerprint::of(body));
        let url = if is_ours(is_named) { CanonicalUrl::recorded(body) } else { CanonicalUrl::parse(body) };
        (Work::Url(url.map_err(|error| malformed(error.to_string()))?), is_named)
    };
    if author == Author::Stranger {
        let request = strangers(work, headers, delivery, (line, lane), trust);
        return Ok(match headers.crawl().ok().filter(|crawl| is_named && !crawl.is_adhoc()) {
            Some(crawl) => Content::Unproven(Unproven::Message { request: Box::new(request), crawl }),
            None => Content::Message(request),
        });
    }
    let is_ours = is_ours(is_named);
    let read = || -> Result<Message, String> {
        let hops = headers.number("hops")?.unwrap_or(0);
        let looks = headers.number("looks")?.unwrap_or(0).try_into().unwrap_or(u8::MAX);
        // One of trawl's has waited for its host, and goes on.
        let expired = if is_ours { None } else { outlived(headers, line) };
        let deadlines = [headers.number("deadline")?.map(UnixMs), expiration(delivery)];
        Ok(Message {
            work,
            crawl: headers.crawl()?,
            lane,
            depth: headers.number("depth")?.unwrap_or(0).try_into().unwrap_or(u16::MAX),
            deadline: deadlines.into_iter().flatten().min().or(expired),
            until: headers.number("until")?.map(UnixMs),
            wake: headers.number("wake")?.map(UnixMs),
            slot: headers.number("slot")?.map(UnixMs),
            turn: headers.number("turn")?.map(|turn| (UnixMs(turn), looks)),
            referrer: headers.parsed("referrer")?,
            hop: headers.parsed("hop")?.map(|url| Hop { url, count: hops.try_into().unwrap_or(u8::MAX) }),
            is_ours,
            refusals: headers.number("refusals")?.unwrap_or(0).try_into().unwrap_or(u16::MAX),
            trace: headers.trace(),
        })
    };
    read().map(Content::Message).map_err(malformed)
}

/// The task whose recipe is this body.
fn task(body: &str, headers: Headers<'_>, spider: SpiderName) -> Result<Task, String> {
    let retries = headers.number("retries")?.map(u32::try_from).transpose();
    let new = NewTask {
        unique: headers.parsed("unique")?,
        priority: headers.priority()?.unwrap_or_default(),
        retries: retries.map_err(|_| "header retries: too high".to_owned())?,
        project: headers.parsed("project")?,
        ..NewTask::of(body.parse().map_err(|error: InvalidRecipe| error.to_string())?)
    };
    Ok(Task::new(&spider, new))
}

/// A stranger's message is its body and how long that is good, and for one of the spiders that settings let it name. Of a task it also
/// says what makes it one with others, and how urgent it is.
fn strangers(
    work: Work,
    headers: Headers<'_>,
    delivery: &Delivery,
    (line, lane): (Line, Lane),
    trust: &Trust,
) -> Message {
    let spider = headers.parsed("spider").ok().flatten().filter(|spider| trust.spiders.contains(spider));
    let crawl = CrawlRef::adhoc_of(spider.unwrap_or_default());
    let work = match work {
        Work::Url(url) => Work::Url(url),
        Work::Task(task) => {
            let new = NewTask { retries: None, project: None, ..task.new.clone() };
            Task::new(&crawl.spider, new).into()
        }
    };
    let deadline = expiration(delivery).or_else(|| outlived(headers, line));
    Message { deadline, is_ours: false, ..Message::of(work, crawl, lane) }
}

/// When a stranger's message has expired that outlived its lane: it has met the lane's deadline, unless it was given back too
/// often.
fn outlived(headers: Headers<'_>, line: Line) -> Option<UnixMs> {
    (line == Line::Expired && !headers.came_back_too_often()).then(UnixMs::now)
}

/// The lane of a message that does not say which it is.
fn lane_of(line: Line, headers: Headers<'_>) -> Lane {
    match line {
        Line::Task => Lane::Task,
        Line::Expired if headers.last_queue() == Some(names::TASKS) => Lane::Task,
        Line::Bulk | Line::Expired => Lane::Bulk,
        Line::Due | Line::Priority => Lane::Priority,
    }
}

/// When a message expires whose sender gave it a time to live: so long after it arrived, as nobody knows when it was sent.
fn expiration(delivery: &Delivery) -> Option<UnixMs> {
    let ms: u64 = delivery.properties.expiration().as_ref()?.as_str().parse().ok()?;
    Some(UnixMs::now().plus(Duration::from_millis(ms)))
}

fn shown(body: &[u8]) -> String {
    printable(&String::from_utf8_lossy(&body[..body.len().min(MAX_URL_BYTES)]), MAX_URL_BYTES)
}

/// Headers as anyone may have set them.
#[derive(Clone, Copy)]
struct Headers<'a>(&'a FieldTable);

impl<'a> Headers<'a> {
    fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        let wrong = || format!("header {name}: not text");
        match self.0.inner().get(name) {
            None | Some(AMQPValue::Void) => Ok(None),
            Some(AMQPValue::LongString(text)) => {
                std::str::from_utf8(text.as_bytes()).map(Some).map_err(|_| wrong())
            }
            Some(AMQPValue::ShortString(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(wrong()),
        }
    }

    /// The crawl that it is for.
    fn crawl(&self) -> Result<CrawlRef, String> {
        let spider = self.parsed("spider")?.unwrap_or_default();
        Ok(match self.parsed::<CrawlId>("crawl")? {
            None => CrawlRef::adhoc_of(spider),
            Some(id) if id.is_adhoc() => CrawlRef::adhoc_of(spider),
            Some(id) => CrawlRef { id, spider },
        })
    }

    /// The trace of its URL. It is a hint: what cannot be read is none.
    fn trace(&self) -> Option<Box<Trace>> {
        let parent = self.text(TRACE_PARENT).ok()??;
        let state = self.text(TRACE_STATE).ok().flatten();
        Trace::read(parent, state, UnixMs::now()).map(Box::new)
    }

    /// Whether its last queue gave it up because it was delivered and given back too often, and not because of its age.
    fn came_back_too_often(&self) -> bool {
        self.last_death("reason") == Some("delivery_limit")
    }

    /// The queue that gave it up last.
    fn last_queue(&self) -> Option<&'a str> {
        self.last_death("queue")
    }

    /// What the broker says of the last time that a queue gave it up. That comes first; a message that waited on the ladder before
    /// has others.
    fn last_death(&self, field: &str) -> Option<&'a str> {
        let Some(AMQPValue::FieldArray(deaths)) = self.0.inner().get("x-death") else { return None };
        let Some(AMQPValue::FieldTable(last)) = deaths.as_slice().first() else { return None };
        Headers(last).text(field).ok().flatten()
    }

    /// A priority, as a number or as the text of one.
    fn priority(&self) -> Result<Option<Priority>, String> {
        let number = match self.0.inner().get("priority") {
            Some(AMQPValue::Double(number)) => *number,
            Some(AMQPValue::Float(number)) => f64::from(*number),
            Some(AMQPValue::LongLongInt(number)) => *number as f64,
            Some(AMQPValue::LongInt(number)) => f64::from(*number),
            Some(AMQPValue::ShortInt(number)) => f64::from(*number),
            Some(AMQPValue::ShortShortInt(number)) => f64::from(*number),
            _ => return self.parsed("priority"),
        };
        number.try_into().map(Some).map_err(|error| format!("header priority: {error}"))
    }

    fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<Option<T>, String> {
        let text = self.text(name)?;
        text.map(|text| text.parse().map_err(|error| format!("header {name}: {error}"))).transpose()
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let value = match self.0.inner().get(name) {
            None | Some(AMQPValue::Void) => return Ok(None),
            Some(AMQPValue::LongLongInt(value)) => *value,
            Some(AMQPValue::LongInt(value)) => i64::from(*value),
            Some(AMQPValue::LongUInt(value)) => i64::from(*value),
            Some(AMQPValue::ShortInt(value)) => i64::from(*value),
            Some(AMQPValue::ShortUInt(value)) => i64::from(*value),
            Some(AMQPValue::ShortShortInt(value)) => i64::from(*value),
            Some(AMQPValue::ShortShortUInt(value)) => i64::from(*value),
            Some(AMQPValue::Timestamp(seconds)) => i64::try_from(*seconds).unwrap_or(-1).saturating_mul(1000),
            Some(_) => return Err(format!("header {name}: not a whole number")),
        };
        u64::try_from(value).map(Some).map_err(|_| format!("header {name}: below zero"))
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::format::FORMAT;
    use trawl_common::settings;

    use super::*;

    fn delivery(body: &[u8], properties: BasicProperties) -> Delivery {
        let mut delivery = Delivery::mock(1, "".into(), "url_queue_ttl".into(), false, body.to_vec());
        delivery.properties = properties;
        delivery
    }

    fn malformed(body: &[u8], properties: BasicProperties) -> Malformed {
        match content(&delivery(body, properties), Line::Bulk, &Trust::default()) {
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
            referrer: Some("https://example.com/".parse().unwrap()),
            hop: Some(Hop { url: "https://example.com/b".parse().unwrap(), count: 2 }),
            refusals: 3,
            is_ours: true,
            trace: None,
        }
    }

    #[test]
    fn a_message_survives_the_wire() {
        let delivery = delivery(b"https://example.com/a", properties(&full(), &Seal::default()));
        assert_eq!(content(&delivery, Line::Bulk, &Trust::default()), Content::Message(full()));
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
        let id = Fingerprint::of("https://example.com/a").to_string();
        let properties = BasicProperties::default().with_headers(headers).with_message_id(id.into());
        let trust = Trust { seal, ..Trust::default() };
        (delivery(b"https://example.com/a", properties.with_type("new".into())), trust)
    }

    #[test]
    fn a_message_of_a_newer_format_is_passed_on_as_it_came() {
        for key in [None, Some("a")] {
            let (came, trust) = newer(key);
            let Content::Newer(newer) = content(&came, Line::Bulk, &trust) else { panic!("{key:?}") };
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
            assert_eq!(content(&again, Line::Due, &trust), Content::Newer(newer));
        }
    }

    #[test]
    fn a_format_that_a_stranger_writes_says_nothing() {
        let (mut came, trust) = newer(Some("a"));
        let mut headers = came.properties.headers().clone().unwrap();
        put_text(&mut headers, "colour", "blue");
        came.properties = came.properties.with_headers(headers);
        assert!(matches!(
            content(&came, Line::Bulk, &trust),
            Content::Message(Message { is_ours: false, .. })
        ));
        let (came, _) = newer(None);
        let unnamed = delivery(&came.data, came.properties.clone().with_message_id("7".into()));
        let read = content(&unnamed, Line::Bulk, &Trust::default());
        assert!(matches!(read, Content::Message(Message { is_ours: false, .. })), "{read:?}");
    }

    #[test]
    fn a_trace_travels_beside_the_signature_and_a_strangers_says_nothing() {
        const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let key = settings::FleetKey::try_from("a".repeat(32)).unwrap();
        let seal = Seal::new(&settings::RabbitMq { key: Some(key), ..settings::RabbitMq::default() });
        let trust = Trust { seal, ..Trust::default() };
        let sent = UnixMs::now();
        let trace = Trace::read(PARENT, Some("trawl=1:00f067aa0ba902b8"), sent).map(Box::new);
        let traced = Message { trace: trace.clone(), ..full() };
        let signed = properties(&traced, &trust.seal);
        let read =
            |properties| match content(&delivery(b"https://example.com/a", properties), Line::Bulk, &trust) {
                Content::Message(message) => message,
                other => panic!("{other:?}"),
            };
        let arrived = read(signed.clone());
        let since = arrived.trace.as_ref().unwrap().since;
        assert!(since >= sent, "{since}");
        let trace = trace.map(|trace| Box::new(Trace { since, ..*trace }));
        assert_eq!(arrived, Message { trace, ..full() });
        // Of a message as the program before wrote it, and of a trace that somebody took away, the signature holds as well.
        let names = |properties: &BasicProperties| -> Vec<String> {
            let headers = properties.headers().clone().unwrap_or_default();
            headers.inner().keys().map(|name| name.as_str().to_owned()).collect()
        };
        let plain = properties(&full(), &trust.seal);
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
        assert_eq!(content(&delivery, Line::Bulk, &Trust::default()), Content::Message(strangers));
    }

    fn message_of(body: &[u8], properties: BasicProperties, line: Line, trust: &Trust) -> Message {
        match content(&delivery(body, properties), line, trust) {
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
        let line = r#"{"recipe": "http://a.example/", "unique": "1", "priority": -2.5, "retries": 0, "project": "p"}"#;
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
        let task = Task::new(&crawl.spider, NewTask::from_line(line).unwrap());
        let id = task.key.id().to_string();
        let sent = Message { depth: 2, ..Message::of(task.into(), crawl, Lane::Task) };
        for trust in [Trust::default(), sealed()] {
            for line in [Line::Task, Line::Due, Line::Expired] {
                let properties = properties(&sent, &trust.seal);
                assert_eq!(properties.message_id().as_ref().map(ShortString::as_str), Some(&*id));
                assert_eq!(message_of(b"http://a.example/", properties, line, &trust), sent);
            }
        }
        let plain = Task::new(&sent.crawl.spider, NewTask::from_line(r#""a""#).unwrap());
        let plain = Message::of(plain.into(), sent.crawl, Lane::Task);
        let is_ours = |body: &[u8]| {
            message_of(body, properties(&plain, &Seal::default()), Line::Task, &Trust::default()).is_ours
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
            let message = message_of(b"any text\n", properties, Line::Task, &trust);
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
            let message = message_of(b"any text", properties, Line::Task, &Trust::default());
            assert_eq!(message.work.task().unwrap().new.priority.get(), priority);
        }
        assert_eq!(malformed_in(Line::Task, b"").reason, "the recipe is empty");
        assert_eq!(malformed_in(Line::Task, &[0xff]).reason, "not UTF-8");
    }

    fn malformed_in(line: Line, body: &[u8]) -> Malformed {
        match content(&delivery(body, BasicProperties::default()), line, &Trust::default()) {
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
        let message = message_of(b"recipe", properties, Line::Expired, &Trust::default());
        assert!(message.work.task().is_some() && message.deadline.is_none());
    }

    #[test]
    fn the_smaller_of_two_times_to_live_is_the_deadline() {
        let deadline = |expiration: &str, headers: FieldTable| {
            let properties =
                BasicProperties::default().with_expiration(expiration.into()).with_headers(headers);
            match content(&delivery(b"https://example.com/a", properties), Line::Bulk, &Trust::default()) {
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
            let delivery =
                delivery(b"https://example.com/a", BasicProperties::default().with_headers(headers));
            match content(&delivery, Line::Expired, &Trust::default()) {
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
        let Content::Message(message) = content(&delivery, Line::Bulk, &Trust::default()) else { panic!() };
        assert_eq!(message.crawl, CrawlRef::adhoc_of("docs".parse().unwrap()));
        assert!(message.is_request());
    }

    #[test]
    fn whatever_crawl_of_strangers_a_message_names_it_is_for_that_of_its_spider() {
        for (crawl, spider) in [("adhoc", "docs"), ("adhoc.shop", "docs"), ("adhoc.shop", "default")] {
            let mut headers = FieldTable::default();
            put_text(&mut headers, "crawl", crawl);
            put_text(&mut headers, "spider", spider);
            let delivery =
                delivery(b"https://example.com/a", BasicProperties::default().with_headers(headers));
            let Content::Message(message) = content(&delivery, Line::Bulk, &Trust::default()) else {
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
            Line::Bulk,
            &Trust::default(),
        ) {
            Content::Message(message) => (message.work.to_string(), message.is_ours),
            other => panic!("{other:?}"),
        };
        let sent = BasicProperties::default().with_message_id(Fingerprint::of(old).to_string().into());
        assert_eq!(read(sent), (old.to_owned(), true));
        assert_eq!(read(BasicProperties::default()), ("http://example.com/~a".to_owned(), false));
    }

    #[test]
    fn a_strangers_message_that_outlives_its_lane_without_a_deadline_has_met_the_lanes() {
        let bare = delivery(b"https://example.com/a", BasicProperties::default());
        let expired = match content(&bare, Line::Expired, &Trust::default()) {
            Content::Message(message) => message,
            other => panic!("{other:?}"),
        };
        assert!(expired.is_expired(UnixMs::now()));
        let with_deadline = delivery(b"https://example.com/a", properties(&full(), &Seal::default()));
        assert_eq!(content(&with_deadline, Line::Expired, &Trust::default()), Content::Message(full()));
        let ours = Message { deadline: None, ..full() };
        let of_trawl = delivery(body(&ours.work), properties(&ours, &Seal::default()));
        assert_eq!(content(&of_trawl, Line::Expired, &Trust::default()), Content::Message(ours));
    }

    #[test]
    fn a_probe_is_told_from_a_message() {
        let times = ProbeTimes { sent: UnixMs(1_700_000_030_123), previous: UnixMs(1_700_000_000_123) };
        let probe = Probe { line: Line::Due, times };
        let delivery = delivery(b"probe", probe_properties(probe, &Seal::default()));
        assert_eq!(content(&delivery, Line::Due, &Trust::default()), Content::Probe(probe));
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
            reason(url, "lane", AMQPValue::LongString("fast".into()))
                .contains("`priority`, `bulk` or `task`")
        );
    }

    #[test]
    fn what_is_shown_of_a_hostile_body_is_short_and_printable() {
        let body = [b"\x1b[2J", &[0xff; 20_000][..]].concat();
        let text = malformed(&body, BasicProperties::default()).text;
        assert!(text.len() <= MAX_URL_BYTES && !text.contains('\u{1b}'));
    }
}
