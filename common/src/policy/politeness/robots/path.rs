//! The path that rules are matched against.

use super::spelling::normalise;
use crate::web::url::CanonicalUrl;

/// Maximum number of octets of a part.
pub(super) const PART: usize = 3;

/// The path and the query of a URL, normalised, with all its parts of up to three octets. A pattern that needs a
/// part that is not there is rejected without a search.
pub(super) struct Path {
    octets: Vec<u8>,
    /// A bit for each part, by its hash. A missing part may seem to be there.
    parts: Box<[u64; 1 << 10]>,
}

impl Path {
    pub(super) fn from_url(url: &CanonicalUrl) -> Self {
        let rest = url.as_str().split_once("://").map_or("", |(_, rest)| rest);
        let start = rest.find('/').unwrap_or(rest.len());
        Self::parse(&rest.as_bytes()[start..])
    }

    pub(super) fn parse(text: &[u8]) -> Self {
        let mut octets = Vec::with_capacity(text.len());
        normalise(text, &mut octets);
        let mut parts = Box::new([0; 1 << 10]);
        for len in 1..=PART {
            for part in octets.windows(len) {
                let (word, bit) = place(hash(part));
                parts[word] |= bit;
            }
        }
        Self { octets, parts }
    }

    /// Returns whether it is the path of robots.txt itself.
    pub(super) fn is_robots_txt(&self) -> bool {
        self.octets == b"/robots.txt"
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Returns whether it may have a part of this hash; if not, it has none.
    pub(super) fn may_have(&self, hash: u16) -> bool {
        let (word, bit) = place(hash);
        self.parts[word] & bit != 0
    }
}

/// Returns the hash of a part.
pub(super) fn hash(part: &[u8]) -> u16 {
    let number = match *part {
        [one] => u32::from_be_bytes([1, 0, 0, one]),
        [one, two] => u32::from_be_bytes([2, 0, one, two]),
        [one, two, three] => u32::from_be_bytes([3, one, two, three]),
        _ => 0,
    };
    (number.wrapping_mul(0x9e37_79b1) >> 16) as u16
}

/// Returns the word and the bit of a hash.
fn place(hash: u16) -> (usize, u64) {
    (usize::from(hash >> 6), 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_path_may_have_each_of_its_parts(path in "/[a-z?=&%]{0,40}", at in 0..38_usize, len in 1..4_usize) {
            let path = Path::parse(path.as_bytes());
            if let Some(part) = path.octets().get(at..at + len) {
                prop_assert!(path.may_have(hash(part)));
            }
        }
    }

    #[test]
    fn a_short_path_seems_to_have_few_parts_that_it_has_not() {
        let path = Path::parse(format!("/{}", "shop/list?page=2&sort=".repeat(5)).as_bytes());
        let absent =
            (0..10_000_u32).map(|number| number.to_be_bytes()).filter(|part| path.may_have(hash(&part[1..])));
        assert!(absent.count() < 100);
    }
}
