//! The selection of events.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};

/// Maximum length of an AMQP routing key.
const MAX_BYTES: usize = 255;

/// A pattern for names of events, as topic exchanges use them: words between dots, where `*` stands for exactly
/// one, and `#` for any number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

/// The error for a text that is no [`Pattern`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of events: write `crawl.finished`, `crawl.*`, or `#` for all")]
pub struct NoPattern(String);

impl Pattern {
    /// Returns the pattern for every event.
    pub fn all() -> Self {
        Self("#".to_owned())
    }

    /// Returns the patterns for every event of a crawl.
    pub fn of_crawls() -> Vec<Self> {
        ["crawl.*", "session.*"].map(|text| Self(text.to_owned())).to_vec()
    }

    /// Returns whether an event of this name matches.
    pub fn fits(&self, name: &str) -> bool {
        let [pattern, words] = [&self.0, name].map(|text| text.split('.').collect::<Vec<_>>());
        fits(&pattern, &words)
    }
}

fn fits(pattern: &[&str], words: &[&str]) -> bool {
    match (pattern, words) {
        ([], words) => words.is_empty(),
        (["#", rest @ ..], words) => (0..=words.len()).any(|from| fits(rest, &words[from..])),
        ([one, rest @ ..], [word, words @ ..]) => (*one == "*" || one == word) && fits(rest, words),
        (_, []) => false,
    }
}

impl FromStr for Pattern {
    type Err = NoPattern;
    fn from_str(text: &str) -> Result<Self, NoPattern> {
        let is_word = |word: &str| {
            let is_plain = word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte));
            ["*", "#"].contains(&word) || (!word.is_empty() && is_plain)
        };
        let words = || text.split('.');
        // A second `#` would change nothing.
        let is_pattern = words().all(is_word) && words().filter(|word| *word == "#").count() <= 1;
        if is_pattern && text.len() <= MAX_BYTES {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoPattern(text.chars().filter(|c| !c.is_control()).take(64).collect()))
        }
    }
}

text!(Pattern);
as_text!(Pattern);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_the_events_that_a_topic_exchange_would_send_for_it() {
        for (pattern, name, fits) in [
            ("crawl.finished", "crawl.finished", true),
            ("crawl.finished", "crawl.cancelled", false),
            ("crawl.*", "crawl.finished", true),
            ("crawl.*", "crawl", false),
            ("crawl.*", "host.blocked", false),
            ("*.finished", "crawl.finished", true),
            ("#", "crawl.finished", true),
            ("#", "", true),
            ("crawl.#", "crawl", true),
            ("#.finished", "a.b.finished", true),
            ("#.finished", "a.b.started", false),
        ] {
            assert_eq!(pattern.parse::<Pattern>().unwrap().fits(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn what_no_event_can_be_called_is_no_pattern() {
        for wrong in ["", ".", "crawl.", "crawl*", "Crawl.finished", "a b", "#.a.#", "crawl.\n"] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong:?}");
        }
    }
}
