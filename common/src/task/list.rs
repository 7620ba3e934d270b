//! Lists of tasks: a task a line, as JSON (`tasks.jsonl`).

use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;

use super::{MAX_LINE_BYTES, NewTask};
use crate::names::SpiderName;
use crate::text::printable;

/// So much is shown of a line that is no task, in bytes.
const SHOWN: usize = 8 * 1024;

/// A line of a list.
#[derive(Debug)]
pub enum Line {
    /// A task.
    Task(NewTask),
    /// What is none: what stands there, printable, and what is wrong with it.
    Broken(String, String),
}

/// Reads tasks for a spider, and passes each line on, until there are no more or nobody wants more. Empty lines count for nothing.
/// Returns how many lines there were.
///
/// Fails if it cannot be read.
pub fn read(
    reader: impl Read,
    spider: &SpiderName,
    mut take: impl FnMut(Line) -> ControlFlow<()>,
) -> io::Result<u64> {
    let mut reader = BufReader::new(reader);
    let (mut line, mut count) = (Vec::new(), 0);
    while next(&mut reader, &mut line)? {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        count += 1;
        if take(parsed(&line, spider)).is_break() {
            break;
        }
    }
    Ok(count)
}

/// Reads the next line, of one that is too long only so much that this shows. Returns whether there was one.
fn next(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let longest = MAX_LINE_BYTES as u64 + 1;
    if reader.by_ref().take(longest).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.len() as u64 == longest && line.last() != Some(&b'\n') {
        skip_line(reader)?;
    }
    Ok(true)
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let read = end.map_or(buffer.len(), |at| at + 1);
        reader.consume(read);
        if end.is_some() {
            return Ok(());
        }
    }
}

fn parsed(line: &[u8], spider: &SpiderName) -> Line {
    let broken = |reason: String| {
        let start = &line[..line.len().min(SHOWN)];
        Line::Broken(printable(String::from_utf8_lossy(start).trim_end(), SHOWN), reason)
    };
    if line.len() > MAX_LINE_BYTES {
        return broken(format!("a line has {MAX_LINE_BYTES} bytes at most"));
    }
    let task = match str::from_utf8(line) {
        Ok(text) => NewTask::from_line(text.trim())
            .and_then(|task| task.only_for(spider))
            .map_err(|error| error.to_string()),
        Err(_) => Err("not UTF-8".to_owned()),
    };
    match task {
        Ok(task) => Line::Task(task),
        Err(reason) => broken(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Result<String, String>> {
        let mut all = Vec::new();
        read(text, &"a".parse().unwrap(), |line| {
            all.push(match line {
                Line::Task(task) => Ok(task.recipe.to_string()),
                Line::Broken(_, reason) => Err(reason),
            });
            ControlFlow::Continue(())
        })
        .unwrap();
        all
    }

    #[test]
    fn each_line_is_a_task_or_says_what_is_wrong_with_it() {
        let text = b"\"one\"\n\n  {\"recipe\": \"two\", \"spider\": \"a\"}\r\nno JSON\n{\"recipe\": \"x\", \"spider\": \"b\"}\n\xff\n\"last\"";
        let found = lines(text);
        assert_eq!(found[..2], [Ok("one".to_owned()), Ok("two".to_owned())]);
        assert!(found[2].as_ref().is_err_and(|reason| reason.starts_with("not JSON")));
        assert!(found[3].as_ref().is_err_and(|reason| reason.contains("for the spider b")));
        assert_eq!(found[4..], [Err("not UTF-8".to_owned()), Ok("last".to_owned())]);
    }

    #[test]
    fn a_line_that_never_ends_is_one_mistake_and_the_next_is_read() {
        let text = [&vec![b'x'; 2 * MAX_LINE_BYTES + 7][..], b"\n\"next\"\n"].concat();
        let found = lines(&text);
        assert_eq!(found.len(), 2);
        assert!(found[0].as_ref().is_err_and(|reason| reason.contains("bytes at most")));
        assert_eq!(found[1], Ok("next".to_owned()));
    }
}
