//! Parses pages so that none of them can stop a worker.
//!
//! The extractor's time is proportional to the size of the page, and pages beyond its limits are refused.
//! Other problems are contained here: a panic is a failure of its page, and a page that takes too long is
//! abandoned with its thread.

mod threads;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use moka::sync::Cache;
use trawl_common::frontier::Request;
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::web::host::HostKey;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::{Extraction, Extractor};
use trawl_web::MemoryBudget;

use self::threads::{Lost, PARSE_TIMEOUT, Threads, Weight};

/// Maximum size of a page that is parsed where it arrived, in bytes, if it needs no tree: handing it to a
/// thread and waiting for the answer costs as much as half a page of usual size.
const MAX_IN_PLACE: usize = 256 * 1024;

/// A page that takes longer is heavy, and so are all pages of its domain for a while.
const HEAVY_TIME: Duration = Duration::from_millis(100);

/// A larger page may be heavy, in bytes.
const LARGE_BYTES: usize = 2 << 20;

/// The time for which a domain counts as heavy, and the maximum number of such domains.
const HEAVY_TTL: Duration = Duration::from_secs(60);
const MAX_DOMAINS: u64 = 10_000;

/// Approximate maximum size of a tree, in bytes per byte of its page: a node of some 200 bytes for every
/// three of them (`<b>`), and the text once more.
const TREE: u64 = 70;

/// Maximum size of a tree, in bytes, which follows from the maximum number of its nodes.
const MAX_TREE: u64 = 128 << 20;

/// Reads pages, large ones on its own threads. Domains with slow pages get at most half of these, and half of
/// the memory for trees.
pub(crate) struct Parser {
    threads: Threads,
    heavy: Cache<HostKey, ()>,
    light_trees: MemoryBudget,
    heavy_trees: MemoryBudget,
}

impl Parser {
    /// Returns a parser with as many threads as the machine has cores, and at least two. All trees together
    /// take at most `memory` bytes.
    pub(crate) fn start(memory: u64) -> io::Result<Self> {
        let threads = Threads::start(available_parallelism()?.get().max(2))?;
        let heavy = Cache::builder().max_capacity(MAX_DOMAINS).time_to_live(HEAVY_TTL).build();
        let half = MemoryBudget::new(memory / 2);
        Ok(Self { threads, heavy, light_trees: half, heavy_trees: MemoryBudget::new(memory / 2) })
    }

    /// Extracts from a page that was fetched from `url` by `request`, if that is not plain. A page that is refused or
    /// takes too long is a failure of class `parse`, and one that makes the parser panic of class `crash`. Waits while
    /// all threads are busy.
    pub(crate) async fn read(
        &self,
        extractor: Arc<Extractor>,
        url: CanonicalUrl,
        response: Response,
        request: Option<Arc<Request>>,
    ) -> Result<Extraction, Failure> {
        if response.body.len() <= MAX_IN_PLACE && !extractor.needs_tree() {
            let never = AtomicBool::new(false);
            let extract = || extractor.extract_from(&url, &response, request.as_deref(), &never);
            return catch_unwind(AssertUnwindSafe(extract))
                .unwrap_or_else(|panic| Err(lost(Lost::new(&*panic))));
        }
        let domain = HostKey::domain(&url.host());
        let is_heavy = response.body.len() > LARGE_BYTES || self.heavy.contains_key(&domain);
        let weight = if is_heavy { Weight::Heavy } else { Weight::Light };
        let trees = if is_heavy { &self.heavy_trees } else { &self.light_trees };
        let tree = (response.body.len() as u64).saturating_mul(TREE).min(MAX_TREE);
        let share = if extractor.needs_tree() { Some(trees.take(tree).await) } else { None };
        let work = move |given_up: &AtomicBool| {
            let began = Instant::now();
            // Held until the tree is gone, even if the caller has stopped waiting.
            let _share = share;
            (extractor.extract_from(&url, &response, request.as_deref(), given_up), began.elapsed())
        };
        let (extraction, took) = match self.threads.run(weight, work).await {
            Ok(done) => done,
            Err(reason) => (Err(lost(reason)), PARSE_TIMEOUT),
        };
        if took > HEAVY_TIME {
            self.heavy.insert(domain, ());
        }
        extraction
    }
}

fn lost(reason: Lost) -> Failure {
    match reason {
        Lost::Panicked(message) => Failure::new(Class::Crash, format_args!("the parser panicked: {message}")),
        Lost::Overdue => Failure::new(Class::Parse, format_args!("not parsed within {PARSE_TIMEOUT:?}")),
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::names::SpiderName;
    use trawl_common::settings;
    use trawl_common::spider::Spider;
    use trawl_common::time::UnixMs;
    use trawl_common::web::headers::Headers;

    use super::*;

    fn response(body: String) -> Response {
        Response {
            status: 200,
            headers: Headers::default(),
            redirected_to: None,
            fetched_at: UnixMs(0),
            address: None,
            body: body.into(),
        }
    }

    /// Returns an extractor that streams, or one that needs a tree for the field `heading`.
    fn extractor(needs_tree: bool) -> Arc<Extractor> {
        let mut settings = settings::Items::default();
        if needs_tree {
            settings.fields.insert("heading".to_owned(), "h1".to_owned());
        }
        Arc::new(Extractor::new(&Spider::without_file(SpiderName::default(), &settings)).unwrap())
    }

    #[tokio::test]
    async fn small_pages_large_pages_and_pages_with_a_tree_are_read_alike() {
        let url: CanonicalUrl = "https://example.com/".parse().unwrap();
        for needs_tree in [false, true] {
            let parser = Parser::start(1 << 20).unwrap();
            for filler in [0, MAX_IN_PLACE] {
                let page = format!("<title>a</title>{}<h1>b</h1>", " ".repeat(filler));
                let extraction =
                    parser.read(extractor(needs_tree), url.clone(), response(page), None).await.unwrap();
                let fields = &extraction.items[0].fields;
                assert_eq!(fields["title"], "a");
                assert_eq!(fields.get("heading").is_some_and(|heading| heading == "b"), needs_tree);
            }
        }
    }

    #[tokio::test]
    async fn a_tree_waits_for_its_share_of_the_memory_and_heavy_ones_have_no_more_than_half() {
        let url: CanonicalUrl = "https://example.com/".parse().unwrap();
        let parser = Parser::start(1 << 20).unwrap();
        let page = || response("<h1>b</h1>".to_owned());
        let heavy = parser.heavy_trees.take(1 << 19).await;
        assert!(parser.read(extractor(true), url.clone(), page(), None).await.is_ok());
        parser.heavy.insert(HostKey::domain(&url.host()), ());
        let mut waits = Box::pin(parser.read(extractor(true), url.clone(), page(), None));
        assert!(futures::poll!(&mut waits).is_pending());
        assert!(parser.read(extractor(false), url.clone(), page(), None).await.is_ok(), "without a tree");
        assert!(futures::poll!(&mut waits).is_pending());
        drop(heavy);
        assert!(waits.await.is_ok());
    }

    #[test]
    fn a_lost_page_says_why_in_printable_words() {
        let failure = lost(Lost::Panicked("no such \u{1b}[31m".to_owned()));
        assert_eq!(failure.to_string(), "crash: the parser panicked: no such  [31m");
        assert_eq!(lost(Lost::Overdue).to_string(), "parse: not parsed within 10s");
    }
}
