//! Items as text: JSON Lines, and CSV (RFC 4180).

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::Value;
use trawl_common::cell::{cell, text_cell};
use trawl_common::nearest::nearest;
use trawl_common::spider::item::Item;
use trawl_common::text::escape_json;

/// The columns of every item.
const OWN: [&str; 10] =
    ["id", "url", "crawl", "spider", "fetched_at", "status", "depth", "item", "change", "final_url"];
/// Before the name of a field that is named as one of these.
const FIELDS: &str = "fields.";

/// Where items are written.
pub(super) trait Rows {
    /// Writes an item, which is `line` as JSON.
    fn write(&mut self, item: &Item, line: &[u8]) -> io::Result<()>;

    /// Hands on all that was written.
    fn flush(&mut self) -> io::Result<()>;

    /// What of the items could not be written, for people.
    fn left_out(&self) -> Option<String> {
        None
    }

    /// That columns were asked for that no item had, for people.
    fn unknown(&self) -> Option<String> {
        None
    }
}

/// One JSON object a line.
pub(super) struct JsonLines<W> {
    out: W,
    /// Whether people read it on a terminal, which characters in it could disturb.
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

/// Comma-separated values.
pub(super) struct Csv<W: Write> {
    out: csv::Writer<W>,
    columns: Vec<String>,
    /// Whether the columns were asked for, so that nobody misses others.
    asked: bool,
    begun: bool,
    /// Items with fields that have no column.
    cut: u64,
    /// The columns that no item has had so far.
    strange: BTreeSet<String>,
    /// The fields that items have had, as long as some column is strange.
    fields: BTreeSet<String>,
}

impl<W: Write> Csv<W> {
    /// With these columns, or else those of the first item.
    pub(super) fn new(out: W, columns: &[String]) -> Self {
        let out = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
        let strange = columns.iter().filter(|column| !OWN.contains(&column.as_str())).cloned().collect();
        let (begun, cut, fields) = Default::default();
        Self { out, columns: columns.to_vec(), asked: !columns.is_empty(), begun, cut, strange, fields }
    }
}

impl<W: Write> Rows for Csv<W> {
    fn write(&mut self, item: &Item, line: &[u8]) -> io::Result<()> {
        if !self.asked && !self.begun {
            self.columns = columns_of(item);
        }
        if !self.begun {
            self.out.write_record(self.columns.iter().map(|column| text_cell(column).into_owned()))?;
            self.begun = true;
        }
        if !self.asked && item.fields.keys().any(|field| !self.columns.contains(&column(field))) {
            self.cut += 1;
        }
        if !self.strange.is_empty() {
            self.fields.extend(item.fields.keys().map(|field| column(field)));
            self.strange
                .retain(|column| !item.fields.contains_key(column.strip_prefix(FIELDS).unwrap_or(column)));
        }
        let own: Value = serde_json::from_slice(line)?;
        let cells = self.columns.iter().map(|column| cell(value(item, &own, column)).into_owned());
        Ok(self.out.write_record(cells)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn left_out(&self) -> Option<String> {
        (self.cut > 0).then(|| {
            format!("{} items have fields that the first item has not, and that have no column: --fields names columns", self.cut)
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

fn columns_of(item: &Item) -> Vec<String> {
    OWN.iter().map(ToString::to_string).chain(item.fields.keys().map(|field| column(field))).collect()
}

/// The column of a field.
fn column(field: &str) -> String {
    if OWN.contains(&field) { format!("{FIELDS}{field}") } else { field.to_owned() }
}

fn value<'a>(item: &'a Item, own: &'a Value, column: &str) -> &'a Value {
    let field = match column.strip_prefix(FIELDS) {
        Some(field) => item.fields.get(field),
        None if OWN.contains(&column) => own.get(column),
        None => item.fields.get(column),
    };
    field.unwrap_or(&Value::Null)
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
    fn columns_are_those_of_the_first_item_and_what_has_none_is_reported() {
        let (text, message) =
            csv(&[], &[item(json!({"b": "x", "a": [1, "y"]})), item(json!({"b": null, "c": 1}))]);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines[0], "id,url,crawl,spider,fetched_at,status,depth,item,change,final_url,a,b");
        assert_eq!(lines[1], r#"a,https://example.com/,c1,docs,2026-01-01T00:00:00Z,200,1,,,,"[1,""y""]",x"#);
        assert!(lines[2].ends_with(",,,,"));
        assert!(message.unwrap().starts_with("1 items"));
    }

    #[test]
    fn a_field_that_is_named_as_a_column_of_every_item_keeps_its_value() {
        let items = [item(json!({"url": "mine"}))];
        assert!(csv(&[], &items).0.contains(",final_url,fields.url\r\n"));
        assert_eq!(csv(&["fields.url", "url"], &items).0, "fields.url,url\r\nmine,https://example.com/\r\n");
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
        assert_eq!(unknown(&["url", "price", "fields.title"], &items), None);
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
