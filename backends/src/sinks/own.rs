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

/// The longest half record that is looked for at the end of a file. Items have at most 8 MB.
const LONGEST_TAIL: u64 = 32 << 20;

/// Number of removed bytes that the log shows.
const SHOWN: usize = 1000;

/// The keys that an item of JSON Lines begins with, in this order.
const ITEM: [&str; 4] = [r#"{"id":""#, r#","url":""#, r#","crawl":""#, r#","spider":""#];

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
    let torn = file.metadata()?.len() - whole;
    if torn == 0 {
        return Ok(whole);
    }
    let foreign_end = || foreign("it ends in what trawl did not write, without a line feed");
    if torn > LONGEST_TAIL {
        return Err(foreign_end());
    }
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(whole))?;
    file.take(torn).read_to_end(&mut tail)?;
    let written = without_zeros(&tail);
    let (is_whole, is_half) = match (magic(form.compress), form.records) {
        (Some(magic), _) => (false, begins_alike(written, magic)),
        (None, Records::Lines) => (is_item(&tail), is_item_begun(written)),
        // A row may look whole whose last cell is not. The first one is the head.
        (None, Records::Quoted) => (tail.ends_with(b"\r"), true),
    };
    if is_whole {
        file.write_all(b"\n")?;
        return Ok(whole + torn + 1);
    }
    if !is_half {
        return Err(foreign_end());
    }
    let text = printable(&String::from_utf8_lossy(written), SHOWN);
    warn!(file = %path.display(), bytes = torn, text, "cutting off what was not written to its end");
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
        (Records::Quoted, None) => {
            let begin = without_zeros(&begin);
            MARK.starts_with(begin) || begins_alike(begin.strip_prefix(MARK).unwrap_or(begin), HEAD)
        }
    })
}

/// Without the zeros that a power cut leaves where data did not reach the disk.
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

/// Whether one of these begins with the other.
fn begins_alike(text: &[u8], other: &[u8]) -> bool {
    text.starts_with(other) || other.starts_with(text)
}

fn foreign(what: &str) -> io::Error {
    let what = format!("{what}, so nothing is appended to it: name another file, or move this one away");
    io::Error::new(ErrorKind::InvalidData, what)
}
