//! The functions of the specification.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use serde_json::{Map, Number, Value};

use super::evaluate::{Evaluation, Unmet, is_equal, size};
use super::expression::Expression;
use crate::language::{MAX_ARGUMENTS, check_number};

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Avg,
    Ceil,
    Contains,
    EndsWith,
    Floor,
    Join,
    Keys,
    Length,
    Map,
    Max,
    MaxBy,
    Merge,
    Min,
    MinBy,
    NotNull,
    Reverse,
    Sort,
    SortBy,
    StartsWith,
    Sum,
    ToArray,
    ToNumber,
    ToString,
    Type,
    Values,
}

impl Function {
    /// All functions by name, with the numbers of arguments that each may have.
    pub(super) const ALL: [(&'static str, Self, RangeInclusive<usize>); 26] = [
        ("abs", Self::Abs, 1..=1),
        ("avg", Self::Avg, 1..=1),
        ("ceil", Self::Ceil, 1..=1),
        ("contains", Self::Contains, 2..=2),
        ("ends_with", Self::EndsWith, 2..=2),
        ("floor", Self::Floor, 1..=1),
        ("join", Self::Join, 2..=2),
        ("keys", Self::Keys, 1..=1),
        ("length", Self::Length, 1..=1),
        ("map", Self::Map, 2..=2),
        ("max", Self::Max, 1..=1),
        ("max_by", Self::MaxBy, 2..=2),
        ("merge", Self::Merge, 1..=MAX_ARGUMENTS),
        ("min", Self::Min, 1..=1),
        ("min_by", Self::MinBy, 2..=2),
        ("not_null", Self::NotNull, 1..=MAX_ARGUMENTS),
        ("reverse", Self::Reverse, 1..=1),
        ("sort", Self::Sort, 1..=1),
        ("sort_by", Self::SortBy, 2..=2),
        ("starts_with", Self::StartsWith, 2..=2),
        ("sum", Self::Sum, 1..=1),
        ("to_array", Self::ToArray, 1..=1),
        ("to_number", Self::ToNumber, 1..=1),
        ("to_string", Self::ToString, 1..=1),
        ("type", Self::Type, 1..=1),
        ("values", Self::Values, 1..=1),
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(other, ..)| *other == name).map(|(_, function, _)| function)
    }

    /// Returns the place of the argument that is a reference to an expression.
    fn reference(self) -> Option<usize> {
        match self {
            Self::Map => Some(0),
            Self::MaxBy | Self::MinBy | Self::SortBy => Some(1),
            _ => None,
        }
    }

    /// Checks the arguments. The error says what is wrong with them.
    pub(super) fn check(self, arguments: &[Expression]) -> Result<(), String> {
        let Some((name, _, numbers)) = Self::ALL.into_iter().find(|(_, other, _)| *other == self) else {
            return Ok(());
        };
        check_number(name, &numbers, arguments.len())?;
        for (place, argument) in arguments.iter().enumerate() {
            let is_reference = matches!(argument, Expression::Reference(_));
            if is_reference != (self.reference() == Some(place)) {
                let word = if is_reference { "is no reference" } else { "is a reference, as `&price`" };
                return Err(format!("argument {} of `{name}()` {word}", place + 1));
            }
        }
        Ok(())
    }
}

impl Evaluation {
    /// Calls a function, whose arguments were checked.
    pub(super) fn call(
        &self,
        function: Function,
        given: &[Expression],
        value: &Value,
    ) -> Result<Value, Unmet> {
        let mut arguments = Vec::with_capacity(given.len());
        let mut reference = &Expression::Here;
        for argument in given {
            match argument {
                Expression::Reference(inner) => reference = &**inner,
                argument => arguments.push(self.value(argument, value)?),
            }
        }
        let [first, rest @ ..] = arguments.as_mut_slice() else { return Err(Unmet::WrongType) };
        self.count(size(first))?;
        Ok(match (function, first) {
            (Function::Abs, Value::Number(number)) => whole(as_f64(number).abs()),
            (Function::Ceil, Value::Number(number)) => whole(as_f64(number).ceil()),
            (Function::Floor, Value::Number(number)) => whole(as_f64(number).floor()),
            (Function::Avg, Value::Array(list)) if list.is_empty() => Value::Null,
            (Function::Avg, Value::Array(list)) => whole(sum(list)? / list.len() as f64),
            (Function::Sum, Value::Array(list)) => whole(sum(list)?),
            (Function::Contains, Value::Array(list)) => {
                list.iter().any(|part| is_equal(part, &rest[0])).into()
            }
            (Function::Contains, Value::String(text)) => {
                rest[0].as_str().is_some_and(|part| text.contains(part)).into()
            }
            (Function::EndsWith, Value::String(text)) => text.ends_with(string(&rest[0])?).into(),
            (Function::StartsWith, Value::String(text)) => text.starts_with(string(&rest[0])?).into(),
            (Function::Join, Value::String(separator)) => {
                let Value::Array(list) = &rest[0] else { return Err(Unmet::WrongType) };
                let texts = list.iter().map(string).collect::<Result<Vec<_>, _>>()?;
                let length: usize = texts.iter().map(|text| text.len() + separator.len()).sum();
                self.count(length / 32)?;
                texts.join(separator).into()
            }
            (Function::Keys, Value::Object(object)) => {
                Value::Array(object.keys().map(|name| name.as_str().into()).collect())
            }
            (Function::Values, Value::Object(object)) => {
                Value::Array(std::mem::take(object).into_iter().map(|(_, value)| value).collect())
            }
            (Function::Length, Value::String(text)) => text.chars().count().into(),
            (Function::Length, Value::Array(list)) => list.len().into(),
            (Function::Length, Value::Object(object)) => object.len().into(),
            (Function::Map, Value::Array(list)) => {
                let found = list.iter().map(|part| self.value(reference, part));
                Value::Array(found.collect::<Result<_, _>>()?)
            }
            (Function::Max | Function::Min | Function::Sort, Value::Array(list)) => {
                self.ordered(function, std::mem::take(list), &Expression::Here)?
            }
            (Function::MaxBy | Function::MinBy | Function::SortBy, Value::Array(list)) => {
                self.ordered(function, std::mem::take(list), reference)?
            }
            (Function::Merge, Value::Object(object)) => {
                let mut merged: Map<String, Value> = std::mem::take(object);
                for other in rest {
                    let Value::Object(other) = std::mem::take(other) else { return Err(Unmet::WrongType) };
                    merged.extend(other);
                }
                Value::Object(merged)
            }
            (Function::NotNull, first) => {
                let mut all = std::iter::once(first).chain(rest);
                all.find(|value| !value.is_null()).map(std::mem::take).unwrap_or_default()
            }
            (Function::Reverse, Value::Array(list)) => {
                Value::Array(std::mem::take(list).into_iter().rev().collect())
            }
            (Function::Reverse, Value::String(text)) => text.chars().rev().collect::<String>().into(),
            (Function::ToArray, Value::Array(list)) => Value::Array(std::mem::take(list)),
            (Function::ToArray, one) => Value::Array(vec![std::mem::take(one)]),
            (Function::ToNumber, Value::Number(number)) => Value::Number(number.clone()),
            (Function::ToNumber, Value::String(text)) => {
                let read = serde_json::from_str::<Number>(text.trim());
                read.map_or(Value::Null, Value::Number)
            }
            (Function::ToNumber, _) => Value::Null,
            (Function::ToString, Value::String(text)) => std::mem::take(text).into(),
            (Function::ToString, other) => other.to_string().into(),
            (Function::Type, value) => match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            }
            .into(),
            _ => return Err(Unmet::WrongType),
        })
    }

    /// Returns the greatest or least of values, or all in order, by what an expression finds in them: all numbers, or
    /// all texts.
    fn ordered(&self, function: Function, list: Vec<Value>, by: &Expression) -> Result<Value, Unmet> {
        let mut keyed = Vec::with_capacity(list.len());
        for value in list {
            let key = match self.value(by, &value)? {
                Value::Number(number) => Key::Number(as_f64(&number)),
                Value::String(text) => Key::Text(text),
                _ => return Err(Unmet::WrongType),
            };
            keyed.push((key, value));
        }
        let is_text = |key: &Key| matches!(key, Key::Text(_));
        if keyed.windows(2).any(|pair| is_text(&pair[0].0) != is_text(&pair[1].0)) {
            return Err(Unmet::WrongType);
        }
        let order = |one: &(Key, Value), other: &(Key, Value)| one.0.order(&other.0);
        let found = match function {
            Function::Sort | Function::SortBy => {
                keyed.sort_by(order);
                return Ok(Value::Array(keyed.into_iter().map(|(_, value)| value).collect()));
            }
            // Of equal ones the first.
            Function::Max | Function::MaxBy => keyed.into_iter().rev().max_by(order),
            _ => keyed.into_iter().min_by(order),
        };
        Ok(found.map(|(_, value)| value).unwrap_or_default())
    }
}

enum Key {
    Number(f64),
    Text(String),
}

impl Key {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        }
    }
}

fn string(value: &Value) -> Result<&str, Unmet> {
    value.as_str().ok_or(Unmet::WrongType)
}

fn as_f64(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

fn sum(list: &[Value]) -> Result<f64, Unmet> {
    list.iter().map(|part| part.as_f64().ok_or(Unmet::WrongType)).sum()
}

/// Returns a number as JSON, a whole one without a decimal point.
fn whole(number: f64) -> Value {
    crate::document::json::number(number).unwrap_or_default()
}
