//! The steps on a URL's path, each with the attributes that OpenTelemetry's conventions ask for.

use std::borrow::Cow;
use std::time::Duration;

use super::secrets::{port, without_secrets};
use super::{Kind, Span, Value, begin, export, is_on};
use crate::frontier::Work;
use crate::frontier::message::Message;
use crate::frontier::trace::Trace;
use crate::time::UnixMs;
use crate::web::url::CanonicalUrl;

type Attributes = Vec<(&'static str, Value)>;

/// Exports a part of an attempt that has just ended after `took`.
pub fn step(trace: Option<&Trace>, name: &'static str, took: Duration) {
    if let Some((trace, attempt)) = of_attempt(trace) {
        export(Span { attributes: Vec::new(), ..ended(trace, Some(attempt), name, Kind::Internal, took) });
    }
}

/// Exports the wait of an attempt for its host, which is over.
pub fn scheduled(trace: Option<&Trace>) {
    if let Some(trace) = trace {
        step(Some(trace), "schedule", UnixMs::now().since(trace.since));
    }
}

/// Exports a request to a host that has just ended: its URL, its redirects, and its status, or the error without
/// one.
pub fn fetched(
    trace: Option<&Trace>,
    url: &CanonicalUrl,
    redirects: u8,
    answer: Result<Option<u16>, &'static str>,
    took: Duration,
) {
    let Some((trace, attempt)) = of_attempt(trace) else { return };
    let mut attributes: Attributes =
        vec![("http.request.method", "GET".into()), ("url.full", without_secrets(url).into())];
    attributes.push(("server.address", url.host().as_str().to_owned().into()));
    if let Some(port) = port(url) {
        attributes.push(("server.port", i64::from(port).into()));
    }
    if redirects > 0 {
        attributes.push(("http.request.resend_count", i64::from(redirects).into()));
    }
    if let Ok(Some(status)) = answer {
        attributes.push(("http.response.status_code", i64::from(status).into()));
    }
    let error = match answer {
        Err(error) => Some(error.into()),
        Ok(status) => status.filter(|status| *status >= 400).map(|status| status.to_string().into()),
    };
    export(Span { attributes, error, ..ended(trace, Some(attempt), "GET", Kind::Client, took) });
}

/// Exports a message that RabbitMQ has just confirmed, sent at this instant.
pub fn sent(message: &Message, queue: &str, at: UnixMs) {
    let Some(trace) = message.trace.as_deref().filter(|_| is_on()) else { return };
    let parent = trace.attempt.unwrap_or(trace.parent);
    let took = UnixMs::now().since(at);
    let span = ended(trace, Some(parent), format!("send {queue}"), Kind::Producer, took);
    export(Span { attributes: messaging("send", queue), ..span });
}

/// Exports the wait of a message that has just arrived from RabbitMQ.
pub fn waited(message: &Message, queue: &str) {
    let Some(trace) = message.trace.as_deref().filter(|_| is_on()) else { return };
    let took = UnixMs::now().since(trace.since);
    let span = ended(trace, Some(trace.parent), format!("wait in {queue}"), Kind::Consumer, took);
    export(Span { attributes: messaging("receive", queue), ..span });
}

fn messaging(operation: &'static str, queue: &str) -> Attributes {
    vec![
        ("messaging.system", "rabbitmq".into()),
        ("messaging.operation.name", operation.into()),
        ("messaging.operation.type", operation.into()),
        ("messaging.destination.name", queue.to_owned().into()),
    ]
}

/// The admission of URLs, until they have records.
pub struct Admission {
    begun: UnixMs,
}

impl Admission {
    /// Begins the admission of URLs that a source or a page has named.
    pub fn begin() -> Self {
        Self { begun: UnixMs::now() }
    }

    /// Ends the admission of new URLs, which have their records now: those that are to be traced are from here on.
    /// The page that links to them, if any, has a trace of its own.
    pub fn end(&self, messages: &mut [Message], page: Option<&Trace>) {
        if !is_on() {
            return;
        }
        for message in messages {
            let Some(trace) = begin(&message.crawl, message.work.as_str()) else { continue };
            let took = UnixMs::now().since(self.begun);
            let follows = of_attempt(page).map(|(page, attempt)| (page.id, attempt));
            let span = Span { id: trace.parent, ..ended(&trace, None, "admit", Kind::Internal, took) };
            export(Span { attributes: of_work(message), follows, ..span });
            message.trace = Some(trace);
        }
    }
}

/// Begins an attempt on a URL that a worker has claimed. If its message had no trace, it gets one if it is to have
/// one.
pub fn take_up(message: &mut Message) {
    if !is_on() {
        return;
    }
    let attempt = rand::random();
    match message.trace.as_deref_mut() {
        Some(trace) => {
            (trace.previous, trace.attempt) = (trace.attempt, Some(attempt));
            trace.since = UnixMs::now();
        }
        // The attempt is the root.
        None => {
            message.trace = begin(&message.crawl, message.work.as_str()).map(|mut trace| {
                trace.attempt = Some(trace.parent);
                trace
            });
        }
    }
}

/// An attempt that is being settled.
pub struct Attempt {
    trace: Trace,
    attributes: Attributes,
    error: Option<&'static str>,
}

impl Attempt {
    /// Returns the attempt on this message's URL, if it is traced, with its outcome, and the error if it failed.
    pub fn new(message: &Message, outcome: &'static str, error: Option<&'static str>) -> Option<Self> {
        let (trace, _) = of_attempt(message.trace.as_deref())?;
        let mut attributes = of_work(message);
        attributes.push(("trawl.outcome", outcome.into()));
        Some(Self { trace: *trace, attributes, error })
    }

    /// Ends the attempt, whose settling took `took`.
    pub fn end(self, took: Duration) {
        let Self { trace, attributes, error } = self;
        step(Some(&trace), "settle", took);
        let Some(id) = trace.attempt else { return };
        let parent = Some(trace.parent).filter(|parent| *parent != id);
        let took = UnixMs::now().since(trace.since);
        let span = ended(&trace, parent, "process", Kind::Consumer, took);
        let error = error.map(Into::into);
        export(Span { id, attributes, error, retry_of: trace.previous, ..span });
    }
}

/// Returns the attributes of each URL or task.
fn of_work(message: &Message) -> Attributes {
    vec![
        match &message.work {
            Work::Url(url) => ("url.full", without_secrets(url).into()),
            Work::Request(request) => ("url.full", without_secrets(&request.url).into()),
            Work::Task(task) => ("trawl.task.key", task.key.to_string().into()),
        },
        ("trawl.crawl.id", message.crawl.id.to_string().into()),
        ("trawl.spider.name", message.crawl.spider.to_string().into()),
        ("trawl.depth", i64::from(message.depth).into()),
    ]
}

/// Returns the trace and its current attempt, if there is one and tracing is on.
fn of_attempt(trace: Option<&Trace>) -> Option<(&Trace, u64)> {
    let trace = trace.filter(|_| is_on())?;
    Some((trace, trace.attempt?))
}

/// Returns a span with a new id that ends now.
fn ended(
    trace: &Trace,
    parent: Option<u64>,
    name: impl Into<Cow<'static, str>>,
    kind: Kind,
    took: Duration,
) -> Span {
    let ended = UnixMs::now();
    Span {
        trace: trace.id,
        id: rand::random(),
        parent,
        name: name.into(),
        kind,
        begun: UnixMs(ended.0.saturating_sub(took.as_millis() as u64)),
        ended,
        attributes: Vec::new(),
        retry_of: None,
        follows: None,
        error: None,
    }
}
