//! Lists that people and programs write: one entry per line, as in `tasks.jsonl` and `requests.jsonl`.

mod entry;

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;

pub use entry::ListEntry;

use crate::request;
use crate::task::MAX_LINE_BYTES;
use crate::text::printable;

/// Maximum length of the shown start of a line that cannot be read, in bytes.
const MAX_SHOWN_BYTES: usize = 8 * 1024;

/// A line of a list.
#[derive(Debug)]
pub struct Line<T> {
    /// Its number, from 1.
    pub number: u64,
    /// The parsed entry.
    pub said: Result<T, Broken>,
}

/// A line that cannot be read.
#[derive(Debug)]
pub struct Broken {
    /// The text of the line, printable and without possible secrets.
    pub text: String,
    /// The error.
    pub reason: String,
}

/// Passes each line to `take` as `parse` reads it, until the end or until `take` breaks. Empty lines count only
/// towards line numbers. Returns the number of other lines.
///
/// Fails if the list cannot be read.
pub fn read<T>(
    reader: impl Read,
    parse: impl Fn(&str) -> Result<T, String>,
    mut take: impl FnMut(Line<T>) -> ControlFlow<()>,
) -> io::Result<u64> {
    let mut reader = BufReader::new(reader);
    let (mut line, mut number, mut count) = (Vec::new(), 0, 0);
    while next(&mut reader, &mut line)? {
        number += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        count += 1;
        let said = parsed(&line, &parse).map_err(|reason| Broken { text: shown(&line, number), reason });
        if take(Line { number, said }).is_break() {
            break;
        }
    }
    Ok(count)
}

/// Reads the next line; of one that is too long, only enough to show that. Returns whether there was one.
fn next(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let longest = MAX_LINE_BYTES as u64 + 1;
    if reader.by_ref().take(longest).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.len() as u64 == longest && line.last() != Some(&b'\n') {
        reader.skip_until(b'\n')?;
    }
    Ok(true)
}

fn parsed<T>(line: &[u8], parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    if line.len() > MAX_LINE_BYTES {
        return Err(format!("a line has {MAX_LINE_BYTES} bytes at most"));
    }
    let text = str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?;
    parse(text.trim_start_matches('\u{feff}').trim())
}

/// Returns a form of a line that may be shown. If its values are left out, its number identifies it.
fn shown(line: &[u8], number: u64) -> String {
    let start = String::from_utf8_lossy(&line[..line.len().min(MAX_SHOWN_BYTES)]);
    let text = match request::without_secrets(start.trim_end()) {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => format!("line {number}: {text}"),
    };
    printable(&text, MAX_SHOWN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Result<String, String>> {
        let mut all = Vec::new();
        let parse = |line: &str| match line.strip_prefix("no") {
            None => Ok(line.to_owned()),
            Some(reason) => Err(reason.trim().to_owned()),
        };
        read(text, parse, |Line { number, said }| {
            let said = said.map(|entry| format!("{number} {entry}"));
            all.push(said.map_err(|broken| format!("{number} {}", broken.reason)));
            ControlFlow::Continue(())
        })
        .unwrap();
        all
    }

    #[test]
    fn each_line_is_an_entry_or_says_where_it_stands_and_what_is_wrong_with_it() {
        let found = lines(b"\xef\xbb\xbfone\n\n  two\r\nno entry\n\xff\n\"last\"");
        let (ok, wrong) = (|text: &str| Ok(text.to_owned()), |text: &str| Err(text.to_owned()));
        assert_eq!(
            found,
            [ok("1 one"), ok("3 two"), wrong("4 entry"), wrong("5 not UTF-8"), ok("6 \"last\"")]
        );
    }

    #[test]
    fn a_line_that_never_ends_is_one_mistake_and_the_next_is_read() {
        let text = [&vec![b'x'; 2 * MAX_LINE_BYTES + 7][..], b"\n\"next\"\n"].concat();
        let found = lines(&text);
        assert_eq!(found.len(), 2);
        assert!(found[0].as_ref().is_err_and(|reason| reason.contains("bytes at most")));
        assert_eq!(found[1], Ok("2 \"next\"".to_owned()));
    }
}
