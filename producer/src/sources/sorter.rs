//! Turns entries of sources into findings.

use std::sync::Arc;

use trawl_common::frontier::route::{self, Hints, Routed, Rule};
use trawl_common::frontier::{Task, Work};
use trawl_common::ports::NewWork;
use trawl_common::request::NewRequest;
use trawl_common::settings::Settings;
use trawl_common::spider::{Carried, Spider};
use trawl_common::task::NewTask;
use trawl_common::text::printable;
use trawl_common::web::url::{CanonicalUrl, MAX_URL_BYTES};

use crate::finding::{Candidate, Finding};
use crate::report::Progress;
use crate::sitemap::{self, SitemapEntry};

/// Turns entries into findings: canonical, within the spider's domains, and routed.
#[derive(Clone)]
pub(crate) struct Sorter {
    pub(super) settings: Arc<Settings>,
    pub(super) spider: Arc<Spider>,
    /// The spider's rules, followed by those of the settings.
    rules: Arc<[Rule]>,
    progress: Arc<Progress>,
}

impl Sorter {
    pub(crate) fn new(settings: Arc<Settings>, spider: Arc<Spider>, progress: Arc<Progress>) -> Self {
        let rules = spider.routes(&settings.route).into();
        Self { settings, spider, rules, progress }
    }

    /// Returns the finding for an entry that a site publishes; `None` if it is outside the spider's domains.
    pub(super) fn sort(&self, entry: &SitemapEntry) -> Option<Finding> {
        let changefreq = entry.changefreq.map(Into::into);
        let modified = entry.lastmod.as_deref().and_then(sitemap::changed_by);
        let hints = Hints { changefreq, news: entry.news };
        match self.listed(NewRequest::get(&entry.loc), hints) {
            Ok(candidate) => Some(Finding::Page(Candidate { modified, ..candidate? })),
            Err(reason) => Some(Finding::Invalid { text: printable(&entry.loc, MAX_URL_BYTES), reason }),
        }
    }

    /// Returns the candidate for a URL or a request of a list; `None` if it is outside the spider's domains.
    ///
    /// # Errors
    ///
    /// Returns the reason if it is not a URL, or is longer than the spider accepts.
    pub(super) fn listed(&self, new: NewRequest, hints: Hints<'_>) -> Result<Option<Candidate>, String> {
        let candidate = self.asked(new, hints)?;
        let url = candidate.as_ref().and_then(|candidate| candidate.page.work.page());
        match url.is_none_or(|url| self.spider.urls.takes(url)) {
            true => Ok(candidate),
            false => Err(self.spider.urls.too_long()),
        }
    }

    /// Like [`Self::listed`], for a URL that a person names, which may have any length.
    pub(super) fn named(&self, new: NewRequest) -> Result<Option<Candidate>, String> {
        self.asked(new, Hints::default())
    }

    fn asked(&self, new: NewRequest, hints: Hints<'_>) -> Result<Option<Candidate>, String> {
        let url = CanonicalUrl::parse(&new.url).map_err(|error| error.to_string())?;
        let Some((url, Routed { lane, ttl })) = self.routed(url, hints) else { return Ok(None) };
        let written = self.spider.urls.spelling(&new.url);
        let work = Work::of_request(url, self.tracked(new)).map_err(|error| error.to_string())?;
        Ok(Some(Candidate { page: NewWork { written, ..NewWork::new(work, lane) }, ttl, modified: None }))
    }

    /// Returns the finding for a submitted task.
    ///
    /// # Errors
    ///
    /// Returns the reason if the task is for another spider, or the spider has no handler.
    pub(super) fn task(&self, new: NewTask) -> Result<Finding, String> {
        let spider = &self.spider.name;
        if self.spider.handler.is_none() {
            return Err(format!("a task is for a spider with a [handler], and {spider} has none"));
        }
        let task = new.only_for(spider).map_err(|error| error.to_string())?;
        let page = NewWork::task(Task::new(spider, task));
        Ok(Finding::Page(Candidate { page, ttl: None, modified: None }))
    }

    /// Routes `url` in the form that the spider uses; counts and leaves out one outside the spider's domains.
    pub(crate) fn page(&self, url: CanonicalUrl, hints: Hints<'_>) -> Option<Candidate> {
        let (url, Routed { lane, ttl }) = self.routed(url, hints)?;
        if !self.spider.tracks() {
            return Some(Candidate { page: NewWork::seed(url, lane), ttl, modified: None });
        }
        let new = self.tracked(NewRequest::get(url.as_str()));
        // A URL that is too long for the key of a request stays a URL.
        let work = Work::of_request(url.clone(), new).unwrap_or(Work::Url(url));
        Some(Candidate { page: NewWork::new(work, lane), ttl, modified: None })
    }

    /// Returns the request for a page, which has data if pages of the spider have.
    fn tracked(&self, new: NewRequest) -> NewRequest {
        match new.data.is_none() && self.spider.tracks() {
            true => NewRequest { data: Some(Carried::default().to_data()), ..new },
            false => new,
        }
    }

    fn routed(&self, url: CanonicalUrl, hints: Hints<'_>) -> Option<(CanonicalUrl, Routed)> {
        if !self.spider.allows(&url.host()) {
            self.progress.outside();
            return None;
        }
        let url = self.spider.urls.canonical(url);
        let routed = route::route(&self.rules, &url, hints);
        Some((url, routed))
    }
}
