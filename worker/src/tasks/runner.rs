//! The interface for running tasks.

use async_trait::async_trait;
use trawl_common::fleet_log::LogWriter;
use trawl_common::frontier::outcome::Failure;
use trawl_common::request::NewRequest;
use trawl_common::task::{NewTask, TaskView};
use trawl_handlers::ItemsFile;

use crate::spiders::LoadedSpider;

/// Runs the programs of spiders.
#[async_trait]
pub(crate) trait TaskRunner: Send + Sync {
    /// Whether it can run tasks of this spider.
    fn runs(&self, spider: &LoadedSpider) -> bool;

    /// Runs a task of the spider to its end, within the limits that the spider's file sets. The log of its
    /// program goes to `log`. Dropping the future ends the program's run.
    async fn run(&self, spider: &LoadedSpider, task: TaskView, log: &LogWriter) -> Ran;
}

/// The result of running a task.
#[derive(Debug)]
pub(crate) enum Ran {
    /// It is done and output this.
    Done(Gave),
    /// It failed, and is to be retried if it may be.
    Failed(Failure),
    /// It is to be skipped.
    Skipped,
    /// It cannot be run on this machine, for this reason.
    NotRun(String),
}

/// The yield of a finished task.
#[derive(Debug, Default)]
pub(crate) struct Gave {
    /// The fields of each item for the sinks.
    pub(crate) items: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Further items.
    pub(crate) file: Option<ItemsFile>,
    /// New tasks.
    pub(crate) tasks: Vec<NewTask>,
    /// URLs and requests to fetch.
    pub(crate) urls: Vec<NewRequest>,
}
