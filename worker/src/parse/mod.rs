//! Parsing pages so that none of them can stop a worker.
//!
//! The extractor's time is in proportion to the page, and pages beyond its limits are refused. What may still go wrong
//! stays here: a panic is a failure of its page, and a page that takes too long is left to its thread.

mod threads;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;

use serde_json::{Map, Value};
use trawl_common::outcome::{Class, Failure};
use trawl_common::ports::Response;
use trawl_common::url::CanonicalUrl;

use self::threads::{LONGEST, Lost, Threads};
use crate::extract::Extractor;

/// A page no larger than this, of which no tree is built, is parsed where it arrived: to hand it to a thread and wait
/// for the answer costs as much as half a page of usual size.
const IN_PLACE: usize = 256 * 1024;

/// Reads pages with one extractor, large ones on threads of its own.
pub(crate) struct Parser {
    extractor: Arc<Extractor>,
    threads: Threads,
}

impl Parser {
    /// A parser with as many threads as the machine has cores.
    pub(crate) fn start(extractor: Extractor) -> io::Result<Self> {
        let threads = Threads::start(available_parallelism()?.get())?;
        Ok(Self { extractor: Arc::new(extractor), threads })
    }

    /// The fields of the page that `url` answered with. A page that is refused, takes too long or makes the parser panic
    /// is a failure of class `parse`. Waits while all threads are busy.
    pub(crate) async fn fields(
        &self,
        url: CanonicalUrl,
        response: Response,
    ) -> Result<Map<String, Value>, Failure> {
        if response.body.len() <= IN_PLACE && !self.extractor.needs_tree() {
            let never = AtomicBool::new(false);
            let extract = || self.extractor.extract(&url, &response, &never);
            return catch_unwind(AssertUnwindSafe(extract))
                .unwrap_or_else(|panic| Err(lost(Lost::of(&*panic))));
        }
        let extractor = Arc::clone(&self.extractor);
        let work = move |given_up: &AtomicBool| extractor.extract(&url, &response, given_up);
        self.threads.run(work).await.unwrap_or_else(|reason| Err(lost(reason)))
    }
}

fn lost(reason: Lost) -> Failure {
    match reason {
        Lost::Panicked(message) => Failure::new(Class::Parse, format_args!("the parser panicked: {message}")),
        Lost::Overdue => Failure::new(Class::Parse, format_args!("not parsed within {LONGEST:?}")),
    }
}

#[cfg(test)]
mod tests {
    use trawl_common::settings;

    use super::*;

    fn response(body: String) -> Response {
        Response { status: 200, content_type: None, redirected_to: None, body: body.into() }
    }

    #[tokio::test]
    async fn small_pages_large_pages_and_pages_with_a_tree_are_read_alike() {
        let url: CanonicalUrl = "https://example.com/".parse().unwrap();
        let own = settings::Items {
            fields: [("heading".to_owned(), "h1".to_owned())].into(),
            ..settings::Items::default()
        };
        for settings in [settings::Items::default(), own] {
            let parser = Parser::start(Extractor::new(&settings).unwrap()).unwrap();
            for filler in [0, IN_PLACE] {
                let page = format!("<title>a</title>{}<h1>b</h1>", " ".repeat(filler));
                let fields = parser.fields(url.clone(), response(page)).await.unwrap();
                assert_eq!(fields["title"], "a");
                assert_eq!(
                    fields.get("heading").is_some_and(|heading| heading == "b"),
                    !settings.fields.is_empty()
                );
            }
        }
    }

    #[test]
    fn a_lost_page_says_why_in_printable_words() {
        let failure = lost(Lost::Panicked("no such \u{1b}[31m".to_owned()));
        assert_eq!(failure.to_string(), "parse: the parser panicked: no such  [31m");
        assert_eq!(lost(Lost::Overdue).to_string(), "parse: not parsed within 10s");
    }
}
