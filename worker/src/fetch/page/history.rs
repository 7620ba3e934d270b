//! The remembered state of a URL's page, and the work that it saves, in a crawl that fetches pages again.

use trawl_common::frontier::outcome::{Class, Failure, Outcome, Skip};
use trawl_common::frontier::{Period, Recrawl};
use trawl_common::ports::{OpenCrawl, PageVisit, Terms};
use trawl_common::spider::item::{Change, Item};
use trawl_common::spider::page_history::{self, NOT_MODIFIED, PageAnswer, Tally, Validators, Visited};
use trawl_common::time::UnixMs;
use trawl_common::web::response::Response;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use crate::claimed::ClaimedUrl;
use crate::claimed::items_file::InFile;
use crate::claimed::settlement::aborted;
use crate::fetch::Fetching;

/// The state of a page before it is requested.
pub(crate) struct RememberedPage {
    recrawl: Recrawl,
    /// The start of the crawl.
    start: UnixMs,
    /// When the crawl ran whose dead letters this crawl replays.
    replays: Option<Period>,
    /// The last visit.
    last: Option<Visited>,
}

impl RememberedPage {
    /// Returns the remembered state of a URL's page. It is empty, at no cost, if its crawl fetches each
    /// page once, and for requests.
    pub(crate) async fn new(fetching: &Fetching, claimed: &ClaimedUrl) -> Result<Self, Outcome> {
        let (crawl, url) = (&claimed.message.crawl, &claimed.url);
        let OpenCrawl { terms: Terms { recrawl, replays, .. }, started: start } = claimed.crawl;
        if recrawl.is_never() || claimed.request().is_some() {
            return Ok(Self { recrawl: Recrawl::Never, start, replays, last: None });
        }
        let looking = || fetching.pages.look(&crawl.spider, std::slice::from_ref(url));
        let known = fetching.context.health.insist("looking up what is remembered", looking).await;
        let mut known = known.map_err(|error| aborted(&fetching.context.health, error))?;
        Ok(Self { recrawl, start, replays, last: known.pop().flatten() })
    }

    /// Returns the reason to skip the page, if it need not be requested.
    pub(crate) fn reason_to_skip(&self) -> Option<Skip> {
        let last = self.before()?;
        if self.replays.is_some_and(|replayed| replayed.contains(last.fetched_at)) {
            return Some(Skip::Fresh);
        }
        self.recrawl.reason_to_skip(Some(last.fetched_at), None, UnixMs::now())
    }

    /// Whether a cached response may be used instead of a new one.
    pub(crate) fn may_use_cached(&self, response: &Response) -> bool {
        self.recrawl.may_use_cached(response.fetched_at, self.start, UnixMs::now())
    }

    /// Returns the validators for a conditional request of the URL; none for `hop`, to which it redirects.
    pub(crate) fn validators_for(&self, hop: Option<&CanonicalUrl>) -> Validators {
        let last = self.before().filter(|_| hop.is_none() && self.recrawl.asks_for_changes());
        last.map(|last| last.validators.clone()).unwrap_or_default()
    }

    /// Whether it compares the page with its previous state.
    pub(crate) fn compares(&self) -> bool {
        !self.recrawl.is_never()
    }

    /// Returns the change of a page that is to be remembered.
    pub(crate) fn change(remark: Option<&PageVisit>) -> Option<Change> {
        if let Some(PageVisit::Visited(visited)) = remark { Some(visited.change) } else { None }
    }

    /// Marks the items of a page with its change, and returns what to remember. Further items may be in a
    /// file. `links` of its links are followed.
    pub(crate) fn compare(
        &self,
        claimed: &ClaimedUrl,
        response: &Response,
        items: &mut [Item],
        in_file: Option<InFile>,
        links: usize,
    ) -> Option<PageVisit> {
        if !self.compares() {
            return None;
        }
        let (mut content, mut tally) = (page_history::fingerprint(items), Tally::new(&claimed.url, items));
        if let Some(InFile { content: more, count }) = in_file {
            content = Fingerprint::from_text(&format!("{content}{more}"));
            tally = tally.and(count);
        }
        let change = page_history::change(self.last.as_ref(), content, self.start);
        items.iter_mut().for_each(|item| item.change = Some(change));
        let validators = match response.redirected_to {
            Some(_) => Validators::default(),
            // Its scripts may find something new although the document has not changed.
            None if claimed.spider.passage.is_some() => Validators::default(),
            None => Validators::from_headers(&response.headers),
        };
        Some(PageVisit::Visited(Visited {
            fetched_at: response.fetched_at,
            validators,
            content,
            change,
            depth: claimed.message.depth,
            items: Some(tally),
            answer: Some(PageAnswer {
                status: response.status,
                links: links.try_into().unwrap_or(u32::MAX),
                landed: response.redirected_to.clone(),
            }),
        }))
    }

    /// Returns the previous visit of the page, if there was one and the page is now gone.
    pub(crate) fn gone(&self, outcome: &Outcome) -> Option<&Visited> {
        self.last.as_ref().filter(|_| !self.recrawl.is_never() && answers_gone(outcome))
    }

    /// Returns what to remember of a page that ends without items.
    pub(crate) fn without_items(self, outcome: &Outcome) -> Option<PageVisit> {
        if *outcome != Outcome::Skipped(Skip::Unchanged) {
            return (self.compares() && answers_gone(outcome)).then_some(PageVisit::Gone);
        }
        let last = self.last?;
        let answer = last.answer.map(|answer| PageAnswer { status: NOT_MODIFIED, ..answer });
        let fetched_at = UnixMs::now();
        Some(PageVisit::Visited(Visited { fetched_at, change: Change::Unchanged, answer, ..last }))
    }

    /// The last visit of an earlier crawl. A visit of this crawl means that the page's items were stored but
    /// its URL was not settled.
    fn before(&self) -> Option<&Visited> {
        self.last.as_ref().filter(|last| !last.is_since(self.start))
    }
}

/// Whether the response was that there is no such page (RFC 9110 15.5.5 and 15.5.11).
fn answers_gone(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(Failure { class: Class::Http, status: Some(404 | 410), .. }, _))
}
