//! The memory that JSON takes once it is parsed: for small values many times its length.

use super::MAX_ANSWER_BYTES;

/// Minimum number of bytes that a value counts as.
const VALUE: usize = 4;

/// Number of values that an object counts as: even an empty one takes more than half a kilobyte.
const OBJECT: usize = 20;

/// Maximum number of values in an answer.
const MAX_VALUES: usize = MAX_ANSWER_BYTES / VALUE;

/// The error for an answer with so many values that parsing it could take all the memory of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {MAX_VALUES} values, of which an object counts as {OBJECT}: more items may be in a file (`items_file`), one a line"
)]
pub struct TooManyValues;

/// Returns the weight of a JSON text: its bytes, or more if it has many values. Looks only at brackets and commas,
/// so that it can be called before the text is parsed.
pub(super) fn weight(json: &[u8]) -> Result<usize, TooManyValues> {
    let (mut values, mut is_in_string, mut is_escaped) = (1, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            b'{' if !is_in_string => values += OBJECT,
            b'[' | b',' if !is_in_string => values += 1,
            _ => {}
        }
    }
    if values > MAX_VALUES { Err(TooManyValues) } else { Ok(json.len().max(values * VALUE)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_counts_as_its_length_whatever_stands_in_its_strings() {
        let text = format!(r#"{{"a": "{}\" {}"}}"#, "{".repeat(2_000), "{[,".repeat(2_000));
        assert_eq!(weight(text.as_bytes()), Ok(text.len()));
        assert_eq!(weight(br#"{"a":1}"#), Ok((1 + OBJECT) * VALUE));
    }

    #[test]
    fn small_objects_count_for_what_they_take() {
        let objects = |count: usize| format!("[{}]", vec![r#"{"a":1}"#; count].join(","));
        assert!(objects(200_000).len() < MAX_ANSWER_BYTES / 8);
        assert!(weight(objects(190_000).as_bytes()).is_ok());
        assert_eq!(weight(objects(200_000).as_bytes()), Err(TooManyValues));
    }
}
