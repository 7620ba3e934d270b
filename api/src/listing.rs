//! All crawls, the newest first, in parts. Crawls of jobs are ordered by submission, and keep their position
//! when they begin; others by their start.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use trawl_common::crawl_end::left_in;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::jobs::{Job, JobStatus};
use trawl_common::names::CrawlId;
use trawl_common::ports::{JobFilter, JobPage, Jobs, Result};

use crate::backend::Backend;
use crate::view::Known;

/// Maximum number of crawls to check for one part, whether they match or not.
const MAX_EXAMINED: usize = 2_000;
/// The number of jobs read at a time.
const READ_BATCH: usize = 500;

/// A position in the list: after this job, and after this crawl without a job.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct ListPosition {
    job: Option<u64>,
    crawl: Option<(u64, String)>,
}

impl Backend {
    /// Returns at most `most` matching crawls after a position, and the position after them if there may be
    /// more.
    pub(crate) async fn list(
        &self,
        is_meant: impl Fn(&Known) -> bool,
        mut place: ListPosition,
        most: usize,
    ) -> Result<(Vec<Known>, Option<ListPosition>)> {
        // The jobs first: one that begins meanwhile is among the crawls.
        let mut jobs = Line { jobs: &*self.jobs, ahead: VecDeque::new(), last: place.job };
        jobs.first().await?;
        let crawls = self.stats.crawls().await?.into_iter();
        let mut stats: BTreeMap<CrawlId, CrawlStats> =
            crawls.map(|stats| (stats.crawl.clone(), stats)).collect();
        let adhoc = stats.iter().filter(|(_, stats)| stats.crawl_ref().is_adhoc());
        let adhoc: BTreeMap<_, _> = adhoc.map(|(id, stats)| (id.clone(), stats.clone())).collect();
        let place_of = |stats: &CrawlStats| (stats.started.0, stats.crawl.to_string());
        let mut crawls: Vec<_> = stats.values().map(|stats| (place_of(stats), stats.crawl.clone())).collect();
        crawls.retain(|(at, _)| place.crawl.as_ref().is_none_or(|behind| at < behind));
        crawls.sort();
        let mut found = Vec::new();
        for _ in 0..MAX_EXAMINED {
            let (known, behind) = match (jobs.first().await?, crawls.last()) {
                (Some(job), crawl)
                    if crawl.is_none_or(|(at, _)| *at < (job.asked.0, job.new.id.to_string())) =>
                {
                    let stats = match stats.remove(&job.new.id) {
                        // It may have begun since.
                        None if job.status() != JobStatus::Pending => {
                            self.stats.crawl_stats(&job.new.id).await?
                        }
                        stats => stats,
                    };
                    let known = Known::of_job(job, stats);
                    let behind = ListPosition { job: Some(job.number), ..place.clone() };
                    jobs.ahead.pop_front();
                    (Some(known), behind)
                }
                (_, None) => return Ok((found, None)),
                (_, Some((at, id))) => {
                    let is_of_job = jobs.has(id) || self.jobs.job(id).await?.is_some();
                    let stats = if is_of_job { None } else { stats.remove(id) };
                    let behind = ListPosition { crawl: Some(at.clone()), ..place.clone() };
                    crawls.pop();
                    (stats.map(Known::of_no_job), behind)
                }
            };
            if let Some(known) = known.filter(&is_meant) {
                if found.len() == most {
                    return Ok((found, Some(place)));
                }
                let left = left_in(&adhoc, &known.stats);
                found.push(known.with(left));
            }
            place = behind;
        }
        Ok((found, Some(place)))
    }
}

/// Jobs, the newest first, read as they are needed.
struct Line<'a> {
    jobs: &'a dyn Jobs,
    ahead: VecDeque<Job>,
    /// The number of the last job read.
    last: Option<u64>,
}

impl Line<'_> {
    async fn first(&mut self) -> Result<Option<&Job>> {
        if self.ahead.is_empty() {
            let page = JobPage { before: self.last, max: READ_BATCH };
            self.ahead.extend(self.jobs.list(&JobFilter::default(), page).await?);
            self.last = self.ahead.back().map(|job| job.number).or(self.last);
        }
        Ok(self.ahead.front())
    }

    fn has(&self, id: &CrawlId) -> bool {
        self.ahead.iter().any(|job| job.new.id == *id)
    }
}
