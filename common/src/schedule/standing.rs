//! How schedules stand, for people.

use std::collections::BTreeMap;

use super::{Schedule, Timetable};
use crate::jobs::Job;
use crate::names::SpiderRef;
use crate::ports::{JobFilter, JobPage, Jobs, Result, ScheduleState, Schedules};
use crate::time::UnixMs;

/// How many jobs are looked at for the last ones of spiders: the newest.
const JOBS: usize = 1_000;

/// A spider's schedule, and how it stands.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The spider.
    pub spider: SpiderRef,
    /// When it is due.
    pub schedule: Schedule,
    /// Whether people hold it.
    pub is_paused: bool,
    /// The spider's last job, scheduled or not, if it is among the newest.
    pub last: Option<Job>,
}

impl Standing {
    /// When the next crawl is due after `now`, if it is not paused.
    pub fn next(&self, now: UnixMs) -> Option<UnixMs> {
        self.schedule.next(now).filter(|_| !self.is_paused)
    }
}

/// How each schedule of `timetable` stands, by spider.
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

/// Whether there is a schedule of this spider: in `timetable`, or as far as workers have seen one.
pub async fn is_known(spider: &SpiderRef, timetable: &Timetable, schedules: &dyn Schedules) -> Result<bool> {
    let is_here = timetable.schedules().any(|(known, _)| known == *spider);
    Ok(is_here || schedules.list().await?.contains_key(spider))
}
