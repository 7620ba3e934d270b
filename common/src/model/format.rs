//! The version of the data that trawl's programs exchange, so that several releases can run side by side.
//!
//! Redis as a whole has a major version: a program that does not know it does not start. Each message, record and entry
//! of the stream `control` has a format. Data of format 1 has no marker, like that of programs from before there were
//! formats. Data that only newer programs can read is marked, and older programs leave it unchanged.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The newest format that this program reads and writes. It is incremented for a change that older programs would
/// misread, and only data with that change is marked, so older programs continue with everything else.
pub const FORMAT: u64 = REQUESTS;

/// The format of data about a request ([`Request`](crate::frontier::Request)). Programs of the first format treat each
/// key as that of a URL or a task; those of the second know fewer keys of a request's JSON.
pub const REQUESTS: u64 = 3;

/// Whether data of this format needs a newer program than this one.
pub fn is_newer(format: u64) -> bool {
    format > FORMAT
}

/// Parses an entry, a JSON object whose `v` is its format. Returns `None` if only newer programs can read it, whatever
/// else it has.
///
/// # Errors
/// Fails if it is not such an object, or not a `T`.
pub fn parse_entry<T: DeserializeOwned>(entry: &[u8]) -> serde_json::Result<Option<T>> {
    #[derive(Deserialize)]
    struct Formatted {
        #[serde(rename = "v", default)]
        format: u64,
    }
    let Formatted { format } = serde_json::from_slice(entry)?;
    if is_newer(format) { Ok(None) } else { serde_json::from_slice(entry).map(Some) }
}
