//! Durations as people write them: `60s`, `5m`, `1h 30m`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Serializes a duration for a settings file.
pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_duration(*duration))
}

/// Deserializes a duration from a settings file.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text).map_err(serde::de::Error::custom)
}

/// Parses a duration from a command line.
pub fn parse(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| format!("`{text}` is not a duration: write `60s`, `5m` or `1h 30m`"))
}

/// Returns a duration of `count` minutes.
pub const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// Functions for a duration that may be absent.
pub mod optional {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    /// Serializes a duration for a settings file.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, to),
            None => to.serialize_none(),
        }
    }

    /// Deserializes a duration from a settings file.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| super::parse(&text)).transpose().map_err(serde::de::Error::custom)
    }
}
