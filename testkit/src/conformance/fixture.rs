//! The fixture of a test: one crawl of one spider on one site, and two workers.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Class, Reason, Terminal};
use trawl_common::frontier::{ClaimReply, Key, Request, StartReply, Task};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{Claim, Finish, NewWork, Result, Terms};
use trawl_common::request::NewRequest;
use trawl_common::task::NewTask;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Lease, Parking, Past, Records};

use super::{page, unique};

/// Longer than any test.
pub(super) const LONG: Duration = Duration::from_secs(600);

/// The reply to a claim of a URL that never failed and has no deadline.
pub(super) const TAKE: ClaimReply = took(0);

/// Returns the reply to a claim of a URL without a deadline after `attempts` failures.
pub(super) const fn took(attempts: u32) -> ClaimReply {
    ClaimReply::Take { attempts, starts: 0, deadline: None }
}

/// Returns the reply to a claim of a URL without a deadline after `attempts` failures and `starts` starts without an
/// end.
pub(super) const fn started(attempts: u32, starts: u32) -> ClaimReply {
    ClaimReply::Take { attempts, starts, deadline: None }
}

/// The names of one test. No other test uses them.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) crawl: CrawlRef,
    pub(super) worker: WorkerId,
    pub(super) other: WorkerId,
    site: String,
    /// Whether pages with odd numbers are fetched by requests.
    has_requests: bool,
}

impl Case {
    pub(super) fn new() -> Self {
        let worker = || unique("worker").parse().expect("a unique name is a name");
        let site = unique("site");
        Self { crawl: new_crawl(), worker: worker(), other: worker(), site, has_requests: false }
    }

    /// Returns a case in which every other page is fetched by a request.
    pub(super) fn with_requests() -> Self {
        Self { has_requests: true, ..Self::new() }
    }

    /// Returns a case with this site and these workers in `crawl`.
    pub(super) fn of(&self, crawl: CrawlRef) -> Self {
        Self { crawl, ..self.clone() }
    }

    /// Returns a case with this site and these workers in a new crawl of this spider.
    pub(super) fn next_crawl(&self) -> Self {
        self.of(CrawlRef { spider: self.crawl.spider.clone(), ..new_crawl() })
    }

    /// Returns a case with this site and these workers in a crawl of another spider.
    pub(super) fn other_spider(&self) -> Self {
        self.of(new_crawl())
    }

    pub(super) fn url(&self, number: usize) -> CanonicalUrl {
        page(&self.site, number)
    }

    pub(super) fn key(&self, number: usize) -> Key {
        self.new_work(number).work.key()
    }

    pub(super) fn new_work(&self, number: usize) -> NewWork {
        match self.has_requests && number % 2 == 1 {
            true => self.new_request_for(number, "body"),
            false => NewWork::seed(self.url(number), Lane::Bulk),
        }
    }

    /// Returns a task of the spider.
    pub(super) fn new_task(&self, recipe: &str) -> NewWork {
        let new = NewTask::from_recipe(recipe.parse().expect("it is a recipe"));
        NewWork::task(Task::new(&self.crawl.spider, new))
    }

    /// Returns a POST of page 0.
    pub(super) fn new_request(&self, body: &str) -> NewWork {
        self.new_request_for(0, body)
    }

    fn new_request_for(&self, number: usize, body: &str) -> NewWork {
        let json =
            r#"{"url": "", "method": "POST", "headers": {"a": "b"}, "cookies": {"c": "d"}, "data": [1]}"#;
        let new = NewRequest::from_json(json).expect("it is a request");
        let new = NewRequest { body: body.to_owned().into(), ..new };
        NewWork::new(Request::new(self.url(number), new).expect("it has a key").into(), Lane::Bulk)
    }

    pub(super) fn message(&self, number: usize) -> Message {
        self.new_work(number).message(&self.crawl)
    }

    pub(super) fn claim_on(&self, number: usize) -> Claim {
        Claim { crawl: self.crawl.clone(), key: self.key(number) }
    }

    pub(super) fn ending(&self, number: usize, terminal: Terminal) -> Finish {
        let note = self.note(number, terminal);
        let class = note.cause.class.filter(|_| terminal == Terminal::Failed);
        Finish {
            why: class.map(Class::as_str),
            note: Some(note),
            ..Finish::new(self.claim_on(number), terminal)
        }
    }

    /// Returns the note of a failed page, with all fields set for odd numbers.
    pub(super) fn note(&self, number: usize, terminal: Terminal) -> DeadLetterEntry {
        let full = number % 2 == 1;
        let reason = if terminal == Terminal::Expired { Reason::Expired } else { Reason::Retries };
        let cause = Cause {
            reason,
            class: full.then_some(Class::Http),
            status: full.then_some(503),
            error: format!("\"note\" on {number}\n\u{fc}"),
            attempts: number as u32,
            worker: full.then(|| self.worker.clone()),
            failed_at: UnixMs(1_700_000_000_000 + number as u64),
        };
        let lane = if full { Lane::Priority } else { Lane::Bulk };
        DeadLetterEntry { cause, lane, depth: number as u16, referrer: full.then(|| self.key(number + 1)) }
    }
}

fn new_crawl() -> CrawlRef {
    CrawlRef {
        id: unique("crawl").parse().expect("a unique name is a name"),
        spider: unique("spider").parse().expect("a unique name is a name"),
    }
}

/// A test case, and the records under test.
pub(super) struct Fixture<'a> {
    pub(super) frontier: &'a Arc<dyn Records>,
    case: Case,
}

impl Deref for Fixture<'_> {
    type Target = Case;
    fn deref(&self) -> &Case {
        &self.case
    }
}

impl<'a> Fixture<'a> {
    /// Returns a fixture with a new case. Nothing is opened yet.
    pub(super) fn new(frontier: &'a Arc<dyn Records>) -> Self {
        Self::with(frontier, Case::new())
    }

    pub(super) fn with(frontier: &'a Arc<dyn Records>, case: Case) -> Self {
        Self { frontier, case }
    }

    /// Returns a fixture with this site and these workers in `crawl`.
    pub(super) fn of(&self, crawl: CrawlRef) -> Self {
        Self::with(self.frontier, self.case.of(crawl))
    }

    /// Returns a fixture with this site and these workers in the crawl of what others publish for the spider.
    pub(super) fn of_requests(&self) -> Self {
        self.of(CrawlRef::adhoc_of(self.crawl.spider.clone()))
    }

    /// Returns a fixture with this site and these workers in a new crawl of this spider.
    pub(super) fn next_crawl(&self) -> Self {
        Self::with(self.frontier, self.case.next_crawl())
    }

    /// Returns a fixture with this site and these workers in a crawl of another spider.
    pub(super) fn other_spider(&self) -> Self {
        Self::with(self.frontier, self.case.other_spider())
    }

    pub(super) async fn open(&self) -> Result<Lease> {
        self.frontier.open(&self.crawl, Terms::default(), "producer", LONG, Past::Possible).await
    }

    /// Admits and confirms pages. Returns which were new.
    pub(super) async fn admit(
        &self,
        lease: &Lease,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<Vec<bool>> {
        let urls: Vec<NewWork> = numbers.into_iter().map(|number| self.new_work(number)).collect();
        let new = self.frontier.admit(lease, &urls).await?;
        let messages: Vec<Message> = urls.iter().map(|new| new.message(&self.crawl)).collect();
        self.frontier.confirm(&messages).await?;
        Ok(new)
    }

    /// Opens the crawl and admits pages `0..count`.
    pub(super) async fn begin(&self, count: usize) -> Result<Lease> {
        let lease = self.open().await?;
        self.admit(&lease, 0..count).await?;
        Ok(lease)
    }

    pub(super) async fn claim(&self, worker: &WorkerId, number: usize) -> Result<ClaimReply> {
        Ok(self.frontier.claim(worker, &[self.message(number)]).await?[0])
    }

    /// Whether a page's message has to wait, because another worker or a pause holds the page.
    pub(super) async fn is_held_back(&self, worker: &WorkerId, number: usize) -> Result<bool> {
        Ok(matches!(self.claim(worker, number).await?, ClaimReply::Wait { .. }))
    }

    /// Has the first worker claim the URL of a message that another program published.
    pub(super) async fn claim_for_stranger(&self, number: usize) -> Result<ClaimReply> {
        let message = Message { is_ours: false, ..self.message(number) };
        Ok(self.frontier.claim(&self.worker, &[message]).await?[0])
    }

    /// Extends a worker's lease on a page. Returns whether the worker still holds it.
    pub(super) async fn extend(&self, worker: &WorkerId, number: usize) -> Result<bool> {
        Ok(self.frontier.extend(worker, &[self.message(number)]).await?[0])
    }

    pub(super) async fn start(&self, worker: &WorkerId, number: usize) -> Result<StartReply> {
        Ok(self.frontier.start(worker, &[self.claim_on(number)]).await?[0])
    }

    pub(super) async fn park(
        &self,
        worker: &WorkerId,
        number: usize,
        until: UnixMs,
        failed: bool,
    ) -> Result<bool> {
        let parking = Parking { claim: self.claim_on(number), until, failed };
        Ok(self.frontier.park(worker, &[parking]).await?[0])
    }

    /// Confirms the message of a page that is parked until an instant.
    pub(super) async fn confirm_parked(&self, number: usize, until: UnixMs) -> Result<()> {
        self.frontier.confirm(&[Message { wake: Some(until), ..self.message(number) }]).await
    }

    pub(super) async fn release(&self, worker: &WorkerId, number: usize) -> Result<()> {
        self.frontier.release(worker, &[self.claim_on(number)]).await
    }

    /// Has a worker end a page. Returns whether it has ended.
    pub(super) async fn end(&self, worker: &WorkerId, number: usize, terminal: Terminal) -> Result<bool> {
        Ok(self.frontier.finish(worker, &[self.ending(number, terminal)]).await?[0])
    }

    /// Ends a page, which the worker claims first unless it holds it.
    pub(super) async fn finish(&self, number: usize, terminal: Terminal) -> Result<()> {
        if !self.end(&self.worker, number, terminal).await? {
            self.claim(&self.worker, number).await?;
            assert!(self.end(&self.worker, number, terminal).await?, "page {number} can be taken and ended");
        }
        Ok(())
    }

    /// Claims pages, and ends them in one call. Returns which have ended.
    pub(super) async fn finish_all(&self, finishes: &[Finish]) -> Result<Vec<bool>> {
        let message = |Finish { claim, .. }: &Finish| {
            let url = claim.key.url().expect("it is a page");
            Message::seed(url.clone(), claim.crawl.clone(), Lane::Bulk)
        };
        let messages: Vec<Message> = finishes.iter().map(message).collect();
        self.frontier.claim(&self.worker, &messages).await?;
        self.frontier.finish(&self.worker, finishes).await
    }

    /// Returns the stats of the crawl, after checking that they are consistent.
    pub(super) async fn crawl_stats(&self) -> Result<CrawlStats> {
        let stats = self.frontier.crawl_stats(&self.crawl.id).await?.expect("the crawl is known");
        assert_eq!(stats.crawl_ref(), self.crawl);
        assert_eq!(stats.counts.admitted, stats.pending + stats.counts.ended(), "{stats:?}");
        Ok(stats)
    }

    pub(super) async fn status(&self) -> Result<CrawlState> {
        Ok(self.crawl_stats().await?.status)
    }
}

/// Returns an instant that has passed, on any clock.
pub(super) fn long_ago() -> UnixMs {
    UnixMs(UnixMs::now().0 - 3_600_000)
}

/// Returns an instant after the end of any test.
pub(super) fn much_later() -> UnixMs {
    UnixMs::now().plus(Duration::from_secs(3600))
}
