//! The columns of a spider's items, for sinks with tables.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;
use trawl_common::spider::item::Item;
use trawl_common::spider::{Field, FieldSource, Kind, PageField, Spider};

/// The columns, in order: first those of every item, then the fields of the spider's items.
#[derive(Clone, Debug)]
pub(super) struct Columns(Vec<Column>);

/// One column.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// Its name: that of the field, or `field_<name>` if every item has a column of that name.
    pub(super) name: String,
    /// The type of its values.
    pub(super) shape: Shape,
    /// Whether each value is a list of such values.
    pub(super) list: bool,
    from: Source,
}

/// The type of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    Integer,
    Number,
    Boolean,
    /// An instant in the form of RFC 3339.
    Instant,
    /// Any value.
    Json,
}

/// A function that takes a value from an item.
pub(super) type Take = fn(&Item) -> Value;

#[derive(Clone, Debug)]
enum Source {
    Own(Take),
    Field(String),
}

/// The column with all fields, for items of a program, whose fields are not known in advance.
pub(super) const ALL_FIELDS: (&str, Shape, Take) =
    ("fields", Shape::Json, |item| Value::Object(item.fields.clone()));

impl Columns {
    /// Returns the columns of a spider's items. Kinds of items with a common field share its column.
    pub(super) fn new(spider: &Spider) -> Self {
        let mut columns: Vec<Column> = own(spider)
            .map(|(name, shape, value)| Column {
                name: name.to_owned(),
                shape,
                list: false,
                from: Source::Own(value),
            })
            .collect();
        let fields = spider.item_fields().flat_map(|(_, fields)| fields);
        for (name, field) in fields.chain(spider.carried().cloned()) {
            let (shape, list) = shape(&field);
            match columns.iter_mut().find(|column| column.is_of(&name)) {
                None => {
                    let name_of_column = free_name(&name, &columns);
                    let from = Source::Field(name);
                    columns.push(Column { name: name_of_column, shape, list, from });
                }
                Some(column) if (column.shape, column.list) == (shape, list) => {}
                Some(column) => (column.shape, column.list) = (Shape::Json, false),
            }
        }
        if spider.handler.is_some() {
            let (name, shape, take) = ALL_FIELDS;
            columns.push(Column {
                name: free_name(name, &columns),
                shape,
                list: false,
                from: Source::Own(take),
            });
        }
        Self(columns)
    }

    /// Iterates over the columns.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Column> {
        self.0.iter()
    }

    /// Iterates over the names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|column| &*column.name)
    }

    /// Returns the names of the fields that have a column.
    pub(super) fn fields(&self) -> HashSet<&str> {
        let field = |column: &'_ Column| matches!(column.from, Source::Field(_));
        self.0.iter().filter(|column| field(column)).map(Column::source).collect()
    }
}

impl Column {
    /// Returns an item's value in this column.
    pub(super) fn value<'a>(&self, item: &'a Item) -> Cow<'a, Value> {
        match &self.from {
            Source::Own(value) => Cow::Owned(value(item)),
            Source::Field(name) => item.fields.get(name).map_or(Cow::Owned(Value::Null), Cow::Borrowed),
        }
    }

    /// Returns the name of its values in an item.
    pub(super) fn source(&self) -> &str {
        match &self.from {
            Source::Own(_) => &self.name,
            Source::Field(name) => name,
        }
    }

    fn is_of(&self, field: &str) -> bool {
        matches!(&self.from, Source::Field(name) if name == field)
    }
}

/// The columns of every item.
const OWN: [(&str, Shape, Take); 10] = [
    ("id", Shape::Text, |item| item.id.as_str().into()),
    ("url", Shape::Text, |item| item.url.as_str().into()),
    ("crawl", Shape::Text, |item| item.crawl.as_str().into()),
    ("spider", Shape::Text, |item| item.spider.as_str().into()),
    ("fetched_at", Shape::Instant, |item| item.fetched_at.as_str().into()),
    ("status", Shape::Integer, |item| item.status.into()),
    ("depth", Shape::Integer, |item| item.depth.into()),
    ("item", Shape::Text, |item| item.item.as_deref().into()),
    ("change", Shape::Text, |item| serde_json::to_value(item.change).unwrap_or_default()),
    ("final_url", Shape::Text, |item| item.final_url.as_deref().into()),
];

/// The further columns of the items of a spider with kinds of pages, or files.
const OF_PAGES: [(&str, Shape, Take); 2] = [
    ("referrer", Shape::Text, |item| item.referrer.as_deref().into()),
    ("path", Shape::Json, |item| item.path.clone().into()),
];

/// Returns the columns that all items of a spider have.
pub(super) fn own(spider: &Spider) -> impl Iterator<Item = (&'static str, Shape, Take)> {
    let has_ways = !spider.pages.is_empty() || !spider.downloads.is_empty();
    let of_pages = if has_ways { &OF_PAGES[..] } else { &[] };
    OWN.iter().chain(of_pages).copied()
}

fn free_name(field: &str, columns: &[Column]) -> String {
    let mut name = field.to_owned();
    while columns.iter().any(|column| column.name == name) {
        name.insert_str(0, "field_");
    }
    name
}

/// Returns the type of a field's values, and whether each is a list.
pub(super) fn shape(field: &Field) -> (Shape, bool) {
    match &field.from {
        FieldSource::Page(PageField::LinkCount) => (Shape::Integer, false),
        FieldSource::Page(PageField::Links) => (Shape::Text, true),
        FieldSource::JsonLd(_, None)
        | FieldSource::Microdata(_, None)
        | FieldSource::Script(_, None)
        | FieldSource::Table(_)
        | FieldSource::Each(..)
            if field.transform.is_empty() =>
        {
            (Shape::Json, false)
        }
        _ => match field.kind {
            Kind::Text | Kind::Date | Kind::Url | Kind::Html => (Shape::Text, field.list),
            Kind::Number => (Shape::Number, field.list),
            Kind::Integer => (Shape::Integer, field.list),
            Kind::Boolean => (Shape::Boolean, field.list),
            Kind::Json => (Shape::Json, false),
        },
    }
}
