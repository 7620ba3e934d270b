//! One step on a URL's path.

use std::borrow::Cow;

use crate::time::UnixMs;

/// A step that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace that it is part of.
    pub trace: u128,
    /// Its id.
    pub id: u64,
    /// The parent step; `None` for the root.
    pub parent: Option<u64>,
    /// The action.
    pub name: Cow<'static, str>,
    /// The kind, by the other party.
    pub kind: Kind,
    /// Its start.
    pub begun: UnixMs,
    /// Its end.
    pub ended: UnixMs,
    /// Its attributes, by the names of OpenTelemetry's conventions or by `trawl.<name>`.
    pub attributes: Vec<(&'static str, Value)>,
    /// An earlier attempt, of the same trace.
    pub retry_of: Option<u64>,
    /// The step of another trace that this one follows from.
    pub follows: Option<(u128, u64)>,
    /// The error, if it failed: one of few words.
    pub error: Option<Cow<'static, str>>,
}

/// The kind of a step, by the other party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No other party.
    Internal,
    /// Sent to a broker.
    Producer,
    /// Received from a broker.
    Consumer,
    /// A request to a host.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Text.
    Text(Cow<'static, str>),
    /// An integer.
    Number(i64),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}
