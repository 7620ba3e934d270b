//! The one error type of all ports. Its kind decides what the caller does; its text is for people.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{printable, with_causes};

/// The kind of an error, by what a caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The server is down, slow or restarting, or its disk is full: try again later.
    Unavailable,
    /// The store is full, and accepts only calls that add nothing: try again later, and continue with everything
    /// else.
    Full,
    /// Someone else holds the lease that this call needs.
    Busy,
    /// The caller's lease has lapsed, or its crawl is over: stop.
    Stale,
    /// The server refuses this for good: wrong type, no permission, no such queue.
    Refused,
    /// The stored data cannot be read.
    Corrupt,
}

impl ErrorKind {
    /// Returns advice for people about an error of a client library.
    fn advice(self) -> &'static str {
        match self {
            Self::Unavailable => "is it running, and can it be reached from here?",
            Self::Full => "free memory or disk space there",
            Self::Busy => "wait until the other is done",
            Self::Stale => "open the crawl again",
            Self::Refused => "see to the settings and permissions there",
            Self::Corrupt => "trawl writes nothing of that kind: has another program written there?",
        }
    }
}

/// An error of an adapter, free of secrets: the operation, the problem with its causes, and what people can do
/// about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The kind, which says what a caller can do.
    pub kind: ErrorKind,
    operation: Option<String>,
    context: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.operation {
            write!(f, "{operation}: ")?;
        }
        f.write_str(&self.context)
    }
}

/// The result of a port's methods.
pub type Result<T> = std::result::Result<T, Error>;

/// An error that no waiting resolves, where everything else is waited for: it ends the process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Fatal(pub Error);

impl From<Fatal> for Error {
    fn from(Fatal(error): Fatal) -> Self {
        error
    }
}

impl Error {
    /// Returns an error of `kind`. `context` describes what is wrong and what people can do about it.
    pub fn new(kind: ErrorKind, context: impl fmt::Display) -> Self {
        Self { kind, operation: None, context: printable(&context.to_string(), 2048) }
    }

    /// Returns an error of `kind` for the client library's error `source`, with its causes. `whose` names the
    /// server or the file.
    pub fn caused_by(kind: ErrorKind, whose: impl fmt::Display, source: &dyn std::error::Error) -> Self {
        Self::new(kind, format_args!("{whose}: {}: {}", with_causes(source), kind.advice()))
    }

    /// Adds the name of the operation during which the error occurred. A name set earlier stays: the innermost
    /// caller knows best.
    #[must_use]
    pub fn during(mut self, operation: &str) -> Self {
        self.operation.get_or_insert_with(|| operation.to_owned());
        self
    }

    /// Returns the error for a full store.
    pub fn full() -> Self {
        let what = "the store is full (Redis: maxmemory): no new URLs are taken in until memory is free; those that are known go on";
        Self::new(ErrorKind::Full, what)
    }

    /// Returns whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Full)
    }
}

/// Checks that there is one answer for each of the `asked` things; an error if any is missing.
pub fn one_each<T>(answers: Vec<T>, asked: usize, what: &str) -> Result<Vec<T>> {
    match answers.len() {
        answered if answered == asked => Ok(answers),
        answered => {
            Err(Error::new(ErrorKind::Corrupt, format_args!("{answered} answers for {asked} {what}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no answer")]
    struct NoAnswer(#[source] io::Error);

    #[test]
    fn an_error_names_the_operation_whose_it_is_its_causes_and_what_to_do() {
        let source = NoAnswer(io::Error::other("connection reset"));
        let error = Error::caused_by(ErrorKind::Unavailable, "redis", &source);
        let text = "redis: no answer: connection reset: is it running, and can it be reached from here?";
        assert_eq!(error.to_string(), text);
        let error = error.during("reserving slots").during("fetching");
        assert_eq!(error.to_string(), format!("reserving slots: {text}"));
    }
}
