//! The answer of a program that is started for each task.

use serde_json::{Map, Value};

use super::answer::Answer;
use super::part::{InvalidPart, Part};

/// The longest argument that Linux takes, in bytes, without its final NUL. A longer task is given on standard input alone.
pub const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;

/// So many closing braces are looked at, the last ones, for the end of the last object.
const MAX_ENDS: usize = 32;

/// What stands in place of a task that is too long for an argument.
pub const ON_STANDARD_INPUT: &str = "-";

/// Why an output is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOutput {
    /// There is no JSON object in it.
    #[error(
        "the program wrote no JSON object to its standard output: its answer is the last one there, as {{\"result\": 0}}"
    )]
    NoAnswer,
    /// The last JSON object in it does not say what becomes of the task.
    #[error(
        "the last JSON object on standard output has no `result`: it is 0 (done), 1 (failed) or 2 (left out)"
    )]
    NoResult,
    /// The last JSON object in it says what no answer says.
    #[error("the last JSON object on standard output: {0}")]
    Invalid(#[from] InvalidPart),
}

/// The answer in all that a program wrote to its standard output: the last JSON object there. Anything may stand before and after
/// it, also on its line, but for many closing braces after it.
///
/// Takes time in proportion to the output.
pub fn answer(output: &[u8]) -> Result<Answer, InvalidOutput> {
    let object = last_object(output).ok_or(InvalidOutput::NoAnswer)?;
    let mut part = Part::of(object, output.len())?;
    let verdict = part.verdict.take().ok_or(InvalidOutput::NoResult)?;
    part.logs.truncate(super::MAX_LOGS);
    Ok(part.ending(verdict))
}

/// The JSON object that ends last.
fn last_object(output: &[u8]) -> Option<Map<String, Value>> {
    let mut end = output.len();
    for _ in 0..MAX_ENDS {
        end = memchr::memrchr(b'}', &output[..end])?;
        let object =
            start_of(&output[..=end]).and_then(|start| serde_json::from_slice(&output[start..=end]).ok());
        if object.is_some() {
            return object;
        }
    }
    None
}

/// Where the object begins that ends with this text, if it does. From its end on to its start: what stands before an object may be
/// anything, an object is known.
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

/// Whether a character that follows this text is escaped by it.
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
            "{not json {\"result\": 0}}",
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
