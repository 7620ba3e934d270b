//! Where items go.

mod jsonl;

use std::sync::Arc;

pub use jsonl::JsonLines;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Error, ErrorKind, Outlets, Result, Sink};
use trawl_common::settings::SinkSettings;
use trawl_common::spider::Spider;

/// The sinks of one process.
pub struct Sinks {
    worker: WorkerId,
    default: Vec<SinkSettings>,
}

impl Sinks {
    /// For this worker; `default` is where items go of a spider that does not say it itself.
    pub fn new(worker: WorkerId, default: Vec<SinkSettings>) -> Self {
        Self { worker, default }
    }

    /// For a program that produces no items.
    pub fn none() -> Self {
        Self::new(WorkerId::of_this_machine(), Vec::new())
    }

    fn one(&self, settings: &SinkSettings, spider: &Spider) -> Result<Arc<dyn Sink>> {
        match settings {
            SinkSettings::Jsonl(lines) => {
                let path = lines.path.to_string_lossy();
                let path = path.replace("{worker}", self.worker.as_str());
                let path = path.replace("{spider}", spider.name.as_str());
                Ok(Arc::new(JsonLines::open(path.as_ref())?))
            }
            other => Err(Error::new(ErrorKind::Refused, format_args!("no such sink yet: {other:?}"))),
        }
    }
}

impl Outlets for Sinks {
    fn open(&self, spider: &Spider) -> Result<Vec<Arc<dyn Sink>>> {
        let sinks = spider.sinks.as_ref().unwrap_or(&self.default);
        sinks.iter().map(|sink| self.one(sink, spider)).collect()
    }
}
