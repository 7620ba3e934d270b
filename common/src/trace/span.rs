//! One step of a URL's way.

use std::borrow::Cow;

use crate::time::UnixMs;

/// A step that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace that it is part of.
    pub trace: u128,
    /// Its id.
    pub id: u64,
    /// The step that it is part of; none of the root.
    pub parent: Option<u64>,
    /// What was done.
    pub name: Cow<'static, str>,
    /// Towards whom.
    pub kind: Kind,
    /// When it began.
    pub begun: UnixMs,
    /// When it ended.
    pub ended: UnixMs,
    /// What is known of it, by the names of OpenTelemetry's conventions or by `trawl.<name>`.
    pub attributes: Vec<(&'static str, Value)>,
    /// An earlier attempt, of the same trace.
    pub retry_of: Option<u64>,
    /// A step of another trace that this one follows from.
    pub follows: Option<(u128, u64)>,
    /// Why it failed, if it did: one of few words.
    pub error: Option<Cow<'static, str>>,
}

/// Towards whom a step goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nobody.
    Internal,
    /// A broker.
    Producer,
    /// From a broker.
    Consumer,
    /// A host.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Text.
    Text(Cow<'static, str>),
    /// A whole number.
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
