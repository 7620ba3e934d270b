//! Which source is read next, and which is not read at all: an index names whatever its author likes.

use std::collections::{HashSet, VecDeque};

use crate::source::Source;

/// How deep indexes may be nested; sitemaps.org allows one level.
pub(crate) const MAX_DEPTH: u8 = 5;

/// How many sitemaps are read because of one named source.
pub(crate) const MAX_SITEMAPS: usize = 100_000;

/// How long their names may be together, 32 MB: some 80 bytes each is usual, and all wait in memory.
const MAX_NAMES_BYTES: usize = 32 << 20;

/// What may still be named.
pub(crate) struct Budget {
    sitemaps: usize,
    bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { sitemaps: MAX_SITEMAPS, bytes: MAX_NAMES_BYTES }
    }
}

impl Budget {
    /// Takes one sitemap of this name, if there is room.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        if self.sitemaps == 0 || self.bytes < name.len() {
            return false;
        }
        self.sitemaps -= 1;
        self.bytes -= name.len();
        true
    }
}

/// The sources that a person named, each with the sitemaps that it led to. They take turns, so that an index of very
/// many sitemaps holds up no other.
pub(crate) struct Itinerary {
    roots: VecDeque<Root>,
    known: HashSet<Source>,
}

struct Root {
    /// Each with the number of indexes above it.
    waiting: VecDeque<(Source, u8)>,
    budget: Budget,
}

impl Itinerary {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        let known = sources.iter().cloned().collect();
        let root = |source| Root { waiting: VecDeque::from([(source, 0)]), budget: Budget::default() };
        Self { roots: sources.into_iter().map(root).collect(), known }
    }

    /// The source to read now, and the number of indexes above it.
    pub(crate) fn next(&mut self) -> Option<(Source, u8)> {
        while let Some(mut root) = self.roots.pop_front() {
            if let Some(next) = root.waiting.pop_front() {
                self.roots.push_back(root);
                return Some(next);
            }
        }
        None
    }

    /// Adds a sitemap that the latest source names, below `depth` indexes. Returns `false` if it is one too many; one
    /// that is known already is none.
    pub(crate) fn add(&mut self, sitemap: Source, depth: u8) -> bool {
        let Some(root) = self.roots.back_mut().filter(|_| !self.known.contains(&sitemap)) else {
            return true;
        };
        let has_room = root.budget.take(&sitemap.to_string());
        if has_room {
            root.waiting.push_back((sitemap.clone(), depth));
            self.known.insert(sitemap);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(path: &str) -> Source {
        format!("http://a.example/{path}").parse().unwrap()
    }

    fn named(itinerary: &mut Itinerary) -> Vec<String> {
        std::iter::from_fn(|| itinerary.next()).map(|(source, _)| source.to_string()).collect()
    }

    #[test]
    fn named_sources_take_turns() {
        let mut itinerary = Itinerary::new(vec![web("many"), web("few")]);
        itinerary.next();
        (0..3).for_each(|number| assert!(itinerary.add(web(&format!("many/{number}")), 1)));
        itinerary.next();
        itinerary.add(web("few/0"), 1);
        let order = ["many/0", "few/0", "many/1", "many/2"].map(|path| format!("http://a.example/{path}"));
        assert_eq!(named(&mut itinerary), order);
    }

    #[test]
    fn a_sitemap_is_read_once_however_it_is_spelt() {
        let mut itinerary = Itinerary::new(vec![web("sitemap.xml")]);
        itinerary.next();
        for spelling in [
            "http://A.EXAMPLE:80/sitemap.xml#x",
            "http://a.example/x/../sitemap.xml",
            "HTTP://a.example/sitemap.xml",
        ] {
            assert!(itinerary.add(spelling.parse().unwrap(), 1));
        }
        assert_eq!(named(&mut itinerary), [""; 0]);
    }

    #[test]
    fn what_one_source_leads_to_is_bounded_in_number_and_size() {
        let mut itinerary = Itinerary::new(vec![web("index")]);
        itinerary.next();
        let added = (0..MAX_SITEMAPS + 50).filter(|number| itinerary.add(web(&number.to_string()), 1));
        assert_eq!(added.count(), MAX_SITEMAPS);

        let mut budget = Budget::default();
        let long = "x".repeat(8192);
        assert_eq!((0..MAX_SITEMAPS).filter(|_| budget.take(&long)).count(), MAX_NAMES_BYTES / long.len());
    }
}
