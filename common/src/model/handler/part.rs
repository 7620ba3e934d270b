//! A JSON object written by a handler.

use serde_json::{Map, Value};

use super::answer::Verdict;
use super::log::LogLine;
use super::weight::{TooManyValues, weight};
use crate::json_object::{self, UnknownKey, UnknownKeys, WrongValue, kind};
use crate::logs::LogLevel;
use crate::request::{InvalidRequest, NewRequest};
use crate::task::{self, InvalidTask, NewTask};
use crate::text::printable;

/// Maximum size in bytes of an item's fields as JSON; the complete item then stays below 8 MB.
pub const MAX_ITEM_BYTES: usize = 8 * 1024 * 1024 - 64 * 1024;

/// The keys of a part. The last one is used by task_tracker's programs, and has no effect here.
const KEYS: [&str; 8] = ["id", "result", "logs", "tasks", "urls", "items", "items_file", "verification"];

/// A JSON object written by a handler: a part of an answer, or all of it.
///
/// | key | what |
/// |---|---|
/// | `id` | with `stream`: the request that it answers; a part without it belongs to none, and only logs |
/// | `result` | 0 done, 1 failed and to be retried, 2 to be skipped: ends the answer |
/// | `logs` | a list of objects of `message` and `level`, 1 to 7 (5 without it) |
/// | `tasks` | a list of tasks ([`NewTask`]) |
/// | `urls` | a list of URLs, and of requests ([`NewRequest`]) |
/// | `items` | a list of objects |
/// | `items_file` | the name of a file with further items, one object a line |
///
/// A key with the value `null` counts as left out. What no answer and no task has is named in the log, and left out as
/// well; but a misspelt `result`, or with `stream` `id`, where that one is missing, makes it invalid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// The request that it belongs to.
    pub id: Option<u64>,
    /// The verdict that ends the answer.
    pub verdict: Option<Verdict>,
    /// Lines for the log.
    pub logs: Vec<LogLine>,
    /// Further tasks.
    pub tasks: Vec<NewTask>,
    /// The requests to fetch, each URL as it is written.
    pub urls: Vec<NewRequest>,
    /// Items.
    pub items: Vec<Map<String, Value>>,
    /// A file with further items.
    pub items_file: Option<String>,
}

/// The reason why a value is not a part of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPart {
    /// It is not JSON.
    #[error(transparent)]
    NotJson(#[from] NotJson),
    /// It is not a JSON object.
    #[error("an answer is a JSON object, not {0}")]
    NotAnObject(&'static str),
    /// The value of a key has the wrong type.
    #[error(transparent)]
    Value(#[from] WrongValue),
    /// It has a key that may be a misspelling of the one that ends the answer, or says which it is, and lacks that one.
    #[error("an answer {0}")]
    Misspelt(UnknownKey),
    /// It would take too much memory.
    #[error(transparent)]
    TooManyValues(#[from] TooManyValues),
    /// One of its items is too long.
    #[error("an item has {0} bytes of JSON: it may have {MAX_ITEM_BYTES}")]
    ItemTooLong(usize),
    /// One of its tasks is invalid.
    #[error("`tasks`, number {number}: {error}")]
    Task {
        /// The number of the task, counted from 1.
        number: usize,
        /// The reason why it is invalid.
        error: InvalidTask,
    },
    /// One of its requests is invalid.
    #[error("`urls`, number {number}: {error}")]
    Request {
        /// The number of the request, counted from 1.
        number: usize,
        /// The reason why it is invalid.
        error: InvalidRequest,
    },
}

/// A text that is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not JSON ({error}): `{start}`")]
pub struct NotJson {
    error: String,
    /// The beginning of the text.
    start: String,
}

impl NotJson {
    pub(super) fn new(error: &serde_json::Error, json: &[u8]) -> Self {
        let start = &json[..json.len().min(80)];
        Self {
            error: printable(&error.to_string(), 120),
            start: printable(&String::from_utf8_lossy(start), 80),
        }
    }
}

/// The reason why a line is not an item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidItem {
    /// It is not JSON.
    #[error(transparent)]
    NotJson(#[from] NotJson),
    /// It would take too much memory.
    #[error(transparent)]
    TooManyValues(#[from] TooManyValues),
    /// It is not a JSON object.
    #[error("an item is a JSON object, not {0}")]
    NotAnObject(&'static str),
}

/// Parses the fields of an item on a line of its own.
pub fn item_from_json(line: &[u8]) -> Result<Map<String, Value>, InvalidItem> {
    weight(line)?;
    match serde_json::from_slice(line).map(without_nul) {
        Ok(Value::Object(item)) => Ok(item),
        Ok(other) => Err(InvalidItem::NotAnObject(kind(&other))),
        Err(error) => Err(NotJson::new(&error, line).into()),
    }
}

impl Part {
    /// Parses a JSON object. Also returns the number of bytes that it counts as in an answer
    /// ([`Parts::add`](super::stream::Parts::add)), which exceeds its size if it has many values.
    pub fn weighed(json: &[u8]) -> Result<(Self, usize), InvalidPart> {
        let weight = weight(json)?;
        match serde_json::from_slice(json) {
            Ok(Value::Object(object)) => Ok((Self::new(object, json.len(), &["result", "id"])?, weight)),
            Ok(other) => Err(InvalidPart::NotAnObject(kind(&other))),
            Err(error) => Err(NotJson::new(&error, json).into()),
        }
    }

    #[cfg(test)]
    pub(super) fn from_json(json: &[u8]) -> Result<Self, InvalidPart> {
        Ok(Self::weighed(json)?.0)
    }

    /// Parses an object that was read from `json` bytes of JSON. It may lack the keys that the answer needs, but not
    /// misspell them.
    pub(super) fn new(
        mut object: Map<String, Value>,
        json: usize,
        needed: &[&str],
    ) -> Result<Self, InvalidPart> {
        let mut unknown = UnknownKeys::default();
        unknown.take(&mut object, KEYS);
        // Without them the answer would be waited for until its time is over.
        for key in needed {
            if !object.contains_key(*key)
                && let Some(misspelt) = unknown.take_meant(key)
            {
                return Err(InvalidPart::Misspelt(misspelt));
            }
        }
        let mut of_tasks = UnknownKeys::default();
        let items = each(&mut object, "items", item)?;
        check_length(json, &items)?;
        Ok(Self {
            id: number(&mut object, "id", "a whole number from 0", Some)?,
            verdict: number(
                &mut object,
                "result",
                "0 (done), 1 (failed) or 2 (left out)",
                Verdict::from_number,
            )?,
            tasks: tasks(&mut object, &mut of_tasks)?,
            logs: each(&mut object, "logs", log)?
                .into_iter()
                .chain(say_unknown("an answer", unknown))
                .chain(say_unknown("a task", of_tasks))
                .collect(),
            urls: urls(&mut object)?,
            items,
            items_file: json_object::text(&mut object, "items_file")?,
        })
    }
}

fn wrong<T>(key: &'static str, expected: &'static str, found: &Value) -> Result<T, InvalidPart> {
    Err(WrongValue::number(key, expected, found).into())
}

fn number<T>(
    object: &mut Map<String, Value>,
    key: &'static str,
    expected: &'static str,
    read: impl Fn(u64) -> Option<T>,
) -> Result<Option<T>, InvalidPart> {
    let Some(value) = object.remove(key) else { return Ok(None) };
    match value.as_u64().and_then(read) {
        Some(read) => Ok(Some(read)),
        None => wrong(key, expected, &value),
    }
}

/// Takes the list under `key`; empty if there is none.
fn list(object: &mut Map<String, Value>, key: &'static str) -> Result<Vec<Value>, InvalidPart> {
    match object.remove(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(values)) => Ok(values),
        Some(other) => wrong(key, "a list", &other),
    }
}

fn each<T>(
    object: &mut Map<String, Value>,
    key: &'static str,
    read: impl Fn(Value) -> Result<T, InvalidPart>,
) -> Result<Vec<T>, InvalidPart> {
    list(object, key)?.into_iter().map(read).collect()
}

fn log(value: Value) -> Result<LogLine, InvalidPart> {
    let Value::Object(mut entry) = value else { return wrong("logs", "a list of objects", &value) };
    let level = number(&mut entry, "level", "a whole number from 1 (fatal) to 7 (trace)", |number| {
        u8::try_from(number).ok().and_then(LogLevel::of_number)
    })?;
    match entry.remove("message") {
        Some(Value::String(message)) => Ok(LogLine::new(level.unwrap_or(LogLevel::Info), message)),
        other => wrong("message", "text", &other.unwrap_or_default()),
    }
}

/// Returns the log lines about ignored keys.
fn say_unknown(whose: &'static str, keys: UnknownKeys) -> impl Iterator<Item = LogLine> {
    let line = move |key: UnknownKey| LogLine::new(LogLevel::Warn, format!("{whose} {key}: it is left out"));
    keys.into_vec().into_iter().map(line)
}

fn tasks(object: &mut Map<String, Value>, unknown: &mut UnknownKeys) -> Result<Vec<NewTask>, InvalidPart> {
    let read = |(at, mut value): (usize, Value)| {
        if let Value::Object(task) = &mut value {
            unknown.take(task, task::KEYS);
        }
        NewTask::try_from(value).map_err(|error| InvalidPart::Task { number: at + 1, error })
    };
    list(object, "tasks")?.into_iter().enumerate().map(read).collect()
}

fn urls(object: &mut Map<String, Value>) -> Result<Vec<NewRequest>, InvalidPart> {
    let read = |(at, value): (usize, Value)| {
        NewRequest::try_from(value).map_err(|error| InvalidPart::Request { number: at + 1, error })
    };
    list(object, "urls")?.into_iter().enumerate().map(read).collect()
}

fn item(value: Value) -> Result<Map<String, Value>, InvalidPart> {
    match without_nul(value) {
        Value::Object(item) => Ok(item),
        other => wrong("items", "a list of objects", &other),
    }
}

/// Replaces NUL by U+FFFD: PostgreSQL accepts no text with a NUL.
fn without_nul(value: Value) -> Value {
    let text = |text: String| if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    match value {
        Value::String(value) => Value::String(text(value)),
        Value::Array(values) => Value::Array(values.into_iter().map(without_nul).collect()),
        Value::Object(object) => {
            Value::Object(object.into_iter().map(|(key, value)| (text(key), without_nul(value))).collect())
        }
        other => other,
    }
}

/// Checks the length of items, but only if the whole part is long enough to have one that is too long.
fn check_length(json: usize, items: &[Map<String, Value>]) -> Result<(), InvalidPart> {
    if json <= MAX_ITEM_BYTES {
        return Ok(());
    }
    let length = |item: &Map<String, Value>| serde_json::to_vec(item).map_or(0, |json| json.len());
    let longest = items.iter().map(length).max().unwrap_or_default();
    if longest > MAX_ITEM_BYTES { Err(InvalidPart::ItemTooLong(longest)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Method;

    #[test]
    fn a_part_may_say_anything_of_an_answer() {
        let line = br#"{"id": 7, "result": 2, "logs": [{"message": "a\nb", "level": 3}, {"message": "c"}],
            "tasks": ["x", {"recipe": "y"}], "urls": ["/a", {"url": "/b", "method": "POST"}], "items": [{"title": "t"}]}"#;
        let part = Part::from_json(line).unwrap();
        assert_eq!((part.id, part.verdict), (Some(7), Some(Verdict::Skip)));
        assert_eq!(part.logs, [LogLine::new(LogLevel::Error, "a\nb"), LogLine::new(LogLevel::Info, "c")]);
        assert_eq!((part.tasks.len(), part.urls.len(), part.items.len()), (2, 2, 1));
        assert_eq!((&part.urls[0], part.urls[1].method), (&NewRequest::get("/a"), Method::Post));
        assert_eq!(Part::from_json(br#"{"logs": null}"#).unwrap(), Part::default());
    }

    #[test]
    fn what_no_answer_and_no_task_has_is_named_in_the_log_and_left_out() {
        let line = r#"{"itmes": 0, "verification": 12, "tasks": [{"recipe": "x", "tags": ["a"]}, {"recipe": "y", "tags": []},
            {"project": 1, "recipe": "z", "max_retries": 2, "hash64": 7}]}"#;
        let part = Part::from_json(line.as_bytes()).unwrap();
        assert_eq!(part.tasks.len(), 3);
        let said: Vec<_> = part.logs.iter().map(|entry| (entry.level, &*entry.message)).collect();
        assert_eq!(
            said[0],
            (LogLevel::Warn, "an answer has no `itmes`: did you mean `items`?: it is left out")
        );
        assert!(
            said[1].1.starts_with("a task has no `tags`; there are `recipe`") && said.len() == 2,
            "{said:?}"
        );
    }

    #[test]
    fn a_few_of_the_unknown_keys_are_named_however_many_there_are() {
        let keys: Vec<String> = (0..100_000).map(|number| format!("\"k{number}\": 1")).collect();
        let keys = keys.join(", ");
        let line =
            format!("{{{keys}, \"tasks\": [{{\"recipe\": \"x\", {keys}}}, {{\"recipe\": \"y\", {keys}}}]}}");
        let object: Map<String, Value> = serde_json::from_str(&line).unwrap();
        let part = Part::new(object, line.len(), &[]).unwrap();
        assert_eq!((part.tasks.len(), part.logs.len()), (2, 40));
    }

    #[test]
    fn what_is_no_part_has_an_error_of_one_line_that_says_what_is_wrong() {
        for (line, expected) in [
            ("", "not JSON (EOF while parsing a value"),
            ("progress 10%\n", "`progress 10% `"),
            ("\u{1b}[1m", "not JSON"),
            ("[]", "an answer is a JSON object, not a list"),
            (r#"{"result": 3}"#, "`result` is 0 (done), 1 (failed) or 2 (left out), not 3"),
            (r#"{"result": "0"}"#, "not text"),
            (r#"{"result": true}"#, "not true or false"),
            (r#"{"id": 1, "reslt": 0}"#, "an answer has no `reslt`: did you mean `result`?"),
            (r#"{"di": 1, "result": 0}"#, "an answer has no `di`: did you mean `id`?"),
            (r#"{"id": -1}"#, "`id` is a whole number from 0, not -1"),
            (r#"{"logs": {}}"#, "`logs` is a list, not an object"),
            (r#"{"logs": ["x"]}"#, "`logs` is a list of objects, not text"),
            (r#"{"logs": [{"level": 3}]}"#, "`message` is text, not null"),
            (
                r#"{"logs": [{"message": "x", "level": 8}]}"#,
                "`level` is a whole number from 1 (fatal) to 7 (trace), not 8",
            ),
            (r#"{"tasks": ["x", {"recip": 1}]}"#, "`tasks`, number 2: `recipe` is missing"),
            (r#"{"urls": [1]}"#, "`urls`, number 1: a request is text, its URL, or a JSON object"),
            (r#"{"urls": ["/", {"url": "/", "body": 1}]}"#, "`urls`, number 2: `body` is text, not a number"),
            (r#"{"items_file": ["x"]}"#, "`items_file` is text, not a list"),
            (r#"{"items": [[]]}"#, "`items` is a list of objects, not a list"),
        ] {
            let error = Part::from_json(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
            assert!(!error.contains(char::is_control), "{error:?}");
        }
        assert!(Part::from_json(b"\xff\xfe").is_err());
        let part = Part::from_json(br#"{"id": 1, "ids": [2], "results": 3, "result": 0}"#).unwrap();
        assert_eq!((part.id, part.logs.len()), (Some(1), 2));
    }

    #[test]
    fn an_item_has_no_nul_and_no_more_bytes_than_it_may() {
        let part = Part::from_json(br#"{"items": [{"a\u0000": ["b\u0000", {"c": "\u0000"}]}]}"#).unwrap();
        let expected = serde_json::json!({ "a\u{fffd}": ["b\u{fffd}", { "c": "\u{fffd}" }] });
        assert_eq!(Value::Object(part.items[0].clone()), expected);
        let long = |length| format!(r#"{{"items": [{{"a": "{}"}}]}}"#, "x".repeat(length));
        assert!(Part::from_json(long(MAX_ITEM_BYTES - 8).as_bytes()).is_ok());
        let error = Part::from_json(long(MAX_ITEM_BYTES).as_bytes()).unwrap_err();
        assert!(matches!(error, InvalidPart::ItemTooLong(_)), "{error}");
    }

    #[test]
    fn a_line_is_an_item_if_it_is_an_object() {
        assert_eq!(Value::Object(item_from_json(b" {\"a\": 1} ").unwrap()), serde_json::json!({ "a": 1 }));
        let error = |line: &[u8]| item_from_json(line).unwrap_err().to_string();
        assert_eq!(error(b"[1]"), "an item is a JSON object, not a list");
        assert!(error(b"{\"a\": 1} {}").starts_with("not JSON (trailing characters"));
        assert!(error(b"\0\0").starts_with("not JSON ("));
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let entry = LogLine::new(LogLevel::Info, "ä".repeat(40_000));
        assert_eq!(entry.message.len(), 32 * 1024);
    }
}
