//! `rows` of a request in `[start]`: the values of which each makes one request.

use serde_json::{Map, Value};

use super::given::Given;
use crate::text::printable;

/// Maximum number of requests that rows of a spider's file make.
pub(super) const MAX_ROWS: usize = 10_000;

/// Maximum length of a range.
const MAX_RANGE: u64 = MAX_ROWS as u64;

/// Maximum size of all requests of a file as JSON, in bytes.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// The values of each request by name.
pub(super) enum Rows {
    Given(Vec<Map<String, Value>>),
    /// The rows of this CSV file.
    Csv(String),
}

/// Reads rows: a list of tables, a CSV file, or values by name, of which there is each combination. `room` is the
/// maximum number of rows.
pub(super) fn rows(given: &Given<'_>, rows: Value, room: usize) -> Option<Rows> {
    let all = match rows {
        Value::Array(rows) => {
            let row = |row| if let Value::Object(row) = row { Some(row) } else { None };
            let rows: Option<Vec<_>> = rows.into_iter().map(row).collect();
            let Some(rows) = rows else { return given.wrong("each of its `rows` is a table") };
            rows
        }
        Value::Object(mut columns) => {
            if let Some(file) = columns.remove("csv") {
                return match (file, columns.is_empty()) {
                    (Value::String(file), true) => Some(Rows::Csv(file)),
                    _ => given.wrong("`rows` with `csv` name a file and nothing else"),
                };
            }
            let mut all = vec![Map::new()];
            for (name, values) in columns {
                let values = values_of(given, &name, values)?;
                if all.len().saturating_mul(values.len()) > room {
                    return too_many(given);
                }
                let with = |row: &Map<String, Value>, value: &Value| {
                    let mut row = row.clone();
                    row.insert(name.clone(), value.clone());
                    row
                };
                all = all.iter().flat_map(|row| values.iter().map(|value| with(row, value))).collect();
            }
            all
        }
        _ => return given.wrong("`rows` are a list of tables, or a table of lists and ranges"),
    };
    if all.iter().any(|row| row.keys().any(|name| name.starts_with('$'))) {
        return given.wrong("a name in `rows` does not begin with `$`");
    }
    match all.len() {
        0 => given.wrong("`rows` has none"),
        many if many <= room => Some(Rows::Given(all)),
        _ => too_many(given),
    }
}

fn too_many(given: &Given<'_>) -> Option<Rows> {
    given.wrong(format_args!(
        "all `rows` of a file are {MAX_ROWS} at most: put them into a CSV file, or a list of requests"
    ))
}

/// Returns the values of a column: a list, or a range such as `1..500`, whose end belongs to it.
fn values_of(given: &Given<'_>, name: &str, values: Value) -> Option<Vec<Value>> {
    let shown = printable(name, 64);
    match values {
        Value::Array(values) => Some(values),
        Value::String(range) => {
            let ends = range.split_once("..").and_then(|(first, last)| {
                Some((first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?))
            });
            match ends {
                Some((first, last)) if first <= last => match last - first {
                    0..MAX_RANGE => Some((first..=last).map(Value::from).collect()),
                    _ => too_many(given).and(None),
                },
                _ => given.wrong(format_args!("rows.{shown}: write a list, or a range as `1..500`")),
            }
        }
        _ => given.wrong(format_args!("rows.{shown}: write a list, or a range as `1..500`")),
    }
}

/// Whether a CSV file may be read: only a text of this machine names one, and no argument chooses it.
pub(super) fn may_read(given: &Given<'_>, file: &str) -> bool {
    if given.notes.limits().is_some() {
        let why = "a spider that is deployed, or comes with a crawl, starts from URLs alone, not from a file";
        return given.wrong::<()>(why).is_some();
    }
    if given.has_placeholder() {
        return given.wrong::<()>("no argument may stand in a request with `rows` of a file").is_some();
    }
    if file.trim().is_empty() {
        return given.wrong::<()>("rows.csv: must not be empty").is_some();
    }
    true
}
