//! Where items go.

mod jsonl;
mod postgres;
mod stream;

use std::sync::Arc;

pub use jsonl::JsonLines;
pub use postgres::Postgres;
pub use stream::Stream;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Error, ErrorKind, Outlets, Result, Sink};
use trawl_common::settings::SinkSettings;
use trawl_common::spider::Spider;

use crate::rabbitmq::RabbitMq;

/// The sinks of one process.
pub struct Sinks {
    worker: WorkerId,
    default: Vec<SinkSettings>,
    broker: Option<Arc<RabbitMq>>,
}

impl Sinks {
    /// For this worker; `default` is where items go of a spider that does not say it itself.
    pub fn new(worker: WorkerId, default: Vec<SinkSettings>) -> Self {
        Self { worker, default, broker: None }
    }

    /// With a broker, for the stream.
    pub fn of_fleet(worker: WorkerId, default: Vec<SinkSettings>, broker: Arc<RabbitMq>) -> Self {
        Self { worker, default, broker: Some(broker) }
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
            SinkSettings::Stream => match &self.broker {
                Some(broker) => Ok(Arc::new(Stream::new(Arc::clone(broker)))),
                None => Err(Error::new(
                    ErrorKind::Refused,
                    "the sink `stream` needs the broker of a fleet: name another for `trawl crawl`",
                )),
            },
            SinkSettings::Postgres { url, table } => {
                Ok(Arc::new(Postgres::new(url, table.as_deref(), spider)?))
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
