//! Unfinished tasks for people: the lists of both the commands and the HTTP API.

use serde::{Deserialize, Serialize};

use crate::frontier::dead_letter::DeadLetterEntry;
use crate::frontier::{Key, State, TaskKey, UrlState, Work};
use crate::names::{CrawlId, CrawlRef, SpiderName, WorkerId};
use crate::ports::{Control, Result, Stats, WorkerState};
use crate::task::{NewTask, Recipe};
use crate::time::UnixMs;

/// The place of an unfinished task.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TaskPlace {
    /// It waits for a worker, or for its turn in one.
    Waiting,
    /// Its program runs.
    Running,
    /// It is parked until an instant.
    Parked,
    /// It is a dead letter.
    Failed,
}

impl TaskPlace {
    /// Every place, by name.
    pub const NAMES: &[&str] = <Self as strum::VariantNames>::VARIANTS;
}

/// An unfinished task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskReport {
    /// Its key.
    pub task: String,
    /// Its crawl.
    pub crawl: CrawlId,
    /// Its spider.
    pub spider: SpiderName,
    /// Its place.
    pub place: TaskPlace,
    /// The time since when it waits, runs, or has failed, if known, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The time until which it is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Why it is put aside, as far as that is known: of one task that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The worker that has it, or that gave up on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerId>,
    /// Number of failed attempts.
    pub attempts: u32,
    /// The reason why it failed for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The page or the task that submitted it, if known; only for a failed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referrer: Option<Key>,
    /// Its recipe.
    pub recipe: Option<Recipe>,
    /// The whole submission.
    #[serde(skip)]
    pub says: Option<NewTask>,
}

impl TaskReport {
    fn runs(&self) -> bool {
        self.place == TaskPlace::Running
    }
}

/// A position in the list of a crawl's tasks: whether it is among the failed ones, and the position there.
/// Unfinished ones come first.
pub type ListPlace = (bool, u64);

/// Reads the tasks of crawls.
#[derive(Clone, Copy)]
pub struct TaskReader<'a> {
    /// The source of tasks without an end.
    pub stats: &'a dyn Stats,
    /// The source of failed tasks, and of the payload of all.
    pub control: &'a dyn Control,
}

impl TaskReader<'_> {
    /// Returns a part of a crawl's unfinished tasks, only those at `only` if given, from a position on (`(false,
    /// 0)` at first); and the position from which to continue. A part may be empty without being the last; a task
    /// may come twice.
    pub async fn page(
        &self,
        crawl: &CrawlRef,
        (is_failed, cursor): ListPlace,
        only: Option<TaskPlace>,
    ) -> Result<(Vec<TaskReport>, Option<ListPlace>)> {
        if cursor == 0 && !self.stats.may_have_tasks(crawl).await? {
            return Ok((Vec::new(), None));
        }
        let mut reports = Vec::new();
        if !is_failed && only != Some(TaskPlace::Failed) {
            let page = self.stats.tasks(crawl, cursor).await?;
            let listed = page.tasks.iter();
            let listed = listed.map(|pending| report(crawl, &pending.key, &pending.state, pending.attempts));
            let mut listed: Vec<TaskReport> = listed.collect();
            self.note_begins(&mut listed).await?;
            for (report, pending) in listed.into_iter().zip(page.tasks) {
                if only.is_none_or(|only| only == report.place) {
                    reports.push(self.with_recipe(crawl, &pending.key, report).await?);
                }
            }
            let failed = only.is_none().then_some((true, 0));
            return Ok((reports, page.next.map(|next| (false, next)).or(failed)));
        }
        let page = self.control.failed(crawl, if is_failed { cursor } else { 0 }).await?;
        for (key, note) in page.failed {
            if let Key::Task(key) = key {
                reports.push(self.with_recipe(crawl, &key, failed(crawl, &key, &note)).await?);
            }
        }
        Ok((reports, page.next.map(|next| (true, next))))
    }

    /// Returns the running tasks of these crawls, by the last heartbeats of workers: at most 200 of each worker.
    /// The cost depends on their number, not on how many others wait.
    pub async fn running(&self, crawls: &[CrawlRef]) -> Result<Vec<TaskReport>> {
        let mut running = Vec::new();
        for state in self.stats.workers().await? {
            for key in state.running.keys().filter_map(|key| key.parse::<TaskKey>().ok()) {
                running.extend(self.running_on(&state.worker, crawls, &key).await?);
            }
        }
        Ok(running)
    }

    /// Returns the task that a worker runs, from the crawl whose record says so; `None` if it has ended since.
    async fn running_on(
        &self,
        worker: &WorkerId,
        crawls: &[CrawlRef],
        key: &TaskKey,
    ) -> Result<Option<TaskReport>> {
        for crawl in crawls {
            let found = self.one(crawl, key).await?;
            let is_it = |report: &TaskReport| report.runs() && report.worker.as_ref() == Some(worker);
            if let Some(report) = found.filter(is_it) {
                return Ok(Some(report));
            }
        }
        Ok(None)
    }

    /// Returns a task of a crawl, if it is unfinished there.
    pub async fn one(&self, crawl: &CrawlRef, key: &TaskKey) -> Result<Option<TaskReport>> {
        let of = Key::from(key.clone());
        let report = match self.stats.url_state(crawl, &of).await? {
            UrlState::Pending(record) => {
                let mut report = report(crawl, key, &record.state, record.attempts);
                self.note_begins(std::slice::from_mut(&mut report)).await?;
                if report.place == TaskPlace::Parked {
                    report.why = why_parked(&self.stats.workers().await?, &report);
                }
                report
            }
            UrlState::Unseen | UrlState::Ended => match self.control.failure(crawl, &of).await? {
                Some(note) => failed(crawl, key, &note),
                None => return Ok(None),
            },
        };
        self.with_recipe(crawl, key, report).await.map(Some)
    }

    /// Sets the start of running tasks, by the last heartbeats of their workers.
    async fn note_begins(&self, reports: &mut [TaskReport]) -> Result<()> {
        if !reports.iter().any(TaskReport::runs) {
            return Ok(());
        }
        let workers = self.stats.workers().await?;
        for report in reports.iter_mut().filter(|report| report.runs()) {
            let worker = workers.iter().find(|state| report.worker.as_ref() == Some(&state.worker));
            let since = worker.and_then(|state| state.running.get(&report.task));
            report.since = since.map(ToString::to_string);
        }
        Ok(())
    }

    /// Adds the payload. A task that has gone meanwhile, or whose payload cannot be read, is listed without it, so
    /// that the others follow.
    async fn with_recipe(&self, crawl: &CrawlRef, key: &TaskKey, report: TaskReport) -> Result<TaskReport> {
        let work = self.control.readable_work(crawl, &key.clone().into()).await?;
        let says = work.as_ref().and_then(Work::task).map(|task| task.new.clone());
        Ok(TaskReport { recipe: says.as_ref().map(|new| new.recipe.clone()), says, ..report })
    }
}

fn report(crawl: &CrawlRef, key: &TaskKey, state: &State, attempts: u32) -> TaskReport {
    let (place, since, until, worker) = match state {
        State::New { since } | State::Queued { since } => (TaskPlace::Waiting, Some(*since), None, None),
        State::Parked { until, .. } => (TaskPlace::Parked, None, Some(*until), None),
        // The record has the time of the last extension of the lease, not of the start: only the worker knows
        // that.
        State::Held { by, has_started, .. } => {
            let place = if *has_started { TaskPlace::Running } else { TaskPlace::Waiting };
            (place, None, None, Some(by.clone()))
        }
    };
    // Zero means that the time is not known.
    let text = |instant: Option<UnixMs>| instant.filter(|at| at.0 > 0).map(|at| at.to_string());
    TaskReport {
        task: key.to_string(),
        crawl: crawl.id.clone(),
        spider: crawl.spider.clone(),
        place,
        since: text(since),
        until: text(until),
        why: None,
        worker,
        attempts,
        error: None,
        referrer: None,
        recipe: None,
        says: None,
    }
}

/// Why a task is put aside: a worker cannot run the program of its spider, or it has failed.
fn why_parked(workers: &[WorkerState], TaskReport { spider, attempts, .. }: &TaskReport) -> Option<String> {
    let lack = workers.iter().find_map(|state| Some((state, state.lacks.get(spider)?)));
    match (lack, attempts) {
        (Some((state, why)), _) => {
            Some(format!("{} cannot work for the spider {spider}: {why}", state.worker))
        }
        (None, 0) => None,
        (None, 1) => Some("it has failed once, and is tried again".to_owned()),
        (None, times) => Some(format!("it has failed {times} times, and is tried again")),
    }
}

fn failed(crawl: &CrawlRef, key: &TaskKey, note: &DeadLetterEntry) -> TaskReport {
    let nowhere = State::Queued { since: note.cause.failed_at };
    TaskReport {
        place: TaskPlace::Failed,
        error: Some(note.cause.error.clone()),
        worker: note.cause.worker.clone(),
        referrer: note.referrer.clone(),
        ..report(crawl, key, &nowhere, note.cause.attempts)
    }
}
