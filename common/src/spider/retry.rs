//! `[retry]` of a spider.

use std::time::Duration;

use crate::frontier::outcome::Class;
use crate::settings::Retry;

/// The values of a spider that override the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetryOverrides {
    /// Maximum number of retries.
    pub max: Option<u32>,
    /// The HTTP statuses that are worth another try.
    pub statuses: Option<Vec<u16>>,
    /// The kinds of error that are worth another try.
    pub errors: Option<Vec<Class>>,
    /// Maximum wait before the first retry.
    pub backoff: Option<Duration>,
}

impl RetryOverrides {
    /// Returns the retry policy of a spider: by its file, and by `settings` for what that does not set.
    pub fn apply(&self, settings: &Retry) -> Retry {
        let Self { max, statuses, errors, backoff } = self.clone();
        Retry {
            max: max.unwrap_or(settings.max),
            statuses: statuses.unwrap_or_else(|| settings.statuses.clone()),
            errors: errors.unwrap_or_else(|| settings.errors.clone()),
            backoff: backoff.unwrap_or(settings.backoff),
        }
    }
}
