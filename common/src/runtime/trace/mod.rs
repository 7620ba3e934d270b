//! Traces: the path of single URLs through producer, broker and worker, and the duration of each step, in the form
//! of OpenTelemetry (<https://opentelemetry.io/docs/specs/semconv/>).
//!
//! A traced URL carries its [`Trace`] in its messages. It has one trace for all of its attempts:
//!
//! - `admit`, the root: from when its source named it, or a page linked to it, until its record was there;
//! - `send <queue>`, for each message that a broker confirmed;
//! - `wait in <queue>`, for each message that arrived;
//! - `process`, for each attempt, which is linked to the one before. In it `schedule` (until its host could be asked),
//!   `GET` (one for each redirect), `extract`, `store` and `settle`.
//!
//! A trace is a hint: if a message is lost, the URL continues with a new trace. Without `[tracing] otlp` nothing is
//! exported; then no URL has a trace, and each of these calls only checks a pointer.

mod secrets;
mod span;
mod steps;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

pub use span::{Kind, Span, Value};
pub use steps::{Admission, Attempt, fetched, scheduled, sent, step, take_up, waited};

use crate::frontier::fingerprint;
use crate::frontier::trace::Trace;
use crate::names::CrawlRef;

/// The destination of spans.
pub trait Exporter: Send + Sync {
    /// Takes a span that has ended. Returns at once: spans that it cannot keep are dropped.
    fn export(&self, span: Span);
}

struct Tracing {
    sample: f64,
    exporter: Box<dyn Exporter>,
}

static TRACING: OnceLock<Tracing> = OnceLock::new();

/// Traces this share of all URLs from now on. Called once per process, by `main`.
pub fn start(sample: f64, exporter: Box<dyn Exporter>) {
    // The first call wins.
    let _ = TRACING.set(Tracing { sample, exporter });
}

/// Returns whether URLs are traced.
pub fn is_on() -> bool {
    TRACING.get().is_some()
}

/// Returns a trace for the URL or task of this key, if it is to be traced: all processes of a fleet decide alike.
fn begin(crawl: &CrawlRef, key: &str) -> Option<Box<Trace>> {
    let Tracing { sample, .. } = TRACING.get()?;
    let share = fingerprint(crawl, key).short().unsigned_abs() as f64 / i64::MAX as f64;
    (share < *sample).then(|| Box::new(Trace::new()))
}

fn export(span: Span) {
    if let Some(tracing) = TRACING.get() {
        tracing.exporter.export(span);
    }
}
