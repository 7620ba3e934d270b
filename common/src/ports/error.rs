//! The one error of all ports: what kind it is decides what a caller does.

use std::fmt;

/// What a caller can do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The server is away, slow or restarting, or its disk is full: try again later.
    Unavailable,
    /// The store has no room for more, and takes only what adds nothing to it: try again later, and go on with all else.
    Full,
    /// Someone else holds the lease that this needs.
    Busy,
    /// The caller's lease has lapsed, or its crawl is over: stop.
    Stale,
    /// The server refuses this for good: another type, no permission, no such queue.
    Refused,
    /// What is stored there cannot be understood.
    Corrupt,
}

/// An error of an adapter, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{context}")]
pub struct Error {
    /// What to do about it.
    pub kind: ErrorKind,
    context: String,
}

/// The result of a port's call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`, told in `context`.
    pub fn new(kind: ErrorKind, context: impl fmt::Display) -> Self {
        Self { kind, context: crate::text::printable(&context.to_string(), 2048) }
    }

    /// That the store is full, as people are told.
    pub fn full() -> Self {
        let told = "the store is full (Redis: maxmemory): no URLs are taken in until there is room; what is there goes on";
        Self::new(ErrorKind::Full, told)
    }

    /// Whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Full)
    }
}

/// The answers to a call for `asked` things, one for each; an error if any is missing.
pub fn one_each<T>(answers: Vec<T>, asked: usize, what: &str) -> Result<Vec<T>> {
    match answers.len() {
        answered if answered == asked => Ok(answers),
        answered => {
            Err(Error::new(ErrorKind::Corrupt, format_args!("{answered} answers for {asked} {what}")))
        }
    }
}
