//! Cursors of lists: texts that callers return unchanged to continue.

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use trawl_common::ports::LogPlace;
use utoipa::IntoParams;

use crate::problem::Problem;

/// Default number of entries on a page.
const DEFAULT_LIMIT: u16 = 100;
/// Maximum number of entries on a page.
const MAX_LIMIT: u16 = 1000;

/// The number of entries that a caller requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u16")]
pub(crate) struct Limit(u16);

impl Default for Limit {
    fn default() -> Self {
        Self(DEFAULT_LIMIT)
    }
}

impl TryFrom<u16> for Limit {
    type Error = String;

    fn try_from(number: u16) -> Result<Self, String> {
        match number {
            1..=MAX_LIMIT => Ok(Self(number)),
            _ => Err(format!("limit: must be 1 to {MAX_LIMIT}")),
        }
    }
}

impl Limit {
    pub(crate) fn get(self) -> usize {
        self.0.into()
    }
}

/// The requested part of a list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Paging {
    /// The maximum number of entries
    #[serde(default)]
    #[param(value_type = Option<u16>, minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Limit,
    /// The position to continue at: `next` of the previous page
    pub(crate) cursor: Option<String>,
}

/// Encodes a position in a list.
pub(crate) fn encode(place: &impl Serialize) -> String {
    // Names and numbers always serialise.
    BASE64URL_NOPAD.encode(&serde_json::to_vec(place).unwrap_or_default())
}

/// Decodes a position from [`encode`].
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, Problem> {
    let json = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    json.and_then(|json| serde_json::from_slice(&json).ok())
        .ok_or_else(|| Problem::malformed("cursor: send what the last page says in `next`, as it is"))
}

/// Encodes a position in the log, or in a list that is kept as it is.
pub(crate) fn encode_log(LogPlace(first, second): LogPlace) -> String {
    encode(&(first, second))
}

/// Decodes a position from [`encode_log`]; the end without one.
pub(crate) fn decode_log(cursor: Option<&str>) -> Result<LogPlace, Problem> {
    let place = cursor.map(decode::<(u64, u64)>).transpose()?;
    Ok(place.map_or(LogPlace::END, |(first, second)| LogPlace(first, second)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_and_any_other_text_is_a_problem() {
        assert_eq!(decode::<(u64, String)>(&encode(&(7, "a"))), Ok((7, "a".to_owned())));
        for wrong in ["", "x", "\u{e9}", &encode(&"a"), "====", "AAAA"] {
            assert!(decode::<(u64, String)>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_has_between_one_entry_and_a_thousand() {
        assert_eq!(
            [0, 1, 1000, 1001].map(|number| Limit::try_from(number).is_ok()),
            [false, true, true, false]
        );
    }
}
