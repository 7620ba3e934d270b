//! The text of an entry, parts of which may come from strangers.

use serde::{Deserialize, Serialize};

use crate::as_text::text;
use crate::text::is_harmful;

/// Maximum length of a message, in bytes.
pub const MAX_MESSAGE: usize = 64 * 1024;

/// The end of a message that was longer.
const CUT: &str = "\n[cut: it was longer than 64 KiB]";

/// A message of one or more lines, at most [`MAX_MESSAGE`] bytes long. It may have line feeds and tabs, as stack
/// traces do, but no other characters that control a terminal or are invisible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct LogMessage(String);

text!(LogMessage);

impl LogMessage {
    /// Returns its first line, and the text after it.
    pub fn first_line(&self) -> (&str, Option<&str>) {
        self.0.split_once('\n').map_or((&self.0, None), |(first, rest)| (first, Some(rest)))
    }
}

impl From<&str> for LogMessage {
    fn from(text: &str) -> Self {
        let is_bad = |c: char| is_harmful(c) && c != '\n' && c != '\t';
        let text = text.trim_end();
        let most = if text.len() <= MAX_MESSAGE { MAX_MESSAGE } else { MAX_MESSAGE - CUT.len() };
        let mut out = String::with_capacity(text.len().min(MAX_MESSAGE));
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let c = match c {
                '\r' if rest.peek() == Some(&'\n') => continue,
                bad if is_bad(bad) => ' ',
                good => good,
            };
            if out.len() + c.len_utf8() > most {
                out.push_str(CUT);
                return Self(out);
            }
            out.push(c);
        }
        // Harmful characters at the end have become white space by now.
        out.truncate(out.trim_end().len());
        Self(out)
    }
}

impl From<String> for LogMessage {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stack_trace_keeps_its_lines_and_loses_what_acts_on_a_terminal() {
        let trace = "Error: \u{1b}[31mno\u{1b}[0m\r\n\tat main\r\n\u{202e}at\u{0} \u{9b}2J\n\n";
        let message = LogMessage::from(trace);
        assert_eq!(message.as_str(), "Error:  [31mno [0m\n\tat main\n at   2J");
        assert_eq!(message.first_line(), ("Error:  [31mno [0m", Some("\tat main\n at   2J")));
        assert_eq!(LogMessage::from("one").first_line(), ("one", None));
    }

    #[test]
    fn a_message_that_is_too_long_says_so() {
        let message = LogMessage::from("ä".repeat(1_000_000));
        assert!(message.as_str().len() <= MAX_MESSAGE && message.as_str().ends_with(CUT));
        let just = "x".repeat(MAX_MESSAGE);
        assert_eq!(LogMessage::from(&*just).as_str(), just);
    }

    proptest! {
        #[test]
        fn any_text_becomes_a_message_that_stays_as_it_is(text in "(?s).{0,400}", times in 1usize..200) {
            let once = LogMessage::from(text.repeat(times));
            prop_assert!(once.as_str().len() <= MAX_MESSAGE);
            prop_assert!(!once.as_str().contains(|c| is_harmful(c) && c != '\n' && c != '\t'));
            prop_assert_eq!(LogMessage::from(once.as_str()), once);
        }
    }
}
