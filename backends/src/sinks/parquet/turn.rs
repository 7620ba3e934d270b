//! Converts a spool to a Parquet file.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use serde_json::{Map, Value};
use tracing::{info, warn};
use trawl_common::names::SpiderName;
use trawl_common::spider::item::Item;

use super::super::columns::{Column, Columns, Shape};
use super::super::items::plain_json;
use super::super::orphans::{Begun, Orphans};
use super::super::own::mend;
use super::super::parts;
use super::column::{Cells, schema};

/// Extension of a spool's name.
pub(super) const SPOOL: &str = ".spool";

/// Size in bytes of JSON that becomes one row group, which is held in memory.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Converts the orphaned spools of this spider in a folder; the first failure is returned after all were tried.
pub(super) fn all(
    folder: &Path,
    spider: &SpiderName,
    columns: &Columns,
    orphans: &mut Orphans,
) -> io::Result<()> {
    let mut result = Ok(());
    for spool in Begun::all(folder, SPOOL)? {
        match one(&spool, spider, columns, orphans) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::ResourceBusy | ErrorKind::NotFound) => {}
            // It will not change: it is kept for people to look at.
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                if orphans.leave(&spool.path) {
                    warn!(file = %spool.path.display(), %error, "no spool of items; it is left as it is");
                }
            }
            Err(error) => result = result.and(Err(error)),
        }
    }
    result
}

/// Converts one spool. May be repeated after any failure: the file has the name of its spool.
fn one(begun: &Begun, spider: &SpiderName, columns: &Columns, orphans: &mut Orphans) -> io::Result<()> {
    // Locked as long as the file is open.
    let (spool, mut lock) = orphans.take(begun, SPOOL)?;
    mend(&spool, &mut lock, &plain_json(false))?;
    let mut items = items(&spool)?.peekable();
    match items.peek() {
        None => return fs::remove_file(spool),
        Some(Ok((item, _))) if item.spider != *spider => return Ok(()),
        // No file is created for it, not even briefly.
        Some(Err(_)) => return items.next().transpose().map(drop),
        Some(Ok(_)) => {}
    }
    let growing = spool.with_extension("parquet");
    let name = format!("{}.parquet", begun.name);
    if let Err(error) =
        write(&growing, items, columns).and_then(|()| parts::place(&growing, &spool.with_file_name(&name)))
    {
        let _ = fs::remove_file(&growing);
        return Err(error);
    }
    info!(file = name, "finished");
    fs::remove_file(spool)
}

/// Returns the items of a spool, each with the length of its line.
fn items(spool: &Path) -> io::Result<impl Iterator<Item = io::Result<(Item, usize)>> + use<>> {
    let mut input = BufReader::new(File::open(spool)?);
    Ok(std::iter::from_fn(move || {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(length) => Some(item(&line).map(|item| (item, length))),
            Err(error) => Some(Err(error)),
        }
    }))
}

fn item(line: &[u8]) -> io::Result<Item> {
    serde_json::from_slice(line).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

fn write(
    path: &Path,
    mut items: impl Iterator<Item = io::Result<(Item, usize)>>,
    columns: &Columns,
) -> io::Result<()> {
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let file = File::create(path)?;
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(schema(columns).map_err(io_error)?), Arc::new(properties))
            .map_err(io_error)?;
    loop {
        let mut table = Table::new(columns);
        let mut size = 0;
        while size < ROW_GROUP_BYTES
            && let Some(item) = items.next()
        {
            let (item, length) = item?;
            table.push(&item);
            size += length;
        }
        if size == 0 {
            break;
        }
        table.write(&mut writer).map_err(io_error)?;
    }
    writer.close().map_err(io_error)?;
    Ok(())
}

/// The rows of one row group, column by column.
struct Table<'a> {
    known: HashSet<&'a str>,
    columns: Vec<(&'a Column, Cells)>,
    /// The fields without a column, or with values that do not fit their column, as JSON.
    other: Cells,
}

impl<'a> Table<'a> {
    fn new(columns: &'a Columns) -> Self {
        Self {
            known: columns.fields(),
            columns: columns.iter().map(|column| (column, Cells::new(column.shape, column.list))).collect(),
            other: Cells::new(Shape::Json, false),
        }
    }

    fn push(&mut self, item: &Item) {
        let unknown = item.fields.iter().filter(|(name, _)| !self.known.contains(name.as_str()));
        let mut other: Map<String, Value> =
            unknown.map(|(name, value)| (name.clone(), value.clone())).collect();
        for (column, cells) in &mut self.columns {
            let value = column.value(item);
            if !cells.push(&value) {
                other.insert(column.source().to_owned(), value.into_owned());
            }
        }
        self.other.push(&if other.is_empty() { Value::Null } else { Value::Object(other) });
    }

    fn write(self, writer: &mut SerializedFileWriter<File>) -> Result<(), ParquetError> {
        let mut group = writer.next_row_group()?;
        for cells in self.columns.into_iter().map(|(_, cells)| cells).chain([self.other]) {
            let column = group.next_column()?;
            cells.write(column.ok_or_else(|| ParquetError::General("no such column".to_owned()))?)?;
        }
        group.close()?;
        Ok(())
    }
}

/// Keeps the error of a full disk recognizable.
fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
