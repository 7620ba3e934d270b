//! Events of jobs.

use serde::{Serialize, Serializer};

use crate::names::{CrawlRef, ProjectName};
use crate::time::UnixMs;

/// A job that has failed. A repeated event has the same id.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEvent {
    /// The time of the event.
    pub at: UnixMs,
    /// The crawl that the job was to become.
    pub crawl: CrawlRef,
    /// The project of its spider.
    pub project: ProjectName,
    /// The reason why it has failed.
    pub problem: String,
}

impl JobEvent {
    /// The name of the event, which is its routing key.
    pub fn name(&self) -> String {
        "job.failed".to_owned()
    }

    /// The id of the event, equal for all copies of it.
    pub fn id(&self) -> String {
        format!("{}.job.failed", self.crawl.id)
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
        let Self { at, crawl: CrawlRef { id, spider }, project, problem } = self;
        let body = Body {
            id: self.id(),
            r#type: self.name(),
            time: at.to_string(),
            crawl: id.as_str(),
            spider: spider.as_str(),
            project: project.as_str(),
            status: "failed",
            problem,
        };
        body.serialize(to)
    }
}
