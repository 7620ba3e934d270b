//! The serde forms of keys and URLs that are passed on as they stand in trawl's records: their spelling is kept. Use as
//! `#[serde(with = "recorded")]`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text in a record.
pub(crate) trait Recorded: Sized {
    /// Returns it as text.
    fn text(&self) -> &str;

    /// Reads it as it stands.
    fn read(text: &str) -> Result<Self, String>;
}

pub(crate) fn serialize<S: Serializer>(value: &impl Recorded, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.text())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Recorded>(deserializer: D) -> Result<T, D::Error> {
    T::read(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// The form of a value that may be absent.
pub(crate) mod option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<impl Recorded>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Recorded::text).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Recorded>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| T::read(&text)).transpose().map_err(D::Error::custom)
    }
}
