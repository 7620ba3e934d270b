//! What runs a task.

use async_trait::async_trait;
use trawl_common::frontier::outcome::Failure;
use trawl_common::logs::LogWriter;
use trawl_common::request::NewRequest;
use trawl_common::task::{NewTask, TaskView};
use trawl_handlers::ItemsFile;

use crate::spiders::Loaded;

/// Runs the programs of spiders.
#[async_trait]
pub(crate) trait TaskRunner: Send + Sync {
    /// Whether it can run tasks of this spider.
    fn runs(&self, spider: &Loaded) -> bool;

    /// Runs a task of the spider to its end, within the limits that the spider's file sets. What its program logs goes to `log`. Dropped,
    /// it ends what it has started.
    async fn run(&self, spider: &Loaded, task: TaskView, log: &LogWriter) -> Ran;
}

/// What came of running a task.
#[derive(Debug)]
pub(crate) enum Ran {
    /// It is done, and gave this.
    Done(Gave),
    /// It failed, and is to be tried again as often as it may.
    Failed(Failure),
    /// It is to be left out.
    Skipped,
    /// It cannot be run on this machine: why.
    NotRun(String),
}

/// What a task that is done gave.
#[derive(Debug, Default)]
pub(crate) struct Gave {
    /// What goes to the sinks: the fields of each item.
    pub(crate) items: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Further ones.
    pub(crate) file: Option<ItemsFile>,
    /// What else is to be done.
    pub(crate) tasks: Vec<NewTask>,
    /// What is to be fetched.
    pub(crate) urls: Vec<NewRequest>,
}
