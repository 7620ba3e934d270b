//! Tables and their columns, as required by a spider.

use std::borrow::Cow;

use serde_json::{Map, Value};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::is_system_column;
use trawl_common::spider::item::Item;
use trawl_common::spider::{Field, Kind, Spider};
use trawl_common::text::start_of;

use super::cell::Type;
use super::relation::{CHANGED_AT, Relation};
use crate::sinks::columns::{self, Shape, Take};

/// PostgreSQL cuts longer names off without a word.
const MAX_NAME: usize = 63;

/// A table for some kinds of item.
pub(super) struct Table {
    pub(super) name: String,
    kinds: Vec<Option<String>>,
    /// Number of the first columns, which every item has, before those of its content.
    own: usize,
    pub(super) columns: Vec<Column>,
}

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Type,
    holds: Holds,
}

/// The content of a column.
#[derive(Clone, Debug)]
enum Holds {
    /// A value that every item has.
    Own(Take),
    Field(String),
}

/// Returns the tables of a spider: `one` for all its items, or one for each kind.
pub(super) fn tables(one: Option<&str>, spider: &Spider) -> Result<Vec<Table>> {
    let mut tables: Vec<Table> = Vec::new();
    for (rule, fields) in spider.item_fields() {
        let name = identifier(one.or(rule).unwrap_or(spider.name.as_str()))?;
        let at = tables.iter().position(|table| table.name == name).unwrap_or_else(|| {
            tables.push(Table::new(name, spider));
            tables.len() - 1
        });
        tables[at].kinds.push(rule.map(str::to_owned));
        for (name, field) in &fields {
            tables[at].add(name, kind(field))?;
        }
    }
    for (name, field) in spider.carried() {
        for table in &mut tables {
            // An item's own field comes before what is carried.
            if !table.columns.iter().any(|column| column.is_of(name)) {
                table.add(name, kind(field))?;
            }
        }
    }
    if spider.handler.is_some() {
        tables.iter_mut().for_each(Table::add_all_fields);
    }
    tables.iter_mut().for_each(Table::add_changed_at);
    Ok(tables)
}

impl Table {
    fn new(name: String, spider: &Spider) -> Self {
        let own = |(name, shape, take): (&str, Shape, Take)| Column {
            name: name.to_owned(),
            kind: Type::new(shape),
            holds: Holds::Own(take),
        };
        let columns: Vec<Column> = columns::own(spider).map(own).collect();
        Self { name, kinds: Vec::new(), own: columns.len(), columns }
    }

    /// Adds the column of a field. Kinds of item that share a table may share its columns too.
    fn add(&mut self, field: &str, kind: Type) -> Result<()> {
        if is_system_column(field) {
            let text = format!(
                "postgres: the field {field} has the name of a column of PostgreSQL's own: give it another"
            );
            return Err(Error::new(ErrorKind::Refused, text));
        }
        let is_own = |column: &Column| column.name == field && matches!(column.holds, Holds::Own(_));
        let name = match self.columns.iter().any(is_own) {
            true => format!("item_{field}"),
            false => identifier(field)?,
        };
        match self.columns.iter().find(|other| other.name == name) {
            None => self.columns.push(Column { name, kind, holds: Holds::Field(field.to_owned()) }),
            Some(other) if other.kind == kind && other.is_of(field) => {}
            Some(other) => {
                let text = format!(
                    "postgres: the table {} would have the column {} twice, as {} and as {}: give a field another name",
                    self.name,
                    other.name,
                    other.kind.as_str(),
                    kind.as_str(),
                );
                return Err(Error::new(ErrorKind::Refused, text));
            }
        }
        Ok(())
    }

    /// Adds the column with all fields of a program's items.
    fn add_all_fields(&mut self) {
        let (name, shape, take) = columns::ALL_FIELDS;
        let is_taken = self.columns.iter().any(|other| other.name == name);
        let name = if is_taken { format!("item_{name}") } else { name.to_owned() };
        self.columns.push(Column { name, kind: Type::new(shape), holds: Holds::Own(take) });
    }

    /// Adds the column with the time of the last change, unless a field has its name.
    fn add_changed_at(&mut self) {
        if self.columns.iter().all(|other| other.name != CHANGED_AT) {
            let holds = Holds::Own(|item| item.fetched_at.as_str().into());
            self.columns.push(Column { name: CHANGED_AT.to_owned(), kind: Type::Time, holds });
        }
    }

    /// Returns the table in the form that statements use.
    pub(super) fn relation(&self) -> Relation<'_> {
        let columns = self.columns.iter().map(|column| (&*column.name, column.kind)).collect();
        let has_changed_at = |last: &Column| last.name == CHANGED_AT && matches!(last.holds, Holds::Own(_));
        let content = match self.columns.split_last() {
            Some((last, before)) if has_changed_at(last) => {
                Some(before.iter().skip(self.own).map(|column| &*column.name).collect())
            }
            _ => None,
        };
        Relation {
            name: Cow::Borrowed(&self.name),
            latest_by: "fetched_at",
            columns: Cow::Owned(columns),
            content,
        }
    }

    /// Whether the table holds items of this item's kind.
    pub(super) fn takes(&self, item: &Item) -> bool {
        self.kinds.contains(&item.item)
    }

    /// Returns an item as a row of the table.
    pub(super) fn row(&self, item: &Item) -> Map<String, Value> {
        let value = |column: &Column| match &column.holds {
            Holds::Own(take) => column.kind.fit(&take(item)),
            Holds::Field(name) => column.kind.fit(item.fields.get(name).unwrap_or(&Value::Null)),
        };
        self.columns.iter().map(|column| (column.name.clone(), value(column))).collect()
    }
}

impl Column {
    fn is_of(&self, field: &str) -> bool {
        matches!(&self.holds, Holds::Field(name) if name == field)
    }
}

/// Returns the type of a field's column. PostgreSQL has one for dates, and lists are JSON.
fn kind(field: &Field) -> Type {
    match columns::shape(field) {
        (_, true) => Type::Json,
        _ if field.list => Type::Json,
        (Shape::Text, false) if field.kind == Kind::Date => Type::Time,
        (shape, false) => Type::new(shape),
    }
}

/// Returns a valid PostgreSQL identifier: without NUL, and cut to its maximum length.
fn identifier(name: &str) -> Result<String> {
    let name = name.replace('\0', "");
    match start_of(&name, MAX_NAME) {
        "" => Err(Error::new(ErrorKind::Refused, "postgres: a table or a field has no name")),
        name => Ok(name.to_owned()),
    }
}

/// An identifier in quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use trawl_common::settings;
    use trawl_common::spider::{FieldSource, ItemRule, PageField};

    use super::*;

    /// The name of a kind of item, and the types of its fields.
    type Rule<'a> = (Option<&'a str>, &'a [(&'a str, Kind)]);

    fn spider(rules: &[Rule<'_>]) -> Spider {
        let mut spider = Spider::without_file("docs".parse().unwrap(), &settings::Items::default());
        let rule = |(name, fields): &(Option<&str>, &[(&str, Kind)])| ItemRule {
            name: name.map(str::to_owned),
            each: None,
            page: None,
            fields: fields
                .iter()
                .map(|(name, kind)| {
                    (
                        name.to_string(),
                        Field { kind: *kind, ..Field::new(FieldSource::Page(PageField::Title)) },
                    )
                })
                .collect(),
        };
        spider.items = rules.iter().map(rule).collect();
        spider
    }

    fn names(one: Option<&str>, spider: &Spider) -> Vec<String> {
        tables(one, spider).unwrap().into_iter().map(|table| table.name).collect()
    }

    #[test]
    fn a_table_is_named_by_the_setting_or_the_kind_of_item_or_the_spider() {
        let kinds = spider(&[(None, &[]), (Some("offer"), &[]), (Some("shop"), &[])]);
        assert_eq!(names(None, &kinds), ["docs", "offer", "shop"]);
        assert_eq!(names(Some("all"), &kinds), ["all"]);
        assert_eq!(names(Some(&"ä".repeat(40)), &kinds), ["ä".repeat(31)]);
    }

    #[test]
    fn a_field_that_is_named_as_a_column_of_every_item_has_another() {
        let fields = spider(&[(None, &[("url", Kind::Url), ("Preis \"€\"", Kind::Number)])]);
        let table = tables(None, &fields).unwrap();
        let own: Vec<String> = table[0].columns[columns::own(&fields).count()..]
            .iter()
            .map(|column| quoted(&column.name))
            .collect();
        assert_eq!(own, ["\"item_url\"", "\"Preis \"\"€\"\"\"", "\"changed_at\""]);
    }

    #[test]
    fn a_column_that_would_be_there_twice_is_refused_and_named() {
        let long = "x".repeat(64);
        let two = [(&long[..], Kind::Text), (&long[..63], Kind::Text)];
        let differing =
            spider(&[(Some("a"), &[("price", Kind::Text)]), (Some("b"), &[("price", Kind::Number)])]);
        assert!(tables(None, &differing).is_ok());
        for (one, spider) in [(Some("all"), differing), (None, spider(&[(None, &two)]))] {
            let error = tables(one, &spider).err().unwrap();
            assert!(!error.is_temporary() && error.to_string().contains("twice"), "{error}");
        }
        for name in ["", "ctid"] {
            assert!(tables(None, &spider(&[(None, &[(name, Kind::Text)])])).is_err(), "{name}");
        }
    }
}
