//! Items as comma-separated values (RFC 4180).

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read};

use csv::{ByteRecord, ReaderBuilder, Terminator, Writer, WriterBuilder};
use trawl_common::cell::{cell, text_cell};
use trawl_common::spider::item::Item;

use super::columns::Columns;
use super::whole::MARK;

/// Maximum length in bytes of the first line of an existing file.
const MAX_HEAD_BYTES: u64 = 1 << 20;

/// Returns the first line with the names of the columns. A field may have any name from a spider's file.
pub(super) fn head(columns: &Columns, has_mark: bool) -> io::Result<Vec<u8>> {
    let mut writer = writer();
    writer.write_record(columns.names().map(text_cell).map(Cow::into_owned))?;
    let line = written(writer)?;
    Ok(if has_mark { [MARK, &line].concat() } else { line })
}

/// Returns a row for each item, with several lines if a text has line breaks.
pub(super) fn rows<'a>(columns: &Columns, items: impl Iterator<Item = &'a Item>) -> io::Result<Vec<Vec<u8>>> {
    let row = |item| {
        let mut writer = writer();
        for column in columns.iter() {
            let value = column.value(item);
            writer.write_field(&*cell(&value))?;
        }
        writer.write_record(None::<&[u8]>)?;
        written(writer)
    };
    items.map(row).collect()
}

/// Fails with `InvalidData` if a file that begins with `input` has other columns.
pub(super) fn check(input: impl Read, columns: &Columns) -> io::Result<()> {
    let mut found = ByteRecord::new();
    ReaderBuilder::new()
        .has_headers(false)
        .from_reader(input.take(MAX_HEAD_BYTES))
        .read_byte_record(&mut found)?;
    let is_of = |(found, name): (&[u8], &str)| found == text_cell(name).as_bytes();
    if found.len() == columns.names().count() && found.iter().zip(columns.names()).all(is_of) {
        return Ok(());
    }
    let found: Vec<_> = found.iter().map(String::from_utf8_lossy).collect();
    let wanted: Vec<_> = columns.names().collect();
    let what = format!(
        "it has the columns {}, and the spider's items have {}: move it away, or name another file, or give this one a \
         `rotate`, so that it is set aside",
        found.join(","),
        wanted.join(",")
    );
    Err(io::Error::new(ErrorKind::InvalidData, what))
}

fn writer() -> Writer<Vec<u8>> {
    WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new())
}

fn written(writer: Writer<Vec<u8>>) -> io::Result<Vec<u8>> {
    writer.into_inner().map_err(|error| error.into_error())
}
