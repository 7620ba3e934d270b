//! What is remembered of a URL's page, and what that spares, in a crawl that fetches pages again.

use trawl_common::frontier::outcome::{Class, Failure, Outcome, Skip};
use trawl_common::ports::{Memory, OpenCrawl, Response, Terms};
use trawl_common::spider::Recrawl;
use trawl_common::spider::item::{Change, Item};
use trawl_common::spider::page_history::{self, Tally, Validators, Visited};
use trawl_common::time::UnixMs;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use crate::items_file::InFile;
use crate::job::Job;
use crate::shared::Shared;

/// What a job knows of its page before it asks.
pub(crate) struct History {
    recrawl: Recrawl,
    /// When the crawl started.
    start: UnixMs,
    /// The last visit.
    last: Option<Visited>,
}

impl History {
    /// What is remembered of a job's page; nothing at no cost, if its crawl fetches each page once, and nothing of a request.
    pub(crate) async fn of(shared: &Shared, job: &Job) -> Self {
        let (crawl, url) = (&job.message.crawl, &job.url);
        let OpenCrawl { terms: Terms { recrawl, .. }, started: start } = job.crawl;
        if recrawl.is_never() || job.request().is_some() {
            return Self { recrawl: Recrawl::Never, start, last: None };
        }
        let looking = || shared.ports.pages.look(&crawl.spider, std::slice::from_ref(url));
        let mut known = shared.health.until_done("looking up what is remembered", looking).await;
        Self { recrawl, start, last: known.pop().flatten() }
    }

    /// Why the page need not be asked for, if it need not.
    pub(crate) fn reason_to_skip(&self) -> Option<Skip> {
        let last = self.before()?;
        self.recrawl.reason_to_skip(Some(last.fetched_at), None, UnixMs::now())
    }

    /// Whether a response of the cache may stand for a new one.
    pub(crate) fn may_use_cached(&self, response: &Response) -> bool {
        self.recrawl.may_use_cached(response.fetched_at, self.start, UnixMs::now())
    }

    /// What to ask with, so that the answer may be that nothing has changed: the URL itself, not `hop`, where it redirects to.
    pub(crate) fn validators_for(&self, hop: Option<&CanonicalUrl>) -> Validators {
        let last = self.before().filter(|_| hop.is_none() && self.recrawl.asks_for_changes());
        last.map(|last| last.validators.clone()).unwrap_or_default()
    }

    /// Whether it compares the page with what it was.
    pub(crate) fn compares(&self) -> bool {
        !self.recrawl.is_never()
    }

    /// What has become of a page that is remembered so.
    pub(crate) fn change(remark: Option<&Memory>) -> Option<Change> {
        if let Some(Memory::Visited(visited)) = remark { Some(visited.change) } else { None }
    }

    /// Marks the items of a page by what has become of it, and returns what is to be remembered. Further items may be in a file.
    pub(crate) fn compare(
        &self,
        job: &Job,
        response: &Response,
        items: &mut [Item],
        in_file: Option<InFile>,
    ) -> Option<Memory> {
        if !self.compares() {
            return None;
        }
        let (mut content, mut tally) = (page_history::fingerprint(items), Tally::of(&job.url, items));
        if let Some(InFile { content: more, count }) = in_file {
            content = Fingerprint::of(&format!("{content}{more}"));
            tally = tally.and(count);
        }
        let change = page_history::change(self.last.as_ref(), content, self.start);
        items.iter_mut().for_each(|item| item.change = Some(change));
        let validators = match response.redirected_to {
            Some(_) => Validators::default(),
            None => Validators::of(&response.headers),
        };
        Some(Memory::Visited(Visited {
            fetched_at: response.fetched_at,
            validators,
            content,
            change,
            depth: job.message.depth,
            items: Some(tally),
        }))
    }

    /// The page as it was, if it was visited before and is gone by this answer.
    pub(crate) fn gone(&self, outcome: &Outcome) -> Option<&Visited> {
        self.last.as_ref().filter(|_| !self.recrawl.is_never() && answers_gone(outcome))
    }

    /// What is to be remembered of a page that gave no items.
    pub(crate) fn memory(self, outcome: &Outcome) -> Option<Memory> {
        match outcome {
            Outcome::Skipped(Skip::Unchanged) => {
                let fetched_at = UnixMs::now();
                self.last
                    .map(|last| Memory::Visited(Visited { fetched_at, change: Change::Unchanged, ..last }))
            }
            outcome if answers_gone(outcome) => (!self.recrawl.is_never()).then_some(Memory::Gone),
            _ => None,
        }
    }

    /// The last visit of an earlier crawl. One of this crawl means that it has not settled the page yet: what the page gives
    /// is stored, but its URL is not finished.
    fn before(&self) -> Option<&Visited> {
        self.last.as_ref().filter(|last| !last.is_since(self.start))
    }
}

/// Whether the answer was that there is no such page (RFC 9110 15.5.5 and 15.5.11).
fn answers_gone(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(Failure { class: Class::Http, status: Some(404 | 410), .. }, _))
}
