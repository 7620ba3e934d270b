//! Reads CSV as a list of objects: one for each row, with the names of the first row.

use serde_json::{Map, Value};
use trawl_common::csv::likely_delimiter;

/// Maximum number of values.
const MAX_VALUES: usize = 500_000;
/// Maximum size of all values with their names, in bytes.
const MAX_BYTES: usize = 128 << 20;
/// Maximum number of columns.
const MAX_COLUMNS: usize = 1_000;

/// Reads a text. Columns are separated by `delimiter`, or else by the mark that is most frequent in the first line.
pub(crate) fn parse(text: &str, delimiter: Option<u8>) -> Result<Value, String> {
    let delimiter =
        delimiter.unwrap_or_else(|| likely_delimiter(text.lines().next().unwrap_or_default().as_bytes()));
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| format!("not CSV: {error}"))?;
    if names.len() > MAX_COLUMNS {
        return Err(format!("CSV of more than {MAX_COLUMNS} columns"));
    }
    let names: Vec<String> = names.iter().zip(1..).map(|(name, number)| named(name, number)).collect();
    let (mut rows, mut left, mut bytes) = (Vec::new(), MAX_VALUES, 0);
    for row in reader.records() {
        let row = row.map_err(|error| format!("not CSV: {error}"))?;
        left = left
            .checked_sub(row.len().max(1))
            .ok_or_else(|| format!("CSV of more than {MAX_VALUES} values"))?;
        let mut object = Map::with_capacity(names.len());
        for (place, value) in row.iter().enumerate().take(MAX_COLUMNS) {
            let name = names.get(place).cloned().unwrap_or_else(|| (place + 1).to_string());
            bytes += name.len() + value.len();
            object.entry(name).or_insert_with(|| value.into());
        }
        if bytes > MAX_BYTES {
            return Err(format!("CSV of more than {MAX_BYTES} bytes, with the name of each value"));
        }
        rows.push(Value::Object(object));
    }
    Ok(Value::Array(rows))
}

/// Returns the name of a column; its number if it has none.
fn named(name: &str, number: usize) -> String {
    let name = name.trim();
    if name.is_empty() { number.to_string() } else { name.to_owned() }
}
