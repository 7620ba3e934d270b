//! From claimed URLs to jobs: each needs its spider, as its crawl needs it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use moka::sync::Cache;
use tokio::sync::mpsc;
use tracing::{error, warn};
use trawl_common::frontier::Work;
use trawl_common::frontier::message::{Malformed, Message};
use trawl_common::frontier::outcome::{Outcome, Skip};
use trawl_common::names::{CrawlRef, SpiderName};
use trawl_common::ports::{Claimed, Requests, Terms};
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

/// Of so many crawls it is remembered whether they bring the text of their spider's file, or that it was compared with the file here.
const CRAWLS: u64 = 1_000;

/// Claims URLs and makes jobs of them. What is to be settled at once goes on to be settled.
pub(crate) struct Claims {
    shared: Arc<Shared>,
    settle: mpsc::Sender<Settlement>,
    claimed: VecDeque<Claimed>,
    jobs: VecDeque<Job>,
    spiders: CrawlSpiders,
}

/// The spiders of crawls, each as its crawl needs it.
#[derive(Clone)]
pub(crate) struct CrawlSpiders {
    shared: Arc<Shared>,
    /// What the files of spiders say in crawls that bring it themselves.
    texts: Cache<CrawlRef, Option<SpiderText>>,
    /// The crawls whose spider's file was compared with the one here.
    compared: Cache<CrawlRef, ()>,
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>, spiders: CrawlSpiders, settle: mpsc::Sender<Settlement>) -> Self {
        let (claimed, jobs) = Default::default();
        Self { shared, settle, claimed, jobs, spiders }
    }

    /// The next jobs, between one and `most`; waits for them. `None` when nothing is settled any more. Cancelling the call loses
    /// nothing.
    pub(crate) async fn up_to(&mut self, most: usize) -> Option<Vec<Job>> {
        while self.jobs.is_empty() {
            if self.claimed.is_empty() {
                self.claimed.extend(self.shared.frontier.claim(most).await);
            }
            while let Some(next) = self.claimed.front() {
                // What waits comes first: a call that is cancelled there has taken nothing yet.
                let text = self.spiders.text(&next.message.crawl, &next.crawl.terms).await;
                let room = self.settle.reserve().await.ok()?;
                match self.claimed.pop_front().map(|claimed| self.job(claimed, text)) {
                    Some(Ok(job)) => self.jobs.push_back(job),
                    Some(Err(settlement)) => room.send(*settlement),
                    None => {}
                }
            }
        }
        let count = most.min(self.jobs.len());
        Some(self.jobs.drain(..count).collect())
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
            // Another worker may have the file, or what it names.
            let why = self.spiders.lack(&message.crawl, text.as_ref());
            let outcome = self.shared.standstill.leave_to_others(&message, &why);
            return settled(message, outcome);
        };
        // Tasks are claimed by themselves.
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

    /// The spider of a crawl's task; or why it cannot be worked with here. One without a file has no program, and is not loaded.
    pub(crate) async fn of(&self, crawl: &CrawlRef, terms: &Terms) -> Result<Arc<Loaded>, String> {
        let text = self.text(crawl, terms).await;
        let is_known = text.is_some() || self.shared.spiders.is_for_strangers(&crawl.spider);
        let spider = if is_known { self.spider(crawl, terms, text.as_ref()) } else { None };
        spider.ok_or_else(|| self.lack(crawl, text.as_ref()))
    }

    /// Why a crawl's spider cannot be worked with here.
    fn lack(&self, crawl: &CrawlRef, text: Option<&SpiderText>) -> String {
        self.shared.spiders.wrong(&crawl.spider, text).unwrap_or_else(|| "its file is not there".to_owned())
    }

    /// What the file of a crawl's spider says in it, if the crawl brings that itself; asked once.
    async fn text(&self, crawl: &CrawlRef, terms: &Terms) -> Option<SpiderText> {
        terms.file?;
        if let Some(known) = self.texts.get(crawl) {
            return known;
        }
        let Shared { ports, health, .. } = &*self.shared;
        let text = health.until_done("looking up a crawl's spider", || ports.stats.spider_text(crawl)).await;
        self.texts.insert(crawl.clone(), text.clone());
        text
    }

    /// A crawl's spider: as the crawl itself brings it, or else as its file here says.
    fn spider(&self, crawl: &CrawlRef, terms: &Terms, text: Option<&SpiderText>) -> Option<Arc<Loaded>> {
        let spiders = &self.shared.spiders;
        match text {
            Some(text) => spiders.of_text(&crawl.spider, text),
            None => spiders.get(&crawl.spider).filter(|spider| self.can_be_worked_with(crawl, terms, spider)),
        }
    }

    /// Whether a worker may work with what it has for a crawl's spider: without the file that the crawl was opened with, pages would be
    /// read by the settings alone, and their links not followed. What differs is said once.
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

/// Of so many spiders whose files are not here strangers' tasks are taken in: anybody may think of more names.
const ELSEWHERE: usize = 64;

/// What other programs may ask for: pages of the spiders that are here, and tasks.
pub(crate) struct SpiderRequests {
    spiders: Arc<Spiders>,
    /// The spiders of tasks whose files are not here: they may be on other workers.
    elsewhere: Mutex<HashSet<SpiderName>>,
}

impl SpiderRequests {
    pub(crate) fn new(spiders: Arc<Spiders>) -> Self {
        Self { spiders, elsewhere: Mutex::default() }
    }

    /// Whether tasks of a spider that is not here are taken in, for other workers to do.
    fn is_left_to_others(&self, name: &SpiderName) -> bool {
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        elsewhere.contains(name) || (elsewhere.len() < ELSEWHERE && elsewhere.insert(name.clone()))
    }
}

impl Requests for SpiderRequests {
    /// A request is for the page that its URL stands for, if its spider is here and takes URLs of that length; or for a task. A task
    /// whose spider is not here waits for a worker that has it.
    fn check(&self, request: Message) -> Result<Message, Malformed> {
        let refused = |text: &str, reason| Err(Malformed { text: printable(text, MAX_URL_BYTES), reason });
        let name = &request.crawl.spider;
        // Asked first: what anybody may write a name of is not even looked for.
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

/// What people know a request by.
fn said_by(work: &Work) -> &str {
    match work {
        Work::Url(url) => url.as_str(),
        Work::Request(request) => request.url.as_str(),
        Work::Task(task) => task.new.recipe.as_str(),
    }
}
