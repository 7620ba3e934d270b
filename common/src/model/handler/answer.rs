//! The answer of a handler to a task or a page.

use serde_json::{Map, Value};

use super::log::LogLine;
use super::part::Part;
use super::{MAX_ANSWER_BYTES, MAX_LOGS};
use crate::request::NewRequest;
use crate::task::NewTask;

/// The verdict of a handler on a task or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// `0`: done.
    Done,
    /// `1`: failed, to be tried again.
    Failed,
    /// `2`: to be left out.
    Skip,
}

impl Verdict {
    /// Returns the verdict with this number.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Done),
            1 => Some(Self::Failed),
            2 => Some(Self::Skip),
            _ => None,
        }
    }
}

/// The whole answer of a handler to one task or page.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The verdict. Only a task or page that is done yields anything.
    pub verdict: Verdict,
    /// Entries for the log.
    pub logs: Vec<LogLine>,
    /// New tasks.
    pub tasks: Vec<NewTask>,
    /// URLs to fetch, each as it is written: relative to the page, if the answer is about one.
    pub urls: Vec<NewRequest>,
    /// Items for the sinks.
    pub items: Vec<Map<String, Value>>,
    /// The path of a file in the program's folder with further items, one JSON object per line.
    pub items_file: Option<String>,
}

/// The parts of an answer so far.
#[derive(Debug, Default)]
pub struct Parts {
    said: Part,
    bytes: usize,
}

impl Parts {
    /// Adds a part that counts as `bytes` bytes ([`Part::weighed`]). Returns the answer once it is complete.
    ///
    /// Fails if the parts cannot belong to one answer.
    pub fn add(&mut self, part: Part, bytes: usize) -> Result<Option<Answer>, InvalidParts> {
        self.bytes += bytes;
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(InvalidParts::TooMuch);
        }
        let Part { id: _, verdict, logs, tasks, urls, items, items_file } = part;
        if items_file.is_some() && self.said.items_file.is_some() {
            return Err(InvalidParts::TwoFiles);
        }
        let left = MAX_LOGS.saturating_sub(self.said.logs.len());
        self.said.logs.extend(logs.into_iter().take(left));
        self.said.tasks.extend(tasks);
        self.said.urls.extend(urls);
        self.said.items.extend(items);
        self.said.items_file = self.said.items_file.take().or(items_file);
        Ok(verdict.map(|verdict| std::mem::take(&mut self.said).ending(verdict)))
    }

    /// Returns the log entries so far.
    pub fn into_logs(self) -> Vec<LogLine> {
        self.said.logs
    }
}

impl Part {
    /// Returns the answer that ends with this verdict.
    pub(super) fn ending(self, verdict: Verdict) -> Answer {
        let Self { id: _, verdict: _, logs, tasks, urls, items, items_file } = self;
        Answer { verdict, logs, tasks, urls, items, items_file }
    }
}

/// The reason why parts are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidParts {
    /// It is too long.
    #[error(
        "the program said more than {} MB in answer, or so much in small values: more items may be in a file (`items_file`)",
        MAX_ANSWER_BYTES >> 20
    )]
    TooMuch,
    /// Its items are in two files.
    #[error("an answer names one `items_file`, and this one names two")]
    TwoFiles,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(line: &str) -> Part {
        Part::from_json(line.as_bytes()).unwrap()
    }

    #[test]
    fn an_answer_is_all_its_parts_and_ends_with_the_one_that_has_a_result() {
        let mut parts = Parts::default();
        assert_eq!(parts.add(part(r#"{"items": [{"a": 1}], "urls": ["/b"]}"#), 40), Ok(None));
        let answer =
            parts.add(part(r#"{"items": [{"a": 2}], "tasks": ["t"], "result": 0}"#), 40).unwrap().unwrap();
        assert_eq!((answer.verdict, answer.items.len()), (Verdict::Done, 2));
        assert_eq!(answer.urls, [NewRequest::get("/b")]);
        assert_eq!(answer.tasks[0].recipe.as_str(), "t");
    }

    #[test]
    fn an_answer_that_never_ends_is_too_much() {
        let mut parts = Parts::default();
        assert_eq!(parts.add(Part::default(), MAX_ANSWER_BYTES), Ok(None));
        assert_eq!(parts.add(Part::default(), 1), Err(InvalidParts::TooMuch));
    }

    #[test]
    fn an_answer_names_one_file_of_items_in_whichever_part() {
        let mut parts = Parts::default();
        let named = || part(r#"{"items_file": "items.jsonl"}"#);
        assert_eq!(parts.add(named(), 30), Ok(None));
        assert_eq!(parts.add(named(), 30), Err(InvalidParts::TwoFiles));
        let answer = parts.add(part(r#"{"result": 0}"#), 12).unwrap().unwrap();
        assert_eq!(answer.items_file.as_deref(), Some("items.jsonl"));
    }

    #[test]
    fn a_log_that_never_ends_is_cut() {
        let mut parts = Parts::default();
        let lines = format!(r#"{{"logs": [{}]}}"#, vec![r#"{"message": "x"}"#; 900].join(","));
        for _ in 0..3 {
            assert_eq!(parts.add(part(&lines), 1), Ok(None));
        }
        assert_eq!(parts.into_logs().len(), MAX_LOGS);
    }
}
