//! Positions in the stream.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use trawl_backends::rabbitmq::StreamStart;
use trawl_backends::redis::Readers;
use trawl_common::names::ReaderName;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;

/// The position given with `--from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartArg(pub(super) StreamStart);

impl FromStr for StartArg {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let place = match text {
            "first" => StreamStart::First,
            "next" => StreamStart::Next,
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                StreamStart::Offset(digits.parse().map_err(|_| format!("`{digits}` is no offset"))?)
            }
            time => StreamStart::Time(instant(time).ok_or_else(|| {
                format!("`{time}` is no place: write `first`, `next`, an offset, or a time as 2026-01-31T12:00:00Z")
            })?),
        };
        Ok(Self(place))
    }
}

fn instant(text: &str) -> Option<UnixMs> {
    let time: SystemTime = humantime::parse_rfc3339_weak(text).ok()?;
    Some(UnixMs(time.duration_since(UNIX_EPOCH).ok()?.as_millis() as u64))
}

/// The stored position of a named reader.
pub(super) struct Bookmark {
    readers: Readers,
    name: ReaderName,
    /// The offset of the next item to read, if the reader has read before.
    pub(super) at: Option<u64>,
}

impl Bookmark {
    pub(super) async fn open(readers: Readers, name: ReaderName) -> Result<Self> {
        let at = readers.place(&name).await?;
        Ok(Self { readers, name, at })
    }

    /// Stores the position.
    pub(super) async fn put(&self, at: u64) -> Result<()> {
        self.readers.keep(&self.name, at).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_word_an_offset_or_a_time() {
        let place = |text: &str| text.parse::<StartArg>().map(|StartArg(from)| from);
        assert_eq!(place("first"), Ok(StreamStart::First));
        assert_eq!(place("next"), Ok(StreamStart::Next));
        assert_eq!(place("17"), Ok(StreamStart::Offset(17)));
        let time = Ok(StreamStart::Time(UnixMs(1_700_000_000_000)));
        assert_eq!(place("2023-11-14T22:13:20Z"), time);
        assert_eq!(place("2023-11-14 22:13:20"), time);
        for wrong in ["", "last", "-1", "99999999999999999999999", "yesterday", "1960-01-01T00:00:00Z"] {
            assert!(place(wrong).is_err(), "{wrong}");
        }
    }
}
