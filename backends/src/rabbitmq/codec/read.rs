//! Reading received messages.

use std::time::Duration;

use lapin::message::Delivery;
use lapin::types::FieldTable;
use trawl_common::format;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::frontier::source_queue::SourceQueue;
use trawl_common::frontier::{Task, Work};
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::request::{MAX_REQUEST_BYTES, NewRequest, without_secrets};
use trawl_common::task::{InvalidRecipe, NewTask};
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_common::web::url::{CanonicalUrl, Fingerprint, InvalidUrl, MAX_URL_BYTES};
use trawl_engine::{Content, Probe, ProbeTimes, Unproven};

use super::super::names;
use super::super::newer::{self, FORMAT_HEADER};
use super::super::screen::{MAX_DEPTH, UNREADABLE};
use super::super::seal::{Author, Purpose, Seal};
use super::headers::Headers;
use super::{BEFORE, PROBE, PROBE_BODY};

/// The rules of a fleet for trusting messages.
#[derive(Clone, Default)]
pub struct Trust {
    /// The keys that identify its own messages.
    pub seal: Seal,
    /// The spiders that a stranger may name, if strangers can be identified.
    pub spiders: Vec<SpiderName>,
}

/// Reads a message from the queue of `source`.
pub fn content(delivery: &Delivery, source: SourceQueue, trust: &Trust) -> Content {
    let none = FieldTable::default();
    let headers = Headers(delivery.properties.headers().as_ref().unwrap_or(&none));
    if let Some(sent) = headers.number(PROBE).ok().flatten().map(UnixMs) {
        let previous = headers.number(BEFORE).ok().flatten().map(UnixMs).unwrap_or_default();
        match trust.seal.author(Purpose::Probe(source), &delivery.data, headers.0) {
            Author::Fleet | Author::Anyone => {
                return Content::Probe(Probe { source, times: ProbeTimes { sent, previous } });
            }
            Author::Stranger if delivery.data == PROBE_BODY => return Content::Unproven(Unproven::Probe),
            // A stranger's message that claims to be a probe is read as an ordinary one.
            Author::Stranger => {}
        }
    }
    message(delivery, headers, source, trust).unwrap_or_else(Content::Malformed)
}

fn message(
    delivery: &Delivery,
    headers: Headers<'_>,
    source: SourceQueue,
    trust: &Trust,
) -> Result<Content, Malformed> {
    let malformed = |reason: String| Malformed { text: shown(&delivery.data, source), reason };
    if headers.0.contains_key(UNREADABLE) {
        return Err(malformed(format!("headers that cannot be read, or nested more than {MAX_DEPTH} deep")));
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
    if is_ours(is_named(Fingerprint::from_text(body)))
        && let Some(format) = headers.number(FORMAT_HEADER).map_err(malformed)?
        && format::is_newer(format)
    {
        return Ok(Content::Newer(newer::write_down(delivery, format)));
    }
    let lane = match author {
        Author::Stranger => lane_of(source, headers),
        Author::Fleet | Author::Anyone => {
            headers.parsed("lane").map_err(malformed)?.unwrap_or_else(|| lane_of(source, headers))
        }
    };
    let (work, is_named) = if lane == Lane::Task {
        let spider = headers.parsed("spider").ok().flatten().unwrap_or_default();
        let task = task(body, headers, spider).map_err(malformed)?;
        let is_named = is_named(task.key.id());
        (Work::from(task), is_named)
    } else {
        let is_named = is_named(Fingerprint::from_text(body));
        (page(body, is_ours(is_named)).map_err(malformed)?, is_named)
    };
    if author == Author::Stranger {
        let request = strangers(work, headers, delivery, (source, lane), trust);
        return Ok(match headers.crawl().ok().filter(|crawl| is_named && !crawl.is_adhoc()) {
            Some(crawl) => Content::Unproven(Unproven::Message { request: Box::new(request), crawl }),
            None => Content::Message(request),
        });
    }
    let is_ours = is_ours(is_named);
    let read = || -> Result<Message, String> {
        let looks = headers.number("looks")?.unwrap_or(0).try_into().unwrap_or(u8::MAX);
        // A message of trawl has waited for its host, and continues.
        let expired = if is_ours { None } else { outlived(headers, source) };
        let deadlines = [headers.number("deadline")?.map(UnixMs), expiration(delivery)];
        Ok(Message {
            lane: lane.of(&work),
            work,
            crawl: headers.crawl()?,
            depth: headers.number("depth")?.unwrap_or(0).try_into().unwrap_or(u16::MAX),
            deadline: deadlines.into_iter().flatten().min().or(expired),
            until: headers.number("until")?.map(UnixMs),
            wake: headers.number("wake")?.map(UnixMs),
            slot: headers.number("slot")?.map(UnixMs),
            turn: headers.number("turn")?.map(|turn| (UnixMs(turn), looks)),
            since: headers.number("since")?.map(UnixMs),
            referrer: headers.parsed("referrer")?,
            hop: headers.hop()?,
            is_ours,
            refusals: headers.number("refusals")?.unwrap_or(0).try_into().unwrap_or(u16::MAX),
            lapses: headers.number("lapses")?.unwrap_or(0).try_into().unwrap_or(u16::MAX),
            left: headers.number("left")?.unwrap_or(0).try_into().unwrap_or(u16::MAX),
            trace: headers.trace(),
        })
    };
    read().map(Content::Message).map_err(malformed)
}

/// Returns the work of this body: a request if it is a JSON object, because no URL begins with a brace.
fn page(body: &str, is_ours: bool) -> Result<Work, String> {
    let url = |text: &str| {
        let url = if is_ours { CanonicalUrl::recorded(text) } else { CanonicalUrl::parse(text) };
        url.map_err(|error| error.to_string())
    };
    if !body.trim_start().starts_with('{') {
        return url(body).map(Work::Url);
    }
    let new = NewRequest::from_json(body).map_err(|error| error.to_string())?;
    let url = url(&new.url)?;
    Work::of_request(url, new).map_err(|error| error.to_string())
}

/// Returns the task whose recipe is this body.
fn task(body: &str, headers: Headers<'_>, spider: SpiderName) -> Result<Task, String> {
    let retries = headers.number("retries")?.map(u32::try_from).transpose();
    let new = NewTask {
        unique: headers.parsed("unique")?,
        priority: headers.priority()?.unwrap_or_default(),
        retries: retries.map_err(|_| "header retries: too high".to_owned())?,
        project: headers.parsed("project")?,
        ..NewTask::from_recipe(body.parse().map_err(|error: InvalidRecipe| error.to_string())?)
    };
    Ok(Task::new(&spider, new))
}

/// Restricts a stranger's message to its body, its time to live, and one of the spiders that settings allow. For a
/// task also its `unique` and its priority count. Its number of retries does not.
fn strangers(
    work: Work,
    headers: Headers<'_>,
    delivery: &Delivery,
    (source, lane): (SourceQueue, Lane),
    trust: &Trust,
) -> Message {
    let spider = headers.parsed("spider").ok().flatten().filter(|spider| trust.spiders.contains(spider));
    let crawl = CrawlRef::adhoc_of(spider.unwrap_or_default());
    let work = match work {
        Work::Request(request) if request.new.retries.is_some() => {
            let new = NewRequest { retries: None, ..request.new.clone() };
            // The key stays as it is.
            Work::of_request(request.url.clone(), new).unwrap_or(Work::Request(request))
        }
        work @ (Work::Url(_) | Work::Request(_)) => work,
        Work::Task(task) => {
            let new = NewTask { retries: None, project: None, ..task.new.clone() };
            Task::new(&crawl.spider, new).into()
        }
    };
    let deadline = expiration(delivery).or_else(|| outlived(headers, source));
    Message { deadline, is_ours: false, ..Message::new(work, crawl, lane) }
}

/// Returns the expiry of a stranger's message that outlived its lane: it has passed the lane's deadline, unless it
/// was given back too often.
fn outlived(headers: Headers<'_>, source: SourceQueue) -> Option<UnixMs> {
    (source == SourceQueue::Expired && !headers.came_back_too_often()).then(UnixMs::now)
}

/// Returns the lane of a message that does not name one.
fn lane_of(source: SourceQueue, headers: Headers<'_>) -> Lane {
    match source {
        SourceQueue::Task => Lane::Task,
        SourceQueue::Expired if headers.last_queue() == Some(names::TASKS) => Lane::Task,
        SourceQueue::Bulk | SourceQueue::Expired => Lane::Bulk,
        SourceQueue::Due | SourceQueue::Priority => Lane::Priority,
    }
}

/// Returns when a message with a time to live expires, counted from its arrival, because nobody knows when it was
/// sent.
fn expiration(delivery: &Delivery) -> Option<UnixMs> {
    let ms: u64 = delivery.properties.expiration().as_ref()?.as_str().parse().ok()?;
    Some(UnixMs::now().plus(Duration::from_millis(ms)))
}

/// Returns a form of an unreadable body that may be shown. If it was meant as a request, possible secrets are left
/// out.
fn shown(body: &[u8], source: SourceQueue) -> String {
    let start = String::from_utf8_lossy(&body[..body.len().min(MAX_REQUEST_BYTES)]);
    let text = if source == SourceQueue::Task { start } else { without_secrets(&start).into_owned().into() };
    printable(&text, MAX_URL_BYTES)
}
