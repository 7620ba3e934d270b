//! The destinations of items.

mod append;
mod columns;
mod csv;
mod directory;
mod disk;
mod files;
mod growing;
mod items;
pub(crate) mod lock;
mod orphans;
mod own;
mod parquet;
mod parts;
pub(crate) mod postgres;
mod stream;
mod warc;
mod webhook;
mod whole;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub use postgres::Postgres;
pub use stream::Stream;
use trawl_common::names::WorkerId;
use trawl_common::ports::{Error, ErrorKind, FileStore, Result, Sink, SinkFactory};
use trawl_common::settings::{self, FileSink, SinkSettings};
use trawl_common::spider::{Download, Spider};
use trawl_web::Guard;

use self::columns::Columns;
use self::directory::Directory;
use self::files::FileFolder;
use self::items::ItemFile;
use self::parquet::Parquet;
use self::warc::Archive;
pub use self::warc::{Archived, Noted, Unreadable, WarcReader, warc_files};
use self::webhook::Webhook;
use crate::rabbitmq::RabbitMq;

/// The sinks of one process.
pub struct Sinks {
    worker: WorkerId,
    default: Vec<SinkSettings>,
    broker: Option<Arc<RabbitMq>>,
    files: Mutex<Vec<OpenFile>>,
    /// The restrictions on databases that are named by people without access to the machine.
    guard: Guard,
}

/// A file that has one writer, shared by all sinks that name it.
struct OpenFile {
    settings: SinkSettings,
    /// The names of its columns, if any.
    columns: Vec<String>,
    sink: Weak<dyn Sink>,
}

impl Sinks {
    /// Creates the sinks of this worker; `default` is used for spiders that have no sinks of their own.
    pub fn new(worker: WorkerId, default: Vec<SinkSettings>) -> Self {
        let guard = Guard::from_settings(settings::Fetch::default());
        Self { worker, default, broker: None, files: Mutex::default(), guard }
    }

    /// Creates the sinks of a fleet's worker, with a broker for the stream, and with restrictions on the databases that
    /// spiders of crawls name.
    pub(crate) fn for_fleet(
        worker: WorkerId,
        default: Vec<SinkSettings>,
        broker: Arc<RabbitMq>,
        fetch: &settings::Fetch,
    ) -> Self {
        let guard = Guard::from_settings(fetch.clone());
        Self { broker: Some(broker), guard, ..Self::new(worker, default) }
    }

    /// Creates no sinks, for a program that produces no items.
    pub fn none() -> Self {
        Self::new(WorkerId::of_this_machine(), Vec::new())
    }

    fn one(&self, settings: &SinkSettings, spider: &Spider) -> Result<Arc<dyn Sink>> {
        match settings {
            SinkSettings::Jsonl(sink) => {
                let sink = self.file_sink(sink, spider);
                let directory = of_file(&sink)?;
                self.file(SinkSettings::Jsonl(sink.clone()), Vec::new(), || ItemFile::json(&sink, directory))
            }
            SinkSettings::Csv(sink) => {
                let sink = self.file_sink(sink, spider);
                let columns = Columns::new(spider);
                let names = columns.names().map(str::to_owned).collect();
                let directory = of_file(&sink)?;
                self.file(SinkSettings::Csv(sink.clone()), names, || ItemFile::csv(&sink, columns, directory))
            }
            SinkSettings::Parquet(sink) => {
                let sink = self.file_sink(sink, spider);
                Ok(Arc::new(Parquet::open(&sink, open_directory(&sink, &sink.path)?, spider)?))
            }
            SinkSettings::Warc(sink) => {
                let sink = self.file_sink(sink, spider);
                Ok(Arc::new(Archive::open(&sink, open_directory(&sink, &sink.path)?, spider)?))
            }
            SinkSettings::Stream => match &self.broker {
                Some(broker) => Ok(Arc::new(Stream::new(Arc::clone(broker)))),
                None => Err(Error::new(
                    ErrorKind::Refused,
                    "the sink `stream` needs the broker of a fleet: name another for `trawl crawl`",
                )),
            },
            SinkSettings::Postgres { url, table } => {
                Ok(Arc::new(Postgres::with(url, table.as_deref(), spider, &self.guard)?))
            }
            SinkSettings::Webhook { url, secret, changed } => {
                Ok(Arc::new(Webhook::new(url, secret, *changed, &self.guard)?))
            }
        }
    }

    /// Returns the open file, or opens it with `open`: a file has one writer, shared by all sinks that name it.
    fn file(
        &self,
        settings: SinkSettings,
        columns: Vec<String>,
        open: impl FnOnce() -> Result<ItemFile>,
    ) -> Result<Arc<dyn Sink>> {
        let settings = anywhere(settings);
        let mut files = self.files.lock();
        files.retain(|file| file.sink.strong_count() > 0);
        let same = files.iter().find(|file| file.settings == settings && file.columns == columns);
        if let Some(sink) = same.and_then(|file| file.sink.upgrade()) {
            return Ok(sink);
        }
        let sink: Arc<dyn Sink> = Arc::new(open()?);
        files.push(OpenFile { settings, columns, sink: Arc::downgrade(&sink) });
        Ok(sink)
    }

    fn file_sink(&self, sink: &FileSink, spider: &Spider) -> FileSink {
        FileSink { path: self.path(&sink.path, spider), ..sink.clone() }
    }

    /// Returns the path with the worker's id and the spider's name inserted.
    fn path(&self, path: &Path, spider: &Spider) -> PathBuf {
        let path = path.to_string_lossy().replace("{worker}", self.worker.as_str());
        path.replace("{spider}", spider.name.as_str()).into()
    }
}

/// Removes the folder restriction, so that settings of one file are equal whoever named it.
fn anywhere(settings: SinkSettings) -> SinkSettings {
    match settings {
        SinkSettings::Jsonl(sink) => SinkSettings::Jsonl(FileSink { below: None, ..sink }),
        SinkSettings::Csv(sink) => SinkSettings::Csv(FileSink { below: None, ..sink }),
        other => other,
    }
}

/// Opens the folder of a file of lines.
fn of_file(sink: &FileSink) -> Result<Directory> {
    open_directory(sink, sink.path.parent().unwrap_or(Path::new("")))
}

/// Opens a folder that a sink writes to.
fn open_directory(sink: &FileSink, folder: &Path) -> Result<Directory> {
    Directory::new(folder, sink.below.as_deref()).map_err(|error| disk::failed(&sink.path, &error))
}

impl SinkFactory for Sinks {
    fn open(&self, spider: &Spider) -> Result<Vec<Arc<dyn Sink>>> {
        let sinks = spider.sinks.as_ref().unwrap_or(&self.default);
        sinks.iter().map(|sink| self.one(sink, spider)).collect()
    }

    fn open_files(&self, spider: &Spider, download: &Download) -> Result<Arc<dyn FileStore>> {
        let to = self.path(&download.to, spider);
        Ok(Arc::new(FileFolder::open(to, download.below.clone(), download.sync)?))
    }
}
