//! Events of jobs.

use serde::{Serialize, Serializer};

use crate::jobs::{NewJob, Problem};
use crate::time::UnixMs;

/// A job that has failed. A repeated event has the same id.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEvent {
    /// The time of the event.
    pub at: UnixMs,
    /// The job.
    pub job: NewJob,
    /// Why it has failed.
    pub problem: Problem,
}

impl JobEvent {
    /// The name of the event, which is its routing key.
    pub fn name(&self) -> String {
        "job.failed".to_owned()
    }

    /// The id of the event, equal for all copies of it.
    pub fn id(&self) -> String {
        format!("{}.job.failed", self.job.id)
    }
}

impl Serialize for JobEvent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Body<'a> {
            id: String,
            r#type: String,
            time: String,
            crawl: &'a str,
            spider: &'a str,
            project: &'a str,
            status: &'static str,
            problem: &'a str,
        }
        let Self { at, job, problem } = self;
        let body = Body {
            id: self.id(),
            r#type: self.name(),
            time: at.to_string(),
            crawl: job.id.as_str(),
            spider: job.spider.as_str(),
            project: job.project.as_str(),
            status: "failed",
            problem: problem.as_str(),
        };
        body.serialize(to)
    }
}
