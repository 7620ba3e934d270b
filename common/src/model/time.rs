//! Wall-clock instants as they travel in messages and records.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;

/// Milliseconds since 1970-01-01T00:00:00Z, the unit of every instant that leaves a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMs(pub u64);

impl UnixMs {
    /// Returns the current time by the clock that this process [follows](clock::follow): the fleet's, or this
    /// machine's.
    pub fn now() -> Self {
        Self(clock::now_ms())
    }

    /// Returns the instant `by` later.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by.as_millis() as u64))
    }

    /// Returns the time from `now` until this instant; zero if it has passed.
    pub fn wait_from(self, now: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(now.0))
    }

    /// Returns the instant as used in names, to the second: `20231114-221320`.
    pub(crate) fn stamp(self) -> String {
        let digits: String = self.to_string().chars().filter(char::is_ascii_digit).take(14).collect();
        let (day, time) = digits.split_at(8);
        format!("{day}-{time}")
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.wait_from(earlier)
    }
}

impl fmt::Display for UnixMs {
    /// Writes RFC 3339 in UTC, with milliseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0 as i64) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl FromStr for UnixMs {
    type Err = String;

    /// Parses RFC 3339.
    fn from_str(text: &str) -> Result<Self, String> {
        let instant: jiff::Timestamp = text.parse().map_err(|error: jiff::Error| error.to_string())?;
        u64::try_from(instant.as_millisecond()).map(Self).map_err(|error| error.to_string())
    }
}

/// The JSON form of an instant: RFC 3339 in UTC, with milliseconds.
pub mod as_rfc_3339 {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::UnixMs;

    /// Serializes an instant.
    pub fn serialize<S: Serializer>(instant: &UnixMs, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(instant)
    }

    /// Deserializes an instant.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<UnixMs, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_reads_as_rfc_3339() {
        assert_eq!(UnixMs(1_700_000_000_123).to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(UnixMs(1_700_000_000_123).stamp(), "20231114-221320");
    }
}
