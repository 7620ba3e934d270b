//! One column of a Parquet file: its type, and its values with the levels that say where one is missing.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{Type, TypePtr};
use serde_json::Value;

use super::super::columns::{Columns, Shape};

/// Returns the schema of these columns, with one more for values that fit none.
pub(super) fn schema(columns: &Columns) -> Result<Type, ParquetError> {
    let mut fields = Vec::new();
    for column in columns.iter() {
        let field =
            if column.list { list(&column.name, column.shape) } else { value(&column.name, column.shape) };
        fields.push(Arc::new(field?));
    }
    let mut other = "other".to_owned();
    while columns.names().any(|name| name == other) {
        other.push('_');
    }
    fields.push(Arc::new(value(&other, Shape::Json)?));
    Type::group_type_builder("item").with_fields(fields).build()
}

fn value(name: &str, shape: Shape) -> Result<Type, ParquetError> {
    let instant = LogicalType::timestamp(true, TimeUnit::MILLIS);
    let (physical, logical) = match shape {
        Shape::Text | Shape::Json => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Shape::Integer => (Physical::INT64, None),
        Shape::Number => (Physical::DOUBLE, None),
        Shape::Boolean => (Physical::BOOLEAN, None),
        Shape::Instant => (Physical::INT64, Some(instant)),
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

fn list(name: &str, shape: Shape) -> Result<Type, ParquetError> {
    let group = |name, repetition, fields: Vec<TypePtr>| {
        Type::group_type_builder(name).with_repetition(repetition).with_fields(fields)
    };
    let elements = group("list", Repetition::REPEATED, vec![Arc::new(value("element", shape)?)]).build()?;
    group(name, Repetition::OPTIONAL, vec![Arc::new(elements)])
        .with_logical_type(Some(LogicalType::List))
        .build()
}

/// The values of one column.
pub(super) struct Cells {
    shape: Shape,
    list: bool,
    values: Values,
    /// Definition levels: how much of each value exists; for a list: nothing, the list, an element, its value;
    /// otherwise: nothing, the value.
    defined: Vec<i16>,
    /// Repetition levels: whether it is a further element of the previous list.
    repeated: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Boolean(Vec<bool>),
}

enum Datum {
    Text(ByteArray),
    Integer(i64),
    Number(f64),
    Boolean(bool),
}

impl Cells {
    /// Creates an empty column.
    pub(super) fn new(shape: Shape, list: bool) -> Self {
        let values = match shape {
            Shape::Text | Shape::Json => Values::Text(Vec::new()),
            Shape::Integer | Shape::Instant => Values::Integer(Vec::new()),
            Shape::Number => Values::Number(Vec::new()),
            Shape::Boolean => Values::Boolean(Vec::new()),
        };
        Self { shape, list, values, defined: Vec::new(), repeated: Vec::new() }
    }

    /// Adds a value. If it does not fit, adds a null and returns `false`.
    pub(super) fn push(&mut self, value: &Value) -> bool {
        match value {
            Value::Array(elements) if self.list => self.push_list(elements),
            Value::Null => {
                self.add(0, 0, None);
                true
            }
            _ => {
                let datum = if self.list { None } else { datum(self.shape, value) };
                let fits = datum.is_some();
                self.add(i16::from(fits), 0, datum);
                fits
            }
        }
    }

    fn push_list(&mut self, elements: &[Value]) -> bool {
        let data: Option<Vec<Option<Datum>>> = elements
            .iter()
            .map(|element| if element.is_null() { Some(None) } else { datum(self.shape, element).map(Some) })
            .collect();
        let Some(data) = data else {
            self.add(0, 0, None);
            return false;
        };
        if data.is_empty() {
            self.add(1, 0, None);
        }
        for (number, datum) in data.into_iter().enumerate() {
            self.add(if datum.is_some() { 3 } else { 2 }, i16::from(number > 0), datum);
        }
        true
    }

    fn add(&mut self, defined: i16, repeated: i16, datum: Option<Datum>) {
        self.defined.push(defined);
        self.repeated.push(repeated);
        match (&mut self.values, datum) {
            (Values::Text(values), Some(Datum::Text(value))) => values.push(value),
            (Values::Integer(values), Some(Datum::Integer(value))) => values.push(value),
            (Values::Number(values), Some(Datum::Number(value))) => values.push(value),
            (Values::Boolean(values), Some(Datum::Boolean(value))) => values.push(value),
            _ => {}
        }
    }

    /// Writes the values as a column of a row group.
    pub(super) fn write(self, mut column: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let defined = Some(&self.defined[..]);
        let repeated = self.list.then_some(&self.repeated[..]);
        match (&self.values, column.untyped()) {
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(values, defined, repeated)
            }
            (Values::Integer(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, defined, repeated)
            }
            (Values::Number(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(values, defined, repeated)
            }
            (Values::Boolean(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, defined, repeated)
            }
            _ => Err(ParquetError::General("a column of another type".to_owned())),
        }?;
        column.close()
    }
}

/// Returns the value in this shape; `None` if it does not fit.
fn datum(shape: Shape, value: &Value) -> Option<Datum> {
    Some(match shape {
        Shape::Text => Datum::Text(value.as_str()?.into()),
        Shape::Json => Datum::Text(value.to_string().into_bytes().into()),
        Shape::Integer => Datum::Integer(value.as_i64()?),
        Shape::Number => Datum::Number(value.as_f64()?),
        Shape::Boolean => Datum::Boolean(value.as_bool()?),
        Shape::Instant => Datum::Integer(value.as_str()?.parse::<jiff::Timestamp>().ok()?.as_millisecond()),
    })
}
