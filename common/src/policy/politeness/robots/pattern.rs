//! Patterns, and the paths that they match (RFC 9309, 2.2.2 and 2.2.3).

use memchr::memmem;

use super::path::{self, PART, Path};
use super::spelling::normalise;

/// Maximum work for one path, in steps of one or two nanoseconds: half a millisecond, because the URLs of other
/// hosts wait for it. Rules that take longer were made to: a full file of honest rules with stars takes 30 µs for
/// a path of 2 KB.
const MAX_WORK: usize = 256 * 1024;

/// The cost of looking at a pattern with a star, of searching for a piece, and of each octet searched.
const PATTERN_COST: usize = 16;
const SEARCH_COST: usize = 64;
const OCTET_COST: usize = 2;

/// The work that may still be done for one path.
pub(super) struct Effort(usize);

impl Default for Effort {
    fn default() -> Self {
        Self(MAX_WORK)
    }
}

impl Effort {
    fn spend(&mut self, work: usize) {
        self.0 = self.0.saturating_sub(work);
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// A rule's pattern for paths: `*` stands for anything, and a final `$` for the end of the path.
///
/// Everything else is normalised, so that neither character occurs in it as itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Box<[u8]>);

impl Pattern {
    /// Parses a pattern as written; `None` for an empty one, which has no meaning.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (text, end) = text.strip_suffix(b"$").map_or((text, &b""[..]), |text| (text, b"$"));
        let mut pattern = Vec::with_capacity(text.len() + end.len());
        for (index, piece) in text.split(is_star).enumerate() {
            if index > 0 {
                pattern.push(b'*');
            }
            normalise(piece, &mut pattern);
        }
        pattern.extend_from_slice(end);
        Some(Self(pattern.into()))
    }

    /// Returns the octets as stored; the more, the more specific the pattern.
    pub(super) fn octets(&self) -> &[u8] {
        &self.0
    }

    /// Returns the hashes of all parts that any matching path has.
    pub(super) fn parts(&self) -> impl Iterator<Item = u16> {
        without_end(&self.0).0.split(is_star).flat_map(parts)
    }

    /// Returns whether the pattern of these octets matches the start of `path`, in time proportional to the sum of
    /// their lengths: each piece is searched from the first occurrence of the one before it, and an earlier
    /// occurrence never leaves less for the others. If it takes more work than allowed, the answer is no.
    pub(super) fn fits(pattern: &[u8], path: &Path, effort: &mut Effort) -> bool {
        let (pattern, is_anchored) = without_end(pattern);
        let mut pieces = pattern.split(is_star);
        let Some(mut rest) = pieces.next().and_then(|first| path.octets().strip_prefix(first)) else {
            return false;
        };
        let rest_of_pattern = pieces.clone();
        let Some(last) = pieces.next_back() else { return !is_anchored || rest.is_empty() };
        effort.spend(PATTERN_COST);
        let mut may_have = |part| {
            effort.spend(1);
            path.may_have(part) && !effort.is_spent()
        };
        if !rest_of_pattern.flat_map(parts).all(&mut may_have) {
            return false;
        }
        for piece in pieces {
            let Some(after) = after(rest, piece, effort) else { return false };
            rest = after;
        }
        if is_anchored { rest.ends_with(last) } else { after(rest, last, effort).is_some() }
    }
}

/// Splits the sign for the end of the path off a pattern. Returns whether there was one.
fn without_end(pattern: &[u8]) -> (&[u8], bool) {
    pattern.strip_suffix(b"$").map_or((pattern, false), |pattern| (pattern, true))
}

/// Returns the hashes of the parts of a piece, each as long as possible.
fn parts(piece: &[u8]) -> impl Iterator<Item = u16> {
    piece.windows(piece.len().clamp(1, PART)).map(path::hash)
}

/// Returns the octets after the first occurrence of `piece`.
fn after<'a>(octets: &'a [u8], piece: &[u8], effort: &mut Effort) -> Option<&'a [u8]> {
    if effort.is_spent() {
        return None;
    }
    let end = memmem::find(octets, piece).map(|at| at + piece.len());
    effort.spend(SEARCH_COST + OCTET_COST * end.unwrap_or(octets.len()));
    end.map(|end| &octets[end..])
}

fn is_star(byte: &u8) -> bool {
    *byte == b'*'
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    fn fits(pattern: &str, path: &str) -> bool {
        let pattern = Pattern::parse(pattern.as_bytes()).unwrap();
        Pattern::fits(pattern.octets(), &Path::parse(path.as_bytes()), &mut Effort::default())
    }

    #[test]
    fn hostile_patterns_cost_time_in_proportion_to_their_length_and_the_paths() {
        for hostile in [
            |len| format!("/{}*b", "*a".repeat(len / 2)),
            |len| format!("/*{}b", "a".repeat(len / 2)),
            |len| format!("/{}", "*aab".repeat(len / 4)),
        ] {
            let (short, long) = (least_time(hostile, 1 << 12), least_time(hostile, 1 << 16));
            // Sixteen times the work; a matcher that tries again would take the square of that.
            assert!(long < short * 100, "{short:?} and {long:?} for {}...", &hostile(12));
        }
    }

    /// The least of many, as the machine may be busy with other things.
    fn least_time(hostile: fn(usize) -> String, len: usize) -> Duration {
        let pattern = Pattern::parse(hostile(len).as_bytes()).unwrap();
        // It has all parts of the patterns.
        let path = Path::parse(format!("/baab{}", "a".repeat(len)).as_bytes());
        let run = || {
            let start = Instant::now();
            assert!(!Pattern::fits(pattern.octets(), &path, &mut Effort::default()));
            start.elapsed()
        };
        std::iter::repeat_with(run).take(20).min().unwrap()
    }

    /// Tries everything.
    fn fits_naively(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], _) => true,
            ([b'$'], path) => path.is_empty(),
            ([b'*', pattern @ ..], path) => (0..=path.len()).any(|skip| fits_naively(pattern, &path[skip..])),
            ([wanted, pattern @ ..], [found, path @ ..]) => wanted == found && fits_naively(pattern, path),
            ([_, ..], []) => false,
        }
    }

    proptest! {
        #[test]
        fn a_pattern_fits_what_trying_everything_finds(pattern in "/[ab*]{0,8}[$]?", path in "/[ab]{0,12}") {
            prop_assert_eq!(fits(&pattern, &path), fits_naively(pattern.as_bytes(), path.as_bytes()));
        }
    }
}
