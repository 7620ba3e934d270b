//! Values in the form that PostgreSQL accepts.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Number, Value};

use crate::sinks::columns::Shape;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    Integer,
    Number,
    Boolean,
    Time,
    Json,
}

impl Type {
    /// Returns the type of a column of this shape.
    pub(super) fn new(shape: Shape) -> Self {
        match shape {
            Shape::Text => Self::Text,
            Shape::Integer => Self::Integer,
            Shape::Number => Self::Number,
            Shape::Boolean => Self::Boolean,
            Shape::Instant => Self::Time,
            Shape::Json => Self::Json,
        }
    }

    /// Returns PostgreSQL's name for the type.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "bigint",
            Self::Number => "double precision",
            Self::Boolean => "boolean",
            Self::Time => "timestamp with time zone",
            Self::Json => "jsonb",
        }
    }

    /// Returns the part of `value` that a column of this type can hold, or null. A page must not be able to make a
    /// statement fail, because it would be retried for ever.
    pub(crate) fn fit(self, value: &Value) -> Value {
        match (self, value) {
            (_, Value::Null) => Value::Null,
            (Self::Text, Value::String(text)) => storable(text).into(),
            (Self::Text, other) => storable(&other.to_string()).into(),
            (Self::Integer, Value::Number(number)) => whole(number).map_or(Value::Null, Value::from),
            (Self::Number, Value::Number(number)) => number.as_f64().map_or(Value::Null, Value::from),
            (Self::Boolean, Value::Bool(_)) => value.clone(),
            (Self::Time, Value::String(text)) => time(text).map_or(Value::Null, Value::from),
            (Self::Json, value) => storable_json(value),
            _ => Value::Null,
        }
    }
}

fn whole(number: &Number) -> Option<i64> {
    // 2^53: larger integers are not exact in a float.
    let exact =
        |float: f64| (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64);
    number.as_i64().or_else(|| number.is_f64().then(|| number.as_f64().and_then(exact)).flatten())
}

/// Parses a date, or a date and time, in UTC if it has no offset; PostgreSQL has no year 0.
fn time(text: &str) -> Option<String> {
    let at: Timestamp =
        text.parse().ok().or_else(|| text.parse::<DateTime>().ok().and_then(in_utc)).or_else(|| {
            text.parse::<Date>().ok().and_then(|date| in_utc(date.to_datetime(Default::default())))
        })?;
    (at.to_zoned(TimeZone::UTC).year() > 0).then(|| at.to_string())
}

fn in_utc(time: DateTime) -> Option<Timestamp> {
    time.to_zoned(TimeZone::UTC).ok().as_ref().map(Zoned::timestamp)
}

/// Removes NUL characters, which PostgreSQL does not allow in text.
fn storable(text: &str) -> String {
    text.replace('\0', "")
}

fn storable_json(value: &Value) -> Value {
    match value {
        Value::String(text) => storable(text).into(),
        Value::Array(values) => values.iter().map(storable_json).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (storable(name), storable_json(value))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_a_column_is_null() {
        for (kind, value) in [
            (Type::Integer, json!("7")),
            (Type::Integer, json!(u64::MAX)),
            (Type::Integer, json!(1.5)),
            (Type::Number, json!("x")),
            (Type::Boolean, json!(1)),
            (Type::Time, json!("soon")),
            (Type::Time, json!("0000-01-01")),
            (Type::Time, json!(5)),
            (Type::Json, json!(null)),
        ] {
            assert_eq!(kind.fit(&value), Value::Null, "{kind:?} {value}");
        }
    }

    #[test]
    fn what_fits_is_kept_without_nul() {
        assert_eq!(Type::Text.fit(&json!("a\0b")), json!("ab"));
        assert_eq!(Type::Text.fit(&json!(["a\0"])), json!("[\"a\\u0000\"]"));
        assert_eq!(Type::Json.fit(&json!({"a\0": ["\0", 1.5, null]})), json!({"a": ["", 1.5, null]}));
        assert_eq!(Type::Integer.fit(&json!(7.0)), json!(7));
        assert_eq!(Type::Integer.fit(&json!(i64::MIN)), json!(i64::MIN));
        assert_eq!(Type::Number.fit(&json!(7)), json!(7.0));
        assert_eq!(Type::Time.fit(&json!("2026-01-31")), json!("2026-01-31T00:00:00Z"));
        assert_eq!(Type::Time.fit(&json!("2026-01-31T12:00:00+02:00")), json!("2026-01-31T10:00:00Z"));
        assert_eq!(Type::Time.fit(&json!("2026-01-31T12:00:00")), json!("2026-01-31T12:00:00Z"));
    }
}
