//! Regular expressions of spiders: several as one, and what is wrong with one.

use regex::{RegexSet, RegexSetBuilder};

use super::place::{Mistake, Sited};

/// The most memory that the compiled patterns of one list may take.
const MAX: usize = 16 << 20;

/// What is wrong, in one line: the error draws the expression with a caret, and its last line says why.
pub fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// The patterns that stand under `key` as one, which takes as long to match as the longest of them.
pub(super) fn all(key: &str, list: &[Sited<String>]) -> Result<RegexSet, Vec<Mistake>> {
    let compile = |patterns: &[&str]| RegexSetBuilder::new(patterns).size_limit(MAX).build();
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
