//! Regular expressions of spiders: compiling several as one, describing errors, and limiting a file's number and
//! size.

use regex::{Regex, RegexSet, RegexSetBuilder};
use regex_automata::nfa::thompson::{NFA, WhichCaptures};

use crate::mistake::{Mistake, Sited};

/// Maximum memory of the compiled patterns of one list, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// Maximum number of patterns of a file.
const MAX_PATTERNS: usize = 1_000;
/// Maximum memory of all patterns of a file, in bytes. `\d+` takes 2 KiB, `\w+` 18, and `\w{100}` 1,700.
const MAX_FILE_BYTES: usize = 4 << 20;

/// The remaining allowance for patterns of a file. Its text may be a stranger's, who could keep a core busy with
/// compiling patterns.
#[derive(Debug)]
pub(super) struct Allowance {
    patterns: usize,
    bytes: usize,
    /// Whether the excess has been reported.
    is_exceeded: bool,
}

/// The reason why a pattern is not accepted.
pub(super) enum Untaken {
    /// The pattern is wrong, or the first beyond the limit.
    Wrong(String),
    /// The pattern is a further one beyond the limit.
    TooMany,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { patterns: MAX_PATTERNS, bytes: MAX_FILE_BYTES, is_exceeded: false }
    }
}

impl Allowance {
    /// Returns the memory of the accepted patterns, in bytes.
    pub(super) fn taken(&self) -> usize {
        MAX_FILE_BYTES - self.bytes
    }

    /// Takes the share of this pattern.
    pub(super) fn take(&mut self, pattern: &str) -> Result<(), Untaken> {
        let Some(patterns) = self.patterns.checked_sub(1) else {
            return Err(self.exceeded(format!("the patterns of a file are {MAX_PATTERNS} at most")));
        };
        self.patterns = patterns;
        let config = NFA::config().which_captures(WhichCaptures::None).nfa_size_limit(Some(self.bytes));
        match NFA::compiler().configure(config).build(pattern) {
            Ok(compiled) => self.bytes = self.bytes.saturating_sub(compiled.memory_usage()),
            Err(error) if error.size_limit().is_some() => {
                self.bytes = 0;
                let most = MAX_FILE_BYTES >> 20;
                let what = format!(
                    "with it, the patterns of the file take more than {most} MiB: repeat less in them, or write fewer"
                );
                return Err(self.exceeded(what));
            }
            // Use the words of the crate that compiles it in the end.
            Err(_) => {
                let error = Regex::new(pattern).err();
                let wrong = |error| format!("is not a regular expression: {}", reason(&error));
                return error.map(wrong).map_or(Ok(()), |what| Err(Untaken::Wrong(what)));
            }
        }
        Ok(())
    }

    fn exceeded(&mut self, what: String) -> Untaken {
        match std::mem::replace(&mut self.is_exceeded, true) {
            false => Untaken::Wrong(what),
            true => Untaken::TooMany,
        }
    }
}

/// Returns what is wrong with a pattern, in one line: the error draws the expression with a caret, and its last
/// line has the reason.
pub fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Compiles the patterns under `key` as one set, which takes as long to match as the longest of them. Fails with the
/// invalid patterns.
pub fn all(key: &str, list: &[Sited<String>]) -> Result<RegexSet, Vec<Mistake>> {
    let compile = |patterns: &[&str]| RegexSetBuilder::new(patterns).size_limit(MAX_BYTES).build();
    let all: Vec<&str> = list.iter().map(|pattern| pattern.value.as_str()).collect();
    compile(&all).map_err(|error| {
        let mistaken = list.iter().filter_map(|pattern| {
            let error = compile(&[&pattern.value]).err()?;
            Some(Mistake::at(pattern, format_args!("{key}: {}", reason(&error))))
        });
        let mistakes: Vec<Mistake> = mistaken.collect();
        if mistakes.is_empty() {
            let what = format!("{key}: the patterns together are too large: {}", reason(&error));
            return vec![Mistake { place: list.first().and_then(|pattern| pattern.place), what }];
        }
        mistakes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of these patterns that are accepted, and the errors for the others.
    fn taken<'p>(patterns: impl IntoIterator<Item = &'p str>) -> (usize, Vec<String>) {
        let mut allowance = Allowance::default();
        let (mut taken, mut said) = (0, Vec::new());
        for pattern in patterns {
            match allowance.take(pattern) {
                Ok(()) => taken += 1,
                Err(Untaken::Wrong(what)) => said.push(what),
                Err(Untaken::TooMany) => {}
            }
        }
        (taken, said)
    }

    #[test]
    fn a_file_may_have_a_thousand_patterns_as_people_write_them() {
        let usual =
            [r"/product/\d+", r"(?i)captcha|denied", r"^https?://(www\.)?example\.com/[^?#]*$", "[^/]+/p/"];
        let (number, said) = taken(usual.into_iter().cycle().take(MAX_PATTERNS));
        assert_eq!((number, said), (MAX_PATTERNS, Vec::new()));
        let (number, said) = taken(["a"].into_iter().cycle().take(MAX_PATTERNS + 100));
        assert_eq!(
            (number, said),
            (MAX_PATTERNS, vec!["the patterns of a file are 1000 at most".to_owned()])
        );
    }

    #[test]
    fn patterns_that_take_much_memory_are_refused_together_and_said_once() {
        let (number, said) = taken([r"\w{100}"; 200]);
        assert_eq!((number, said.len()), (2, 1));
        assert!(said[0].contains("take more than 4 MiB"), "{said:?}");
        let (number, said) = taken([r"((\w{50}){50}){50}", "("]);
        assert_eq!((number, said.len()), (0, 2), "{said:?}");
    }

    #[test]
    fn what_is_no_pattern_is_said_in_a_line() {
        let (number, said) = taken(["(", "a"]);
        assert_eq!((number, said), (1, vec!["is not a regular expression: unclosed group".to_owned()]));
    }
}
