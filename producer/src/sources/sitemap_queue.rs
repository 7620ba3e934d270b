//! The order in which sources are read, and the limits on it: an index names whatever its author likes.

use std::collections::{HashSet, VecDeque};

use crate::sources::source::Source;

/// Maximum depth of nested indexes; sitemaps.org allows one level.
pub(crate) const MAX_DEPTH: u8 = 5;

/// Maximum number of sitemaps read because of one named source.
pub(crate) const MAX_SITEMAPS: usize = 100_000;

/// Maximum total length of their names, 32 MB: some 80 bytes each is usual, and all wait in memory.
const MAX_NAMES_BYTES: usize = 32 << 20;

/// The number and total size of names still allowed.
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
    /// Takes one sitemap of this name from the budget; returns `false` if the budget is exceeded.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        if self.sitemaps == 0 || self.bytes < name.len() {
            return false;
        }
        self.sitemaps -= 1;
        self.bytes -= name.len();
        true
    }
}

/// The named sources, each with the sitemaps that it led to. They are read in round robin, so that an index
/// of very many sitemaps delays no other; of the sitemaps from one named source, one is read at a time.
pub(crate) struct SitemapQueue {
    roots: VecDeque<Root>,
    /// Each source in its canonical spelling.
    known: HashSet<Source>,
}

/// A source to read. Until it is taken back, no other source of its root is handed out.
pub(crate) struct QueuedSource {
    pub(crate) source: Source,
    /// The number of indexes above it.
    pub(crate) depth: u8,
    root: Root,
}

struct Root {
    /// The sources to read, each with the number of indexes above it.
    waiting: VecDeque<(Source, u8)>,
    budget: Budget,
}

impl SitemapQueue {
    pub(crate) fn new(sources: Vec<Source>) -> Self {
        let known = sources.iter().map(canonical).collect();
        let root = |source| Root { waiting: VecDeque::from([(source, 0)]), budget: Budget::default() };
        Self { roots: sources.into_iter().map(root).collect(), known }
    }

    /// Returns the next source to read, if there is one that need not wait for another.
    pub(crate) fn next(&mut self) -> Option<QueuedSource> {
        while let Some(mut root) = self.roots.pop_front() {
            if let Some((source, depth)) = root.waiting.pop_front() {
                return Some(QueuedSource { source, depth, root });
            }
        }
        None
    }

    /// Adds a sitemap that the source of `queued` names. Returns `false` if that exceeds the limits; a known
    /// sitemap is ignored.
    pub(crate) fn add(&mut self, queued: &mut QueuedSource, sitemap: Source) -> bool {
        let key = canonical(&sitemap);
        if self.known.contains(&key) {
            return true;
        }
        let is_within = queued.root.budget.take(&sitemap.to_string());
        if is_within {
            queued.root.waiting.push_back((sitemap, queued.depth + 1));
            self.known.insert(key);
        }
        is_within
    }

    /// Takes back a source that has been read: the sitemaps that it led to may be read now.
    pub(crate) fn take_back(&mut self, queued: QueuedSource) {
        self.roots.push_back(queued.root);
    }
}

/// Returns the source for which all its spellings stand.
fn canonical(source: &Source) -> Source {
    match source {
        Source::Web(url) => Source::Web(url.normalised()),
        source => source.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(path: &str) -> Source {
        format!("http://a.example/{path}").parse().unwrap()
    }

    /// Reads the next source, which names these sitemaps.
    fn read(queue: &mut SitemapQueue, named: &[Source]) {
        let mut queued = queue.next().unwrap();
        named.iter().for_each(|sitemap| assert!(queue.add(&mut queued, sitemap.clone())));
        queue.take_back(queued);
    }

    fn named(queue: &mut SitemapQueue) -> Vec<String> {
        let next = || {
            let queued = queue.next()?;
            let name = queued.source.to_string();
            queue.take_back(queued);
            Some(name)
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn named_sources_are_read_in_round_robin() {
        let mut queue = SitemapQueue::new(vec![web("many"), web("few")]);
        read(&mut queue, &["many/0", "many/1", "many/2"].map(web));
        read(&mut queue, &[web("few/0")]);
        let order = ["many/0", "few/0", "many/1", "many/2"].map(|path| format!("http://a.example/{path}"));
        assert_eq!(named(&mut queue), order);
    }

    #[test]
    fn of_what_one_named_source_led_to_one_is_read_at_a_time() {
        let mut queue = SitemapQueue::new(vec![web("index"), web("other")]);
        read(&mut queue, &["index/0", "index/1"].map(web));
        let other = queue.next().unwrap();
        let first = queue.next().unwrap();
        assert_eq!([&other.source, &first.source], [&web("other"), &web("index/0")]);
        assert!(queue.next().is_none(), "the second waits for the first");
        queue.take_back(first);
        assert_eq!(queue.next().unwrap().source, web("index/1"));
    }

    #[test]
    fn a_sitemap_is_read_once_however_it_is_spelt() {
        let mut queue = SitemapQueue::new(vec![web("sitemap.xml")]);
        let spellings = [
            "http://A.EXAMPLE:80/sitemap.xml#x",
            "http://a.example/x/../sitemap.xml",
            "HTTP://a.example/sitemap.xml",
            "http://a.example/%73itemap.xml",
        ];
        read(&mut queue, &spellings.map(|spelling| spelling.parse().unwrap()));
        assert_eq!(named(&mut queue), [""; 0]);
    }

    #[test]
    fn what_one_source_leads_to_is_bounded_in_number_and_size() {
        let mut queue = SitemapQueue::new(vec![web("index")]);
        let mut index = queue.next().unwrap();
        let added = (0..MAX_SITEMAPS + 50).filter(|number| queue.add(&mut index, web(&number.to_string())));
        assert_eq!(added.count(), MAX_SITEMAPS);

        let mut budget = Budget::default();
        let long = "x".repeat(8192);
        assert_eq!((0..MAX_SITEMAPS).filter(|_| budget.take(&long)).count(), MAX_NAMES_BYTES / long.len());
    }
}
