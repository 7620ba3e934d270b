//! The rules of one file that apply to one crawler.

use std::cmp::Reverse;

use super::path::Path;
use super::pattern::{Effort, Pattern};

/// Rules in one piece of memory, the most specific first, so that the first match decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Their patterns, one after the other.
    patterns: Box<[u8]>,
    rules: Box<[Rule]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// The end of its pattern in `patterns`.
    end: u32,
    /// The hash of a part that every matching path has; of all its parts the one that occurs in the fewest rules.
    part: Option<u16>,
    allow: bool,
}

impl Rules {
    /// Creates the rules from patterns, each with whether it allows. Duplicates are dropped.
    pub(super) fn new(mut all: Vec<(Pattern, bool)>) -> Self {
        all.sort_by(|(one, one_allows), (other, other_allows)| {
            let rank = |pattern: &Pattern, allow| (Reverse(pattern.octets().len()), Reverse(allow));
            rank(one, *one_allows)
                .cmp(&rank(other, *other_allows))
                .then_with(|| one.octets().cmp(other.octets()))
        });
        all.dedup();
        let mut having = vec![0_u16; 1 << 16];
        for part in all.iter().flat_map(|(pattern, _)| pattern.parts()) {
            let count = &mut having[usize::from(part)];
            *count = count.saturating_add(1);
        }
        let (mut patterns, mut rules) = (Vec::new(), Vec::with_capacity(all.len()));
        for (pattern, allow) in all {
            patterns.extend_from_slice(pattern.octets());
            let part = pattern.parts().min_by_key(|part| having[usize::from(*part)]);
            // No file has more octets than this can count.
            rules.push(Rule { end: patterns.len() as u32, part, allow });
        }
        Self { patterns: patterns.into(), rules: rules.into() }
    }

    /// Returns whether the rules allow `path`. Rules and a path that were made to take long count as forbidden.
    pub(super) fn allow(&self, path: &Path) -> bool {
        let mut effort = Effort::default();
        let mut start = 0;
        for rule in &self.rules {
            let pattern = &self.patterns[start..rule.end as usize];
            start = rule.end as usize;
            if rule.part.is_some_and(|part| !path.may_have(part)) {
                continue;
            }
            let fits = Pattern::fits(pattern, path, &mut effort);
            if effort.is_spent() {
                return false;
            }
            if fits {
                return rule.allow;
            }
        }
        true
    }

    /// Returns their size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.patterns.len() + size_of_val(&*self.rules)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_most_specific_rule_that_fits_decides(
            rules in proptest::collection::vec(("/[abc*]{0,6}[$]?", any::<bool>()), 0..8),
            path in "/[abc]{0,8}",
        ) {
            let all: Vec<(Pattern, bool)> = rules
                .iter()
                .map(|(pattern, allow)| (Pattern::parse(pattern.as_bytes()).unwrap(), *allow))
                .collect();
            let path = Path::parse(path.as_bytes());
            let fits =
                |(pattern, _): &&(Pattern, bool)| Pattern::fits(pattern.octets(), &path, &mut Effort::default());
            let decides = all.iter().filter(fits).max_by_key(|(pattern, allow)| (pattern.octets().len(), *allow));
            prop_assert_eq!(Rules::new(all.clone()).allow(&path), decides.is_none_or(|(_, allow)| *allow));
        }
    }
}
