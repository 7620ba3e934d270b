//! The answer of a program that is started for each task.

use serde_json::{Map, Value};

use super::answer::Answer;
use super::part::{InvalidPart, NotJson, Part};
use super::weight::weight;

/// The longest argument that Linux accepts, in bytes, without its final NUL. A longer task is given only on
/// standard input.
pub const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// Number of closing braces, counted from the last, that are tried as the end of the last object.
const MAX_ENDS: usize = 32;

/// The argument that stands for a task that is too long for one.
pub const ON_STANDARD_INPUT: &str = "-";

/// The reason why an output is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOutput {
    /// There is no JSON object in it.
    #[error(
        "the program wrote no JSON object to its standard output: its answer is the last one there, as {{\"result\": 0}}"
    )]
    NoAnswer,
    /// The last text in it that looks like a JSON object is none.
    #[error("what stands last in braces on standard output is {0}")]
    NotJson(#[from] NotJson),
    /// The last JSON object in it has no `result`.
    #[error(
        "the last JSON object on standard output has no `result`: it is 0 (done), 1 (failed) or 2 (left out)"
    )]
    NoResult,
    /// The last JSON object in it is no valid answer.
    #[error("the last JSON object on standard output: {0}")]
    Invalid(#[from] InvalidPart),
}

/// Parses the answer from everything that a program wrote to its standard output: the last JSON object there. Any
/// text may stand before and after it, also on its line, except many closing braces after it.
///
/// Takes time proportional to the output.
pub fn answer(output: &[u8]) -> Result<Answer, InvalidOutput> {
    let object = last_object(output)?;
    let mut part = Part::new(object, output.len(), &["result"])?;
    let verdict = part.verdict.take().ok_or(InvalidOutput::NoResult)?;
    part.logs.truncate(super::MAX_LOGS);
    Ok(part.ending(verdict))
}

/// Returns the JSON object that ends last. A text that looks like an object and is none is not searched for an
/// answer, which might be one of its items. If there is no object, returns the error of the last text that looks
/// like one.
fn last_object(output: &[u8]) -> Result<Map<String, Value>, InvalidOutput> {
    let mut end = output.len();
    let mut wrong = None;
    for _ in 0..MAX_ENDS {
        let Some(last) = memchr::memrchr(b'}', &output[..end]) else { break };
        end = last;
        let Some(start) = start_of(&output[..=end]) else { continue };
        match object(&output[start..=end]) {
            Ok(object) => return Ok(object),
            Err(error) => (end, wrong) = (start, wrong.or(Some(error))),
        }
    }
    Err(wrong.unwrap_or(InvalidOutput::NoAnswer))
}

fn object(text: &[u8]) -> Result<Map<String, Value>, InvalidOutput> {
    weight(text).map_err(InvalidPart::from)?;
    serde_json::from_slice(text).map_err(|error| NotJson::new(&error, text).into())
}

/// Returns the start of the object that this text ends with, if it ends with one. Searches backwards from its end,
/// because any text may stand before an object.
fn start_of(text: &[u8]) -> Option<usize> {
    let (mut depth, mut is_in_string) = (0usize, false);
    for at in (0..text.len()).rev() {
        match text[at] {
            b'"' if !is_escaped(&text[..at]) => is_in_string = !is_in_string,
            b'}' | b']' if !is_in_string => depth += 1,
            b'{' | b'[' if !is_in_string => {
                depth -= 1;
                if depth == 0 {
                    return (text[at] == b'{').then_some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns whether a character after this text is escaped by it.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::handler::Verdict;

    fn verdict(output: &str) -> Result<Verdict, InvalidOutput> {
        answer(output.as_bytes()).map(|answer| answer.verdict)
    }

    #[test]
    fn the_answer_is_the_last_object_whatever_stands_around_it() {
        for output in [
            r#"{"result": 0}"#,
            "{\"result\": 0}\n\n",
            "progress 10%\nprogress 90%\n{\"result\": 0}\n",
            "progress 10%{\"result\": 0}",
            "{\"result\": 1}\n{\"result\": 0}\n",
            "{not json} {\"a\": {\"b\": [\"}{\"]}}\n{\"result\": 0}",
            "{\n  \"result\": 0,\n  \"items\": [{\"x\": \"{\\\"result\\\": 1}\"}]\n}\nbye\n",
            "{'repr': 1}{{{{{\"result\": 0}",
            "\u{feff}{\"result\": 0}\0\0",
            "{\"result\": 0, \"items\": [{\"}\\\\\": \"{\\\"}]\"}]}\nbye } ]} \"}\n",
        ] {
            assert_eq!(verdict(output), Ok(Verdict::Done), "{output:?}");
        }
        assert_eq!(verdict("{\"result\": 0}{\"result\": 1}"), Ok(Verdict::Failed));
    }

    #[test]
    fn an_output_without_an_answer_says_what_is_missing() {
        for output in ["", "done\n", "[0]", "{", "{\"result\": 0", "\u{0}\u{1}"] {
            assert_eq!(verdict(output), Err(InvalidOutput::NoAnswer), "{output:?}");
        }
        assert_eq!(verdict("{}"), Err(InvalidOutput::NoResult));
        assert_eq!(verdict("{\"result\": 0}\n{\"logs\": []}"), Err(InvalidOutput::NoResult));
        assert!(matches!(verdict("{\"result\": 9}"), Err(InvalidOutput::Invalid(_))));
    }

    #[test]
    fn what_looks_like_an_answer_and_is_no_json_is_shown_with_what_is_wrong() {
        for (output, expected) in [
            (
                "{\"result\": 0, \"items\": [{\"price\": NaN}]}\n",
                "expected value at line 1 column 35): `{\"result\": 0, \"items\"",
            ),
            ("{'result': 0}\nbye }", "key must be a string"),
            ("{\"result\": 0, \"items\": [{\"a\": NaN}, {\"result\": 0}]}", "expected value"),
            ("{\"result\": 0, \"a\": \"\\ud800\"}", "hex escape"),
        ] {
            let error = answer(output.as_bytes()).unwrap_err().to_string();
            assert!(
                error.starts_with("what stands last in braces on standard output is not JSON ("),
                "{error}"
            );
            assert!(error.contains(expected), "{error}");
        }
        let latin1 = answer(b"{\"result\": 0, \"a\": \"\xe9\"}").unwrap_err().to_string();
        assert!(latin1.contains("invalid unicode code point"), "{latin1}");
    }

    #[test]
    fn an_answer_of_more_small_items_than_memory_takes_is_refused_before_it_is_read() {
        let output =
            |count| format!("{{\"result\": 0, \"items\": [{}]}}", vec![r#"{"a":1}"#; count].join(","));
        assert_eq!(verdict(&output(100_000)), Ok(Verdict::Done));
        let error = verdict(&output(200_000)).unwrap_err().to_string();
        assert!(error.contains("more than 4194304 values") && error.contains("`items_file`"), "{error}");
    }

    #[test]
    fn any_number_of_brackets_is_looked_through() {
        for start in ["{", "}", "{\"a\":", "{\"a\":[", "{\"", "{}", "\\\"}", "[]}"] {
            let output = start.repeat((1 << 18) / start.len());
            let _ = verdict(&output);
            assert_eq!(verdict(&format!("{output}\n\"\n{{\"result\": 2}}")), Ok(Verdict::Skip), "{start}");
        }
    }

    proptest! {
        #[test]
        fn any_text_may_stand_before_an_answer_that_has_a_line_of_its_own(text in "[^{]{0,200}") {
            prop_assert_eq!(verdict(&format!("{text}\n{{\"result\": 0}}\n")), Ok(Verdict::Done));
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(output in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = answer(&output);
        }
    }
}
