//! The JSON form of a job, in the output of commands.

use serde::{Serialize, Serializer};

use super::{Job, JobOverrides, JobStatus, Problem};
use crate::names::{CrawlId, ProjectName, SpiderName, WorkerId};
use crate::priority::Priority;
use crate::spider::Version;
use crate::spider::arguments::Arguments;
use crate::web::url::CanonicalUrl;

#[derive(Serialize)]
struct Shown<'a> {
    job: &'a CrawlId,
    project: &'a ProjectName,
    spider: &'a SpiderName,
    version: Option<&'a Version>,
    status: JobStatus,
    priority: Priority,
    /// The URLs alone: other parts of requests may have secrets.
    urls: Vec<&'a str>,
    /// Number of tasks in it.
    tasks: usize,
    sources: &'a [CanonicalUrl],
    arguments: &'a Arguments,
    settings: JobOverrides,
    asked: String,
    started: Option<String>,
    ended: Option<String>,
    worker: Option<&'a WorkerId>,
    problem: Option<&'a str>,
}

impl Serialize for Job {
    /// Serializes instants as texts by RFC 3339.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let run = self.run();
        Shown {
            job: &self.new.id,
            project: &self.new.project,
            spider: &self.new.spider,
            version: self.new.version.as_ref(),
            status: self.status(),
            priority: self.new.priority,
            urls: self.new.requests().map(|new| new.url.as_str()).collect(),
            tasks: self.new.tasks().count(),
            sources: &self.new.sources,
            arguments: &self.new.arguments,
            settings: self.new.settings,
            asked: self.asked.to_string(),
            started: run.map(|run| run.started.to_string()),
            ended: self.ended().map(|at| at.to_string()),
            worker: run.map(|run| &run.runner),
            problem: self.problem().map(Problem::as_str),
        }
        .serialize(to)
    }
}
