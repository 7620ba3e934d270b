//! The state of schedules, for people.

use std::collections::BTreeMap;

use super::Timetable;
use crate::jobs::Job;
use crate::names::SpiderRef;
use crate::ports::{JobFilter, JobPage, Jobs, Result, ScheduleState, Schedules};
use crate::schedule::Schedule;
use crate::time::UnixMs;

/// Number of jobs, the newest, among which the last ones of spiders are searched.
const JOBS: usize = 1_000;

/// A spider's schedule and its state.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The spider.
    pub spider: SpiderRef,
    /// The schedule.
    pub schedule: Schedule,
    /// Whether it is paused.
    pub is_paused: bool,
    /// The spider's last job, scheduled or not, if it is among the newest.
    pub last: Option<Job>,
}

impl Standing {
    /// Returns when the next crawl is due after `now`; `None` if it is paused.
    pub fn next(&self, now: UnixMs) -> Option<UnixMs> {
        self.schedule.next(now).filter(|_| !self.is_paused)
    }
}

/// Returns the state of each schedule of `timetable`, by spider.
pub async fn standings(
    timetable: &Timetable,
    schedules: &dyn Schedules,
    jobs: &dyn Jobs,
) -> Result<Vec<Standing>> {
    let (states, mut last) = (schedules.list().await?, BTreeMap::new());
    for job in jobs.list(&JobFilter::default(), JobPage { before: None, max: JOBS }).await? {
        last.entry(job.new.spider_ref()).or_insert(job);
    }
    let standing = |(spider, schedule): (SpiderRef, &Schedule)| Standing {
        is_paused: states.get(&spider) == Some(&ScheduleState::Paused),
        last: last.remove(&spider),
        schedule: schedule.clone(),
        spider,
    };
    let mut standings: Vec<Standing> = timetable.schedules().map(standing).collect();
    standings.sort_by(|one, other| one.spider.cmp(&other.spider));
    Ok(standings)
}

/// Returns whether there is a schedule of this spider: in `timetable`, or known from workers.
pub async fn is_known(spider: &SpiderRef, timetable: &Timetable, schedules: &dyn Schedules) -> Result<bool> {
    let is_here = timetable.schedules().any(|(known, _)| known == *spider);
    Ok(is_here || schedules.list().await?.contains_key(spider))
}
