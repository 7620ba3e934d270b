//! Turns claimed URLs into jobs, each with the spider that its crawl needs.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use moka::sync::Cache;
use tokio::sync::mpsc;
use tracing::{error, warn};
use trawl_common::frontier::Work;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::frontier::outcome::{Outcome, Skip};
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Claimed, Fatal, Requests, Terms};
use trawl_common::spider::SpiderText;
use trawl_common::text::printable;
use trawl_common::time::UnixMs;
use trawl_common::trace;
use trawl_common::web::url::MAX_URL_BYTES;

use crate::job::Job;
use crate::schedule::standstill::left_to_others;
use crate::settlement::Settlement;
use crate::shared::Shared;
use crate::spiders::{Loaded, Spiders};

/// Maximum number of crawls to remember: whether they have their own copy of the spider's file, and whether
/// it was compared with the local one.
const CRAWLS: u64 = 1_000;

/// Claims URLs and turns them into jobs. Those that need no fetch are passed on to be settled at once.
pub(crate) struct Claims {
    shared: Arc<Shared>,
    settle: mpsc::Sender<Settlement>,
    claimed: VecDeque<Claimed>,
    jobs: VecDeque<Job>,
    spiders: CrawlSpiders,
}

/// The spiders of crawls.
#[derive(Clone)]
pub(crate) struct CrawlSpiders {
    shared: Arc<Shared>,
    /// The spiders' files of crawls that have their own copy.
    texts: Cache<CrawlRef, Option<SpiderText>>,
    /// The crawls whose spider's file was compared with the local one.
    compared: Cache<CrawlRef, ()>,
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>, spiders: CrawlSpiders, settle: mpsc::Sender<Settlement>) -> Self {
        let (claimed, jobs) = Default::default();
        Self { shared, settle, claimed, jobs, spiders }
    }

    /// Waits for the next jobs, and returns between one and `most`. `None` when settling has stopped.
    /// Cancelling the call loses nothing.
    pub(crate) async fn up_to(&mut self, most: usize) -> Result<Option<Vec<Job>>, Fatal> {
        while self.jobs.is_empty() {
            if self.claimed.is_empty() {
                self.claimed.extend(self.shared.frontier.claim(most).await?);
            }
            while let Some(next) = self.claimed.front() {
                // The calls that wait come first: if one is cancelled, nothing has been taken yet.
                let text = self.spiders.text(&next.message.crawl, &next.crawl.terms).await?;
                let Ok(room) = self.settle.reserve().await else { return Ok(None) };
                match self.claimed.pop_front().map(|claimed| self.job(claimed, text)) {
                    Some(Ok(job)) => self.jobs.push_back(job),
                    Some(Err(settlement)) => room.send(*settlement),
                    None => {}
                }
            }
        }
        let count = most.min(self.jobs.len());
        Ok(Some(self.jobs.drain(..count).collect()))
    }

    fn job(
        &self,
        Claimed { mut message, attempts, starts, is_beyond_limit, crawl }: Claimed,
        text: Option<SpiderText>,
    ) -> Result<Job, Box<Settlement>> {
        trace::take_up(&mut message);
        let settled = |message, outcome| Err(Box::new(Settlement::untouched(message, outcome)));
        if is_beyond_limit {
            return settled(message, Outcome::Skipped(Skip::Limit));
        }
        let Some(spider) = self.spiders.spider(&message.crawl, &crawl.terms, text.as_ref()) else {
            // Another worker may have the file, or the files that it refers to.
            let why = self.spiders.lack(&message.crawl, text.as_ref());
            let outcome = self.shared.standstill.leave_to_others(&message, &why);
            return settled(message, outcome);
        };
        // Tasks are claimed separately.
        let Some(url) = message.work.page().cloned() else {
            let outcome = left_to_others(&message);
            return settled(message, outcome);
        };
        self.shared.standstill.works_for(&message.crawl.spider);
        let is_expired = message.is_expired(UnixMs::now());
        let job = Job { url, message, attempts, starts, waits_for_host_only: false, crawl, spider };
        match is_expired {
            true => Err(Box::new(Settlement::of(job, Outcome::Expired))),
            false => Ok(job),
        }
    }
}

impl CrawlSpiders {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, texts: Cache::new(CRAWLS), compared: Cache::new(CRAWLS) }
    }

    /// Returns the spider of a crawl's task, or the reason why it cannot be used here. A spider without a
    /// file has no program, and is not loaded.
    pub(crate) async fn of(
        &self,
        crawl: &CrawlRef,
        terms: &Terms,
    ) -> Result<Result<Arc<Loaded>, String>, Fatal> {
        let text = self.text(crawl, terms).await?;
        let is_known = text.is_some() || self.shared.spiders.is_for_strangers(&crawl.spider);
        let spider = if is_known { self.spider(crawl, terms, text.as_ref()) } else { None };
        Ok(spider.ok_or_else(|| self.lack(crawl, text.as_ref())))
    }

    /// Returns the reason why a crawl's spider cannot be used here.
    fn lack(&self, crawl: &CrawlRef, text: Option<&SpiderText>) -> String {
        self.shared.spiders.wrong(&crawl.spider, text).unwrap_or_else(|| "its file is not there".to_owned())
    }

    /// Returns the spider's file of a crawl, if the crawl has its own copy; fetched once.
    async fn text(&self, crawl: &CrawlRef, terms: &Terms) -> Result<Option<SpiderText>, Fatal> {
        if terms.file.is_none() {
            return Ok(None);
        }
        if let Some(known) = self.texts.get(crawl) {
            return Ok(known);
        }
        let Shared { ports, health, .. } = &*self.shared;
        let text = health.insist("looking up a crawl's spider", || ports.stats.spider_text(crawl)).await?;
        self.texts.insert(crawl.clone(), text.clone());
        Ok(text)
    }

    /// Returns a crawl's spider: from the crawl's own copy of its file, or else from the local one.
    fn spider(&self, crawl: &CrawlRef, terms: &Terms, text: Option<&SpiderText>) -> Option<Arc<Loaded>> {
        let spiders = &self.shared.spiders;
        match text {
            Some(text) => spiders.of_text(&crawl.spider, text),
            None => spiders.get(&crawl.spider).filter(|spider| self.can_be_worked_with(crawl, terms, spider)),
        }
    }

    /// Whether the local version of a crawl's spider may be used. Without the file that the crawl was opened
    /// with, pages would be read by the settings alone, and their links not followed. A difference is logged
    /// once.
    fn can_be_worked_with(&self, crawl: &CrawlRef, terms: &Terms, spider: &Loaded) -> bool {
        let (theirs, ours) = (terms.file, spider.spider.file);
        if theirs.is_some() && ours != theirs && self.compared.get(crawl).is_none() {
            self.compared.insert(crawl.clone(), ());
            let CrawlRef { id, spider } = crawl;
            match ours {
                None => {
                    error!(crawl = %id, %spider, "the crawl's spider has a file, which is not here: its URLs are left to other workers")
                }
                Some(_) => {
                    warn!(
                        crawl = %id, %spider,
                        "the spider's file here is not the one that the crawl was opened with: what it says of pages holds from now on, \
                         max_pages and max_per_host once sources are read into the crawl again (producer --crawl {id}, or the same trawl crawl)"
                    )
                }
            }
        }
        theirs.is_none() || ours.is_some()
    }
}

/// Limit on unknown spider names from external publishers; the names are chosen by strangers.
const ELSEWHERE: usize = 64;

/// Checks requests of other programs: pages of local spiders, and tasks.
pub(crate) struct SpiderRequests {
    spiders: Arc<Spiders>,
    /// The spiders of accepted tasks whose files are not here: they may be on other workers.
    elsewhere: Mutex<HashSet<SpiderName>>,
}

impl SpiderRequests {
    pub(crate) fn new(spiders: Arc<Spiders>) -> Self {
        Self { spiders, elsewhere: Mutex::default() }
    }

    /// Whether tasks of a spider that is not here are accepted, for other workers to run.
    fn is_left_to_others(&self, name: &SpiderName) -> bool {
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        elsewhere.contains(name) || (elsewhere.len() < ELSEWHERE && elsewhere.insert(name.clone()))
    }
}

impl Requests for SpiderRequests {
    /// Accepts a request for a page, in the canonical form of its URL, if its spider is here and accepts URLs
    /// of that length; or for a task. A task whose spider is not here waits for a worker that has it.
    fn check(&self, request: Message) -> Result<Message, Malformed> {
        let refused = |text: &str, reason| Err(Malformed { text: printable(text, MAX_URL_BYTES), reason });
        let name = &request.crawl.spider;
        // Checked first, so that arbitrary names do not cause a look-up.
        let is_here = self.spiders.is_for_strangers(name);
        let url = match &request.work {
            Work::Task(_) if is_here || self.is_left_to_others(name) => return Ok(request),
            Work::Url(_) | Work::Request(_) if is_here => match request.work.page() {
                Some(url) => url,
                None => return Ok(request),
            },
            work => return refused(said_by(work), format!("there is no spider {name} here")),
        };
        let Some(spider) = self.spiders.get(name) else { return Ok(request) };
        let urls = &spider.spider.urls;
        let url = urls.canonical(url.clone());
        if !urls.takes(&url) {
            return refused(url.as_str(), urls.too_long());
        }
        let work = match &request.work {
            Work::Request(own) => Work::of_request(url.clone(), own.new.clone()),
            Work::Url(_) | Work::Task(_) => Ok(Work::Url(url.clone())),
        };
        match work {
            Ok(work) => Ok(Message { work, ..request }),
            Err(error) => refused(url.as_str(), error.to_string()),
        }
    }
}

/// Returns the name of a request for people.
fn said_by(work: &Work) -> &str {
    match work {
        Work::Url(url) => url.as_str(),
        Work::Request(request) => request.url.as_str(),
        Work::Task(task) => task.new.recipe.as_str(),
    }
}
