//! The format of what trawl's programs write for each other, so that several releases can run side by side.
//!
//! Redis as a whole has a major version: a program that does not know it does not start. Each message, record and entry of the
//! stream `control` has a format. What is of format 1 says nothing of it, as the programs before there were formats did. What only
//! newer programs read says so: a program leaves it as it is, for them.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The newest format that this program reads and writes. It goes up with the first change that programs before would misread, and
/// only what has that change is marked by it. So older programs go on with all the rest.
pub const FORMAT: u64 = REQUESTS;

/// The format of what is about a request ([`Request`](crate::frontier::Request)). Programs of the first format take each key for a URL or a
/// task; those of the second know fewer keys of a request's JSON.
pub const REQUESTS: u64 = 3;

/// Whether what is of this format is for newer programs than this one.
pub fn is_newer(format: u64) -> bool {
    format > FORMAT
}

/// Parses an entry, a JSON object whose `v` is its format. Returns `None` if only newer programs read it, whatever else it holds.
///
/// # Errors
/// If it is no such object, or not a `T`.
pub fn parse_entry<T: DeserializeOwned>(entry: &[u8]) -> serde_json::Result<Option<T>> {
    #[derive(Deserialize)]
    struct Formatted {
        #[serde(rename = "v", default)]
        format: u64,
    }
    let Formatted { format } = serde_json::from_slice(entry)?;
    if is_newer(format) { Ok(None) } else { serde_json::from_slice(entry).map(Some) }
}
