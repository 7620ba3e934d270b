//! The pause of a worker whose machine lacks resources.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::schedule::blameless::PAUSE;

/// The end of the pause that began when the machine last lacked something.
#[derive(Debug, Default)]
pub(crate) struct Wanting(Mutex<Option<Instant>>);

impl Wanting {
    pub(crate) fn for_a_while(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PAUSE);
    }

    /// The end of the pause, if it is not over.
    pub(crate) fn until(&self) -> Option<Instant> {
        let until = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        until.filter(|&until| until > Instant::now())
    }
}
