//! Items as lines of a file: JSON Lines, or comma-separated values.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use trawl_common::ports::{Page, Result, Sink};
use trawl_common::settings::{Compress, FileSink};
use trawl_common::spider::item::Item;

use super::columns::Columns;
use super::csv;
use super::directory::Directory;
use super::disk::{self, in_background};
use super::growing::{Form, Growing};
use super::whole::{Records, unpack};

/// A file of items.
pub(super) struct ItemFile {
    name: String,
    path: PathBuf,
    format: Format,
    file: Arc<Mutex<Growing>>,
}

/// The format of a line.
enum Format {
    Json,
    Csv(Columns),
}

impl ItemFile {
    /// Opens a file of JSON Lines in this folder.
    pub(super) fn json(sink: &FileSink, folder: Directory) -> Result<Self> {
        let form = form(sink, Records::Lines, Vec::new());
        Self::open("jsonl", &sink.path, folder, Format::Json, form)
    }

    /// Opens a file of comma-separated values. Fails with `Refused` if it exists and has other columns, unless it may
    /// be set aside.
    pub(super) fn csv(sink: &FileSink, columns: Columns, folder: Directory) -> Result<Self> {
        let head = csv::head(&columns, sink.bom).map_err(|error| disk::failed(&sink.path, &error))?;
        let form = form(sink, Records::Quoted, head);
        Self::open("csv", &sink.path, folder, Format::Csv(columns), form)
    }

    fn open(kind: &str, path: &Path, folder: Directory, format: Format, form: Form) -> Result<Self> {
        let opened = || {
            let (compress, rotate) = (form.compress, form.rotate);
            let mut file = Growing::open(folder, Path::new(path.file_name().unwrap_or_default()), form)?;
            let reached = file.place().0;
            if let Format::Csv(columns) = &format
                && reached.is_file()
                && let Err(other) = csv::check(unpack(File::open(reached)?, compress)?, columns)
            {
                match rotate {
                    Some(_) => file.set_aside()?,
                    None => return Err(other),
                }
            }
            Ok(file)
        };
        let file = opened().map_err(|error: io::Error| disk::failed(path, &error))?;
        Ok(Self {
            name: format!("{kind} {}", path.display()),
            path: path.to_owned(),
            format,
            file: Arc::new(Mutex::new(file)),
        })
    }
}

#[async_trait]
impl Sink for ItemFile {
    fn name(&self) -> &str {
        &self.name
    }

    async fn put(&self, pages: &[Page]) -> Result<()> {
        let items = pages.iter().flat_map(|page| &page.items);
        let lines = match &self.format {
            Format::Json => json(items),
            Format::Csv(columns) => csv::rows(columns, items),
        };
        let lines = lines.map_err(|error| disk::failed(&self.path, &error))?;
        if lines.is_empty() {
            return Ok(());
        }
        let file = Arc::clone(&self.file);
        let append = move || file.lock().append(&lines);
        in_background(&self.path, append).await
    }
}

fn form(sink: &FileSink, records: Records, head: Vec<u8>) -> Form {
    let FileSink { compress, rotate, sync, .. } = *sink;
    Form { records, head, compress, rotate: rotate.map(|size| size.as_u64()), sync }
}

/// The form of a spool of JSON Lines.
pub(super) fn plain_json(sync: bool) -> Form {
    Form { records: Records::Lines, head: Vec::new(), compress: Compress::None, rotate: None, sync }
}

/// Returns items as lines of JSON, one by one.
pub(super) fn json<'a>(items: impl Iterator<Item = &'a Item>) -> io::Result<Vec<Vec<u8>>> {
    let line = |item| {
        let mut line = serde_json::to_vec(item)?;
        line.push(b'\n');
        Ok(line)
    };
    items.map(line).collect()
}
