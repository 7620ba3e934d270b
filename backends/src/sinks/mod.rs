//! Where items go.

mod append;
mod columns;
mod csv;
mod disk;
mod growing;
mod items;
pub(crate) mod lock;
mod orphans;
mod parquet;
mod parts;
pub(crate) mod postgres;
mod stream;
mod warc;
mod whole;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use postgres::Postgres;
pub use stream::Stream;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Error, ErrorKind, Result, Sink, SinkFactory};
use trawl_common::settings::{Folder, Lines, SinkSettings};
use trawl_common::spider::Spider;

use self::columns::Columns;
use self::items::ItemFile;
use self::parquet::Parquet;
use self::warc::Archive;
use crate::rabbitmq::RabbitMq;

/// The sinks of one process.
pub struct Sinks {
    worker: WorkerId,
    default: Vec<SinkSettings>,
    broker: Option<Arc<RabbitMq>>,
    files: Mutex<Vec<OpenFile>>,
}

/// A file that has one writer, for all that name it alike.
struct OpenFile {
    settings: SinkSettings,
    /// The names of its columns, if it has any.
    columns: Vec<String>,
    sink: Weak<dyn Sink>,
}

impl Sinks {
    /// For this worker; `default` is where items go of a spider that does not say it itself.
    pub fn new(worker: WorkerId, default: Vec<SinkSettings>) -> Self {
        Self { worker, default, broker: None, files: Mutex::default() }
    }

    /// With a broker, for the stream.
    pub fn of_fleet(worker: WorkerId, default: Vec<SinkSettings>, broker: Arc<RabbitMq>) -> Self {
        Self { worker, default, broker: Some(broker), files: Mutex::default() }
    }

    /// For a program that produces no items.
    pub fn none() -> Self {
        Self::new(WorkerId::of_this_machine(), Vec::new())
    }

    fn one(&self, settings: &SinkSettings, spider: &Spider) -> Result<Arc<dyn Sink>> {
        match settings {
            SinkSettings::Jsonl(lines) => {
                let lines = self.lines(lines, spider);
                self.file(SinkSettings::Jsonl(lines.clone()), Vec::new(), || ItemFile::json(&lines))
            }
            SinkSettings::Csv(lines) => {
                let lines = self.lines(lines, spider);
                let columns = Columns::of(spider);
                let names = columns.names().map(str::to_owned).collect();
                self.file(SinkSettings::Csv(lines.clone()), names, || ItemFile::csv(&lines, columns))
            }
            SinkSettings::Parquet(folder) => {
                Ok(Arc::new(Parquet::open(&self.folder(folder, spider), spider)?))
            }
            SinkSettings::Warc(folder) => Ok(Arc::new(Archive::open(&self.folder(folder, spider), spider)?)),
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
        }
    }

    /// The file that is open already, or else what `open` opens.
    fn file(
        &self,
        settings: SinkSettings,
        columns: Vec<String>,
        open: impl FnOnce() -> Result<ItemFile>,
    ) -> Result<Arc<dyn Sink>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|file| file.sink.strong_count() > 0);
        let same = files.iter().find(|file| file.settings == settings && file.columns == columns);
        if let Some(sink) = same.and_then(|file| file.sink.upgrade()) {
            return Ok(sink);
        }
        let sink: Arc<dyn Sink> = Arc::new(open()?);
        files.push(OpenFile { settings, columns, sink: Arc::downgrade(&sink) });
        Ok(sink)
    }

    fn lines(&self, lines: &Lines, spider: &Spider) -> Lines {
        Lines { path: self.path(&lines.path, spider), ..lines.clone() }
    }

    fn folder(&self, folder: &Folder, spider: &Spider) -> Folder {
        Folder { path: self.path(&folder.path, spider), ..folder.clone() }
    }

    /// The path with the worker's id and the spider's name in it.
    fn path(&self, path: &Path, spider: &Spider) -> PathBuf {
        let path = path.to_string_lossy().replace("{worker}", self.worker.as_str());
        path.replace("{spider}", spider.name.as_str()).into()
    }
}

impl SinkFactory for Sinks {
    fn open(&self, spider: &Spider) -> Result<Vec<Arc<dyn Sink>>> {
        let sinks = spider.sinks.as_ref().unwrap_or(&self.default);
        sinks.iter().map(|sink| self.one(sink, spider)).collect()
    }
}
