//! Items as comma-separated values (RFC 4180).

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read};

use csv::{ByteRecord, ReaderBuilder, Terminator, Writer, WriterBuilder};
use serde_json::Value;
use trawl_common::item::Item;

use super::columns::Columns;

/// The longest first line that is looked at.
const LONGEST_HEAD: u64 = 1 << 20;

/// The first line: the names of the columns.
pub(super) fn head(columns: &Columns) -> io::Result<Vec<u8>> {
    let mut writer = writer();
    writer.write_record(columns.names())?;
    written(writer)
}

/// A line for each item, or more where a text has line breaks.
pub(super) fn rows<'a>(columns: &Columns, items: impl Iterator<Item = &'a Item>) -> io::Result<Vec<u8>> {
    let mut writer = writer();
    for item in items {
        for column in columns.iter() {
            let value = column.value(item);
            writer.write_field(&*cell(&value))?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    written(writer)
}

/// Fails with `InvalidData` if a file that begins as `input` has other columns.
pub(super) fn check(input: impl Read, columns: &Columns) -> io::Result<()> {
    let mut found = ByteRecord::new();
    ReaderBuilder::new()
        .has_headers(false)
        .from_reader(input.take(LONGEST_HEAD))
        .read_byte_record(&mut found)?;
    if found.iter().eq(columns.names().map(str::as_bytes)) {
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

/// A value as a cell: lists and objects as JSON, and nothing that a spreadsheet would take for a formula.
fn cell(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) if is_formula(text) => Cow::Owned(format!("'{text}")),
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Whether a spreadsheet may take a text for a formula; a plain number is none.
fn is_formula(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
        && !(text.bytes().all(plain) && text.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_text_and_numbers_stay_numbers() {
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-inf", "-", "+1-1"]
        {
            assert_eq!(cell(&formula.into()), format!("'{formula}"));
        }
        for plain in ["-1", "+49", "-1.5", "-1e-7", "a=b", "", " =1", "5-3", "'=1"] {
            assert_eq!(cell(&plain.into()), plain);
        }
        assert_eq!(cell(&serde_json::json!(-1.5)), "-1.5");
    }
}
