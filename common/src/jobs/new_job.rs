//! A submission of a job.

use serde::{Deserialize, Serialize};

use super::{IdempotencyKey, JobOverrides};
use crate::frontier::DedupScope;
use crate::list::ListEntry;
use crate::names::{CrawlId, CrawlRef, ProjectName, SpiderName, SpiderRef};
use crate::priority::Priority;
use crate::request::NewRequest;
use crate::spider::Version;
use crate::spider::arguments::Arguments;
use crate::task::NewTask;
use crate::time::UnixMs;
use crate::web::url::CanonicalUrl;

/// Maximum number of URLs and sources of a job.
const MAX_URLS: usize = 10_000;

/// Maximum number of arguments of a job.
const MAX_ARGUMENTS: usize = 100;

/// Maximum size in bytes of all URLs, tasks and arguments of a job together.
const MAX_BYTES: usize = 1024 * 1024;

/// A crawl that is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewJob {
    /// The id of the job, and of the crawl that it becomes.
    pub id: CrawlId,
    /// The project of the spider.
    pub project: ProjectName,
    /// The spider.
    pub spider: SpiderName,
    /// Pages and tasks to crawl in place of the spider's start. Each page is requested by a plain GET, or as the entry
    /// says.
    pub urls: Vec<ListEntry>,
    /// Sitemaps, feeds and lists to read for pages in place of the spider's start.
    pub sources: Vec<CanonicalUrl>,
    /// The spider's arguments.
    #[serde(default)]
    pub arguments: Arguments,
    /// Settings that override the spider's file.
    pub settings: JobOverrides,
    /// The version of the project; `None` for the latest when the job is run, or for a spider whose file only workers
    /// have.
    #[serde(default)]
    pub version: Option<Version>,
    /// Whether it runs a cron schedule, when that is due or at a person's request: then its crawl finds URLs that are
    /// new to the spider, unless the file says otherwise. Other crawls dedup within themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_scheduled: bool,
    /// The priority of the job.
    pub priority: Priority,
    /// The key under which a repeated submission returns the first job.
    pub idempotency_key: Option<IdempotencyKey>,
    /// The names of settings that were sent with it and are ignored, as clients of Scrapyd send them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// The reason why a job is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidJob {
    /// Its id is that of a crawl that never ends.
    #[error("{0} is for what others publish, and never ends: choose another id")]
    Adhoc(CrawlId),
    /// It names too many URLs, tasks and sources.
    #[error(
        "{0} URLs, tasks and sources are too many for a job: write them into a list of URLs, and name that as its source"
    )]
    Urls(usize),
    /// It has too many arguments.
    #[error("{0} arguments are too many for a job: it may have {MAX_ARGUMENTS}")]
    Arguments(usize),
    /// Its URLs, tasks and arguments are too long together.
    #[error("the URLs, tasks and arguments of a job may have {MAX_BYTES} bytes together: these have {0}")]
    Bytes(usize),
}

impl NewJob {
    /// Creates a job that runs `spider` of the default project as its file says.
    pub fn new(id: CrawlId, spider: SpiderName) -> Self {
        Self::from_id(id, spider.into())
    }

    /// Creates a job that runs a spider of a project as its file says.
    pub fn from_id(id: CrawlId, SpiderRef { project, spider }: SpiderRef) -> Self {
        let (urls, sources, arguments, settings) = Default::default();
        let (version, is_scheduled, priority, idempotency_key, ignored) = Default::default();
        Self {
            id,
            project,
            spider,
            urls,
            sources,
            arguments,
            settings,
            version,
            is_scheduled,
            priority,
            idempotency_key,
            ignored,
        }
    }

    /// Creates the job of a spider for an instant of its schedule: the same, whichever worker submits it.
    pub fn scheduled(spider: &SpiderRef, instant: UnixMs) -> Self {
        let key = format!("schedule:{spider}:{instant}");
        let new = Self::from_id(CrawlId::of_schedule(spider, instant), spider.clone());
        Self { idempotency_key: key.parse().ok(), is_scheduled: true, ..new }
    }

    /// The spider with its project.
    pub fn spider_ref(&self) -> SpiderRef {
        SpiderRef { project: self.project.clone(), spider: self.spider.clone() }
    }

    /// The crawl of this job.
    pub fn crawl(&self) -> CrawlRef {
        CrawlRef { id: self.id.clone(), spider: self.spider.clone() }
    }

    /// The dedup scope of its crawl if neither the job nor the spider's file sets one.
    pub fn usual_dedup(&self) -> DedupScope {
        if self.is_scheduled { DedupScope::Spider } else { DedupScope::Crawl }
    }

    /// The pages of the job.
    pub fn requests(&self) -> impl Iterator<Item = &NewRequest> {
        self.urls.iter().filter_map(ListEntry::request)
    }

    /// The tasks of the job.
    pub fn tasks(&self) -> impl Iterator<Item = &NewTask> {
        self.urls.iter().filter_map(|entry| if let ListEntry::Task(task) = entry { Some(task) } else { None })
    }

    /// Checks that each part of the job is valid, and that all together are within the limits.
    pub fn check(&self) -> Result<(), InvalidJob> {
        if self.id.is_adhoc() {
            return Err(InvalidJob::Adhoc(self.id.clone()));
        }
        let urls = self.urls.len() + self.sources.len();
        if urls > MAX_URLS {
            return Err(InvalidJob::Urls(urls));
        }
        let arguments = self.arguments.iter().count();
        if arguments > MAX_ARGUMENTS {
            return Err(InvalidJob::Arguments(arguments));
        }
        let urls = self.urls.iter().map(ListEntry::bytes);
        let urls = urls.chain(self.sources.iter().map(|url| url.as_str().len()));
        let arguments = self.arguments.iter().map(|(name, value)| name.as_str().len() + value.as_str().len());
        match urls.chain(arguments).sum() {
            0..=MAX_BYTES => Ok(()),
            bytes => Err(InvalidJob::Bytes(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn job(id: &str) -> NewJob {
        NewJob::new(id.parse().unwrap(), SpiderName::default())
    }

    #[test]
    fn a_job_that_asks_for_too_much_is_refused() {
        let url = ListEntry::from(NewRequest::get("http://a.example/"));
        let argument = |number: usize| format!("a{number}={}", "x".repeat(2_000)).parse().unwrap();
        assert_eq!(job("one").check(), Ok(()));
        let urls = |count| NewJob { urls: vec![url.clone(); count], ..job("one") };
        assert_eq!(urls(10_000).check(), Ok(()));
        assert_eq!(urls(10_001).check(), Err(InvalidJob::Urls(10_001)));
        let long = NewRequest::get(format!("http://a.example/{}", "x".repeat(8_000)));
        let long = ListEntry::from(long);
        assert!(matches!(NewJob { urls: vec![long; 132], ..job("one") }.check(), Err(InvalidJob::Bytes(_))));
        let arguments =
            |count| NewJob { arguments: Arguments::new((0..count).map(argument)).unwrap(), ..job("one") };
        assert_eq!(arguments(100).check(), Ok(()));
        assert_eq!(arguments(101).check(), Err(InvalidJob::Arguments(101)));
    }

    #[test]
    fn a_job_is_no_crawl_of_hand_published_urls() {
        for id in ["adhoc", "adhoc.shop"] {
            assert!(job(id).check().unwrap_err().to_string().contains(id));
        }
    }
    #[test]
    fn a_job_of_a_schedule_is_the_same_whoever_asks_for_it() {
        let (shop, news) = ("shop".parse().unwrap(), "x".repeat(64).parse().unwrap());
        let elsewhere = "books/shop".parse().unwrap();
        let instant = UnixMs(1_795_450_500_000);
        assert_eq!(NewJob::scheduled(&shop, instant), NewJob::scheduled(&shop, instant));
        assert!(NewJob::scheduled(&shop, instant).id.as_str().starts_with("20261123-161500-"));
        let key = NewJob::scheduled(&shop, instant).idempotency_key.unwrap();
        assert_eq!(key.as_str(), "schedule:shop:2026-11-23T16:15:00.000Z");
        assert!(NewJob::scheduled(&news, instant).idempotency_key.is_some());
        assert_ne!(NewJob::scheduled(&news, instant).id, NewJob::scheduled(&shop, instant).id);
        assert_ne!(NewJob::scheduled(&elsewhere, instant).id, NewJob::scheduled(&shop, instant).id);
        assert_eq!(NewJob::scheduled(&elsewhere, instant).project.as_str(), "books");
        assert_ne!(
            NewJob::scheduled(&shop, instant.plus(Duration::from_secs(24 * 3_600))).id,
            NewJob::scheduled(&shop, instant).id
        );
    }
}
