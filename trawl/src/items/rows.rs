//! Items as text: JSON Lines, and CSV (RFC 4180).

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::rc::Rc;

use serde_json::Value;
use trawl_common::cell::{cell, text_cell};
use trawl_common::nearest::nearest;
use trawl_common::spider::item::Item;
use trawl_common::text::escape_json;

/// The columns of every item.
const OWN: [&str; 10] =
    ["id", "url", "crawl", "spider", "fetched_at", "status", "depth", "item", "change", "final_url"];
/// Prefix of a column for a field whose name is one of these.
const FIELD: &str = "field_";

/// Before the name of any field, as it stands in an item's JSON.
const FIELDS: &str = "fields.";

/// Maximum number of columns that are found; a program may give its items any keys.
const MAX_COLUMNS: usize = 1_000;

/// A writer of items.
pub(super) trait Rows {
    /// Writes an item; `line` is the item as JSON.
    fn write(&mut self, item: &Item, line: &[u8]) -> io::Result<()>;

    /// Flushes the output.
    fn flush(&mut self) -> io::Result<()>;

    /// Describes, for people, the parts of items that could not be written; `None` if there are none.
    fn left_out(&self) -> Option<String> {
        None
    }

    /// Describes, for people, the requested columns that no item had; `None` if there are none.
    fn unknown(&self) -> Option<String> {
        None
    }
}

/// Writes one JSON object per line.
pub(super) struct JsonLines<W> {
    out: W,
    /// Whether the output is a terminal, which control characters could disturb.
    for_people: bool,
}

impl<W: Write> JsonLines<W> {
    pub(super) fn new(out: W, for_people: bool) -> Self {
        Self { out, for_people }
    }
}

impl<W: Write> Rows for JsonLines<W> {
    fn write(&mut self, _item: &Item, line: &[u8]) -> io::Result<()> {
        match self.for_people {
            true => self.out.write_all(escape_json(&String::from_utf8_lossy(line)).as_bytes())?,
            false => self.out.write_all(line)?,
        }
        self.out.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Collects the columns that items need, and writes nothing.
#[derive(Clone, Default)]
pub(super) struct Census(Rc<RefCell<Columns>>);

impl Census {
    /// Returns the columns of the items so far.
    pub(super) fn columns(&self) -> Columns {
        self.0.borrow().clone()
    }
}

impl Rows for Census {
    fn write(&mut self, item: &Item, _line: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().add_all(item);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The columns of items: first those of every item, then their fields in the order of appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    names: Vec<String>,
    /// The index of the column of each field.
    fields: HashMap<String, usize>,
}

impl Columns {
    /// Creates the requested columns, in this order.
    fn asked(names: &[String]) -> Self {
        Self { names: names.to_vec(), fields: HashMap::new() }
    }

    /// Adds columns for new fields of this item, up to the limit.
    fn add_all(&mut self, item: &Item) {
        if self.names.is_empty() {
            self.names = OWN.map(str::to_owned).into();
        }
        for field in item.fields.keys() {
            if !self.fields.contains_key(field) && self.names.len() < MAX_COLUMNS {
                // As in the files of sinks.
                let mut name = field.clone();
                while self.names.contains(&name) {
                    name.insert_str(0, FIELD);
                }
                self.fields.insert(field.clone(), self.names.len());
                self.names.push(name);
            }
        }
    }

    fn lacks_any(&self, item: &Item) -> bool {
        item.fields.keys().any(|field| !self.fields.contains_key(field))
    }
}

/// Writes comma-separated values.
pub(super) struct Csv<W: Write> {
    out: csv::Writer<W>,
    columns: Columns,
    /// Whether the columns were requested, so that missing ones need no warning.
    asked: bool,
    begun: bool,
    /// The number of items with fields that have no column.
    cut: u64,
    /// The requested columns that no item has had so far.
    strange: BTreeSet<String>,
    /// The fields that items have had, collected while `strange` is not empty.
    fields: BTreeSet<String>,
}

impl<W: Write> Csv<W> {
    /// Creates a writer with these columns, or, if empty, with those of the first item.
    pub(super) fn new(out: W, columns: &[String]) -> Self {
        let strange = columns.iter().filter(|column| !OWN.contains(&column.as_str())).cloned().collect();
        Self { strange, asked: !columns.is_empty(), ..Self::with(out, Columns::asked(columns)) }
    }

    /// Creates a writer with the columns that a [`Census`] has found.
    pub(super) fn with(out: W, columns: Columns) -> Self {
        let out = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
        let (asked, begun, cut, strange, fields) = Default::default();
        Self { out, columns, asked, begun, cut, strange, fields }
    }
}

impl<W: Write> Rows for Csv<W> {
    fn write(&mut self, item: &Item, line: &[u8]) -> io::Result<()> {
        if !self.begun {
            if self.columns.names.is_empty() {
                self.columns.add_all(item);
            }
            self.out.write_record(self.columns.names.iter().map(|column| text_cell(column).into_owned()))?;
            self.begun = true;
        }
        if !self.asked && self.columns.lacks_any(item) {
            self.cut += 1;
        }
        if !self.strange.is_empty() {
            self.fields.extend(item.fields.keys().cloned());
            self.strange.retain(|column| !item.fields.contains_key(field_of(item, column)));
        }
        let own: Value = serde_json::from_slice(line)?;
        let value = |column: &str| match OWN.contains(&column) {
            true => own.get(column),
            false => item.fields.get(field_of(item, column)),
        };
        let mut record: Vec<&Value> = vec![&Value::Null; self.columns.names.len()];
        let by_name = if self.asked { record.len() } else { OWN.len() };
        for (cell, column) in record.iter_mut().zip(&self.columns.names).take(by_name) {
            *cell = value(column).unwrap_or(&Value::Null);
        }
        for (field, value) in &item.fields {
            if let Some(at) = self.columns.fields.get(field) {
                record[*at] = value;
            }
        }
        Ok(self.out.write_record(record.into_iter().map(|value| cell(value).into_owned()))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn left_out(&self) -> Option<String> {
        (self.cut > 0).then(|| {
            let items = trawl_cli::count(self.cut);
            format!("items with fields that have no column: {items}; --fields names columns")
        })
    }

    fn unknown(&self) -> Option<String> {
        if !self.begun || self.strange.is_empty() {
            return None;
        }
        let known = OWN.into_iter().chain(self.fields.iter().map(String::as_str));
        let message = |name: &String| format!("no item has a field `{name}`{}", nearest(name, known.clone()));
        Some(self.strange.iter().map(message).collect::<Vec<_>>().join("; "))
    }
}

/// The field that a column is asked for by: its own name, `fields.price`, or `field_url`, where every item has a `url`.
fn field_of<'a>(item: &Item, column: &'a str) -> &'a str {
    if item.fields.contains_key(column) {
        return column;
    }
    let own = column.strip_prefix(FIELD).filter(|field| OWN.contains(field));
    own.or_else(|| column.strip_prefix(FIELDS)).unwrap_or(column)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(fields: Value) -> Item {
        serde_json::from_value(json!({
            "id": "a", "url": "https://example.com/", "crawl": "c1", "spider": "docs", "status": 200, "depth": 1,
            "fetched_at": "2026-01-01T00:00:00Z", "fields": fields,
        }))
        .unwrap()
    }

    fn csv(columns: &[&str], items: &[Item]) -> (String, Option<String>) {
        let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
        let mut rows = Csv::new(Vec::new(), &columns);
        for item in items {
            rows.write(item, &serde_json::to_vec(item).unwrap()).unwrap();
        }
        let message = rows.left_out();
        (String::from_utf8(rows.out.into_inner().unwrap()).unwrap(), message)
    }

    #[test]
    fn after_a_census_no_field_is_without_a_column() {
        let items = [
            item(json!({"b": "x"})),
            item(json!({"a": 1, "url": "mine", "field_url": 2})),
            item(json!({"b": 3})),
        ];
        let line = |item: &Item| serde_json::to_vec(item).unwrap();
        let mut census = Census::default();
        items.iter().for_each(|item| census.write(item, &line(item)).unwrap());
        let mut rows = Csv::with(Vec::new(), census.columns());
        items.iter().for_each(|item| rows.write(item, &line(item)).unwrap());
        assert_eq!(rows.left_out(), None);
        let text = String::from_utf8(rows.out.into_inner().unwrap()).unwrap();
        let ends: Vec<&str> = text
            .lines()
            .map(|line| line.rsplitn(5, ',').nth(4).map_or("", |own| &line[own.len()..]))
            .collect();
        assert_eq!(ends, [",b,a,field_url,field_field_url", ",x,,,", ",,1,2,mine", ",3,,,"]);
    }

    #[test]
    fn columns_are_those_of_the_first_item_and_what_has_none_is_reported() {
        let (text, message) =
            csv(&[], &[item(json!({"b": "x", "a": [1, "y"]})), item(json!({"b": null, "c": 1}))]);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines[0], "id,url,crawl,spider,fetched_at,status,depth,item,change,final_url,a,b");
        assert_eq!(lines[1], r#"a,https://example.com/,c1,docs,2026-01-01T00:00:00Z,200,1,,,,"[1,""y""]",x"#);
        assert!(lines[2].ends_with(",,,,"));
        assert!(message.unwrap().starts_with("items with fields that have no column: 1;"));
    }

    #[test]
    fn a_field_that_is_named_as_a_column_of_every_item_keeps_its_value() {
        let items = [item(json!({"url": "mine"}))];
        assert!(csv(&[], &items).0.contains(",final_url,field_url\r\n"));
        assert_eq!(csv(&["field_url", "url"], &items).0, "field_url,url\r\nmine,https://example.com/\r\n");
        assert_eq!(csv(&["fields.url", "url"], &items).0, "fields.url,url\r\nmine,https://example.com/\r\n");
        let titled = [item(json!({"title": "x", "fields.b": "y"}))];
        assert_eq!(csv(&["fields.title", "fields.b"], &titled).0, "fields.title,fields.b\r\nx,y\r\n");
    }

    #[test]
    fn a_column_that_no_item_has_is_reported_with_those_that_there_are() {
        let unknown = |columns: &[&str], items: &[Item]| {
            let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
            let mut rows = Csv::new(Vec::new(), &columns);
            for item in items {
                rows.write(item, &serde_json::to_vec(item).unwrap()).unwrap();
            }
            rows.unknown()
        };
        let items = [item(json!({"price": 1})), item(json!({"title": "x"}))];
        assert_eq!(unknown(&["url", "price", "title", "fields.price"], &items), None);
        assert_eq!(
            unknown(&["prcie"], &items).unwrap(),
            "no item has a field `prcie`: did you mean `price`?"
        );
        let message = unknown(&["nonsense"], &items).unwrap();
        assert!(message.ends_with("`final_url`, `price` and `title`"), "{message}");
        assert_eq!(unknown(&["nonsense"], &[]), None, "of nothing nothing is known");
    }

    #[test]
    fn a_text_is_no_formula_and_a_number_stays_one() {
        let fields = json!({"a": "=1+1", "b": "-x", "c": -1, "d": "@x", "e": "a\r\nb,\"c\""});
        let (text, message) = csv(&["a", "b", "c", "d", "e", "nowhere"], &[item(fields)]);
        let row = text.split_once("\r\n").unwrap().1;
        assert_eq!(row, "'=1+1,'-x,-1,'@x,\"a\r\nb,\"\"c\"\"\",\r\n");
        assert_eq!(message, None);
    }

    /// A program may give its items any keys.
    #[test]
    fn the_name_of_a_column_is_no_formula_either() {
        let (text, _) = csv(&[], &[item(json!({"=HYPERLINK(\"http://x\")": 1, "a;=1": 2}))]);
        let head = text.split_once("\r\n").unwrap().0;
        assert!(head.ends_with(",final_url,\"'=HYPERLINK(\"\"http://x\"\")\",a;'=1"), "{head}");
        let asked = csv(&["=1+1"], &[item(json!({"=1+1": "x"}))]).0;
        assert_eq!(asked, "'=1+1\r\nx\r\n");
    }

    #[test]
    fn a_line_for_people_disturbs_no_terminal_and_is_the_same_json() {
        let item = item(json!({"a": "\u{202e}x\u{9b}"}));
        let line = serde_json::to_vec(&item).unwrap();
        let mut out = Vec::new();
        JsonLines::new(&mut out, true).write(&item, &line).unwrap();
        assert!(!String::from_utf8(out.clone()).unwrap().contains(['\u{202e}', '\u{9b}']));
        assert_eq!(serde_json::from_slice::<Item>(&out).unwrap(), item);
        out.clear();
        JsonLines::new(&mut out, false).write(&item, &line).unwrap();
        assert_eq!(out, [&line[..], b"\n"].concat());
    }
}
