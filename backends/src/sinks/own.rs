//! Checks whether a file of items was written by trawl: no other file is truncated or appended to.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tracing::warn;
use trawl_common::spider::item::Item;
use trawl_common::text::printable;

use super::growing::Form;
use super::whole::{MARK, Records, magic, unpack, whole};

/// Number of bytes that are checked at the beginning of a file.
const BEGINNING: u64 = 1 << 16;

/// The longest half record at the end of a file that is not compressed. Items have at most 8 MB.
const MAX_TAIL_BYTES: u64 = 32 << 20;

/// Number of removed bytes that the log shows.
const MAX_SHOWN_BYTES: usize = 1000;

/// The keys that an item of JSON Lines begins with, in this order.
const ITEM: [&str; 4] = [r#"{"id":""#, r#","url":""#, r#","crawl":""#, r#","spider":""#];

/// The number of hexadecimal digits in the id of an item.
const ID_DIGITS: usize = 32;

/// Prefix of the first line of comma-separated values.
const HEAD: &[u8] = b"id,url,crawl,spider,fetched_at,status,depth,";

/// Repairs the end of a file after an interrupted write, and returns the number of complete bytes. A complete item
/// without its line feed gets one; a partial one is cut off. Fails with `InvalidData`, and leaves the file unchanged,
/// if the file is not trawl's.
pub(super) fn mend(path: &Path, file: &mut File, form: &Form) -> io::Result<u64> {
    if file.metadata()?.len() == 0 {
        return Ok(0);
    }
    let whole = whole(file, form.compress, form.records)?;
    if !begins_as_own(file, form)? {
        return Err(foreign("it does not begin as a file of items that trawl writes"));
    }
    let len = file.metadata()?.len();
    if whole == len {
        return Ok(whole);
    }
    let foreign_end = || foreign("it ends in what trawl did not write, without a line feed");
    let written = end_without_zeros(file, whole)? - whole;
    let looked_at = match magic(form.compress) {
        // One write of many pages is one member, of any size.
        Some(magic) => written.min(magic.len() as u64),
        None if written > MAX_TAIL_BYTES => return Err(foreign_end()),
        None => written,
    };
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(whole))?;
    file.take(looked_at).read_to_end(&mut tail)?;
    let has_zeros = whole + written < len;
    let (is_whole, is_half) = match (magic(form.compress), form.records) {
        (Some(magic), _) => (false, begins_alike(&tail, magic)),
        (None, Records::Lines) => (!has_zeros && is_item(&tail), is_item_begun(&tail)),
        (None, Records::Quoted) => {
            let begins = if whole == 0 { is_head_begun(&tail) } else { is_row_begun(&tail) };
            let end = end_of_row(&tail).filter(|_| begins && !holds_row(&tail));
            (!has_zeros && end == Some(RowEnd::Returned), end.is_some())
        }
    };
    if is_whole {
        file.write_all(b"\n")?;
        return Ok(len + 1);
    }
    if !is_half {
        return Err(foreign_end());
    }
    let text = printable(&String::from_utf8_lossy(&tail), MAX_SHOWN_BYTES);
    warn!(file = %path.display(), bytes = len - whole, text, "cutting off what was not written to its end");
    file.set_len(whole)?;
    Ok(whole)
}

fn begins_as_own(file: &mut File, form: &Form) -> io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    let mut begin = Vec::new();
    // A torn file yields less; all its other errors have been reported by now.
    let read = unpack(&mut *file, form.compress)
        .and_then(|unpacked| unpacked.take(BEGINNING).read_to_end(&mut begin));
    match read {
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let line = begin.iter().position(|&byte| byte == b'\n').map(|end| &begin[..end]);
    Ok(match (form.records, line) {
        (Records::Lines, Some(line)) => is_item(line),
        (Records::Lines, None) => is_item(&begin) || is_item_begun(without_zeros(&begin)),
        (Records::Quoted, Some(line)) => line.strip_prefix(MARK).unwrap_or(line).starts_with(HEAD),
        (Records::Quoted, None) => is_head_begun(without_zeros(&begin)),
    })
}

/// Returns the end of a file without the zeros behind `start` that a power cut leaves where data did not reach the
/// disk.
fn end_without_zeros(file: &mut File, start: u64) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut block = vec![0; 1 << 16];
    while end > start {
        let from = end.saturating_sub(block.len() as u64).max(start);
        let part = &mut block[..(end - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(part)?;
        let written = without_zeros(part).len();
        if written > 0 {
            return Ok(from + written as u64);
        }
        end = from;
    }
    Ok(start)
}

/// Returns a text without such zeros at its end.
fn without_zeros(text: &[u8]) -> &[u8] {
    &text[..text.len() - text.iter().rev().take_while(|byte| **byte == 0).count()]
}

fn is_item(line: &[u8]) -> bool {
    serde_json::from_slice::<Item>(line).is_ok()
}

/// Whether this is an item as trawl writes it, or a prefix of one, however short.
fn is_item_begun(text: &[u8]) -> bool {
    let mut rest = text;
    for key in ITEM {
        if !begins_alike(rest, key.as_bytes()) {
            return false;
        }
        rest = rest.get(key.len()..).unwrap_or_default();
        // None of these values has a quotation mark in it.
        match rest.iter().position(|&byte| byte == b'"') {
            Some(end) => rest = &rest[end + 1..],
            None => return true,
        }
    }
    true
}

/// Whether this is the first line of comma-separated values, or the beginning of it, however short.
fn is_head_begun(text: &[u8]) -> bool {
    MARK.starts_with(text) || begins_alike(text.strip_prefix(MARK).unwrap_or(text), HEAD)
}

/// Whether this begins with the id of an item, or is the beginning of one, however short.
fn is_row_begun(text: &[u8]) -> bool {
    let (id, rest) = text.split_at(text.len().min(ID_DIGITS));
    id.iter().all(u8::is_ascii_hexdigit) && rest.first().is_none_or(|&byte| byte == b',')
}

/// Whether another line of this than the first begins as a row of an item does: a quotation mark too many or too few,
/// which somebody else put into the file, makes one row of all that follow. A write that was torn leaves the half of
/// one row.
fn holds_row(text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n').skip(1);
    lines.any(|line| line.len() > ID_DIGITS && is_row_begun(line))
}

/// The position in a row at which its beginning ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowEnd {
    /// Before the first byte of a cell.
    Comma,
    /// In a cell without quotation marks.
    Plain,
    /// Between quotation marks.
    Quoted,
    /// Behind a quotation mark that ends its cell, unless another one follows.
    Mark,
    /// Behind the carriage return that ends the row.
    Returned,
}

/// Returns the position at which this ends as the beginning of one row of RFC 4180; `None` if it is none.
fn end_of_row(text: &[u8]) -> Option<RowEnd> {
    text.iter().try_fold(RowEnd::Comma, |end, byte| match (end, byte) {
        (RowEnd::Returned, _) => None,
        (RowEnd::Comma | RowEnd::Mark, b'"') => Some(RowEnd::Quoted),
        (RowEnd::Quoted, b'"') => Some(RowEnd::Mark),
        (RowEnd::Quoted, _) => Some(RowEnd::Quoted),
        (_, b',') => Some(RowEnd::Comma),
        (_, b'\r') => Some(RowEnd::Returned),
        (RowEnd::Mark, _) | (_, b'"' | b'\n') => None,
        (RowEnd::Comma | RowEnd::Plain, _) => Some(RowEnd::Plain),
    })
}

/// Whether one of these begins with the other.
fn begins_alike(text: &[u8], other: &[u8]) -> bool {
    text.starts_with(other) || other.starts_with(text)
}

fn foreign(what: &str) -> io::Error {
    let what = format!("{what}, so nothing is appended to it: name another file, or move this one away");
    io::Error::new(ErrorKind::InvalidData, what)
}
