//! The serde form of bytes in JSON: base64 (RFC 4648 4). Use as `#[serde(with = "base64")]`.

use bytes::Bytes;
use data_encoding::BASE64;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64.encode(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64.decode(text.as_bytes()).map(Bytes::from).map_err(D::Error::custom)
}
