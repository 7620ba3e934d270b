//! Evaluates expressions within bounds.

use std::borrow::Cow;
use std::cell::Cell;

use serde_json::{Map, Value};

use super::expression::Expression;
use crate::language::Comparison;

/// Maximum number of values that an evaluation looks at or makes, with texts by [`TEXT`] bytes.
const MAX_STEPS: usize = 5_000_000;
/// Number of bytes of text that count as a value.
const TEXT: usize = 32;

/// The reason why an evaluation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// It makes too many values.
    TooMuch,
    /// A function was given a value of a type that it is not for.
    WrongType,
}

pub(super) type Found<'v> = Result<Cow<'v, Value>, Unmet>;

/// An evaluation.
pub(super) struct Evaluation {
    left: Cell<usize>,
}

impl Default for Evaluation {
    fn default() -> Self {
        Self { left: Cell::new(MAX_STEPS) }
    }
}

const NULL: Found<'static> = Ok(Cow::Owned(Value::Null));

impl Evaluation {
    pub(super) fn value(&self, expression: &Expression, value: &Value) -> Result<Value, Unmet> {
        let found = self.at(expression, value)?;
        self.owned(found)
    }

    pub(super) fn count(&self, steps: usize) -> Result<(), Unmet> {
        let left = self.left.get().checked_sub(steps).ok_or(Unmet::TooMuch)?;
        self.left.set(left);
        Ok(())
    }

    /// Returns a value of its own, whose size counts.
    pub(super) fn owned(&self, found: Cow<'_, Value>) -> Result<Value, Unmet> {
        if let Cow::Borrowed(value) = &found {
            self.count(size(value))?;
        }
        Ok(found.into_owned())
    }

    pub(super) fn at<'v>(&self, expression: &Expression, value: &'v Value) -> Found<'v> {
        self.count(1)?;
        match expression {
            Expression::Here => Ok(Cow::Borrowed(value)),
            Expression::Field(name) => Ok(value.get(name).map_or(Cow::Owned(Value::Null), Cow::Borrowed)),
            Expression::Index(index) => {
                let Value::Array(list) = value else { return NULL };
                let place = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
                let place = if *index < 0 { list.len().checked_sub(place) } else { Some(place) };
                let found = place.and_then(|place| list.get(place));
                Ok(found.map_or(Cow::Owned(Value::Null), Cow::Borrowed))
            }
            Expression::Slice(from, to, step) => {
                let Value::Array(list) = value else { return NULL };
                let kept =
                    slice(list.len(), *from, *to, *step).map(|place| self.owned(Cow::Borrowed(&list[place])));
                Ok(Cow::Owned(Value::Array(kept.collect::<Result<_, _>>()?)))
            }
            Expression::Then(first, second) => match self.at(first, value)? {
                Cow::Borrowed(found) => self.at(second, found),
                Cow::Owned(found) => self.value(second, &found).map(Cow::Owned),
            },
            Expression::Each(first, second) => match &*self.at(first, value)? {
                Value::Array(list) => self.projected(list, second).map(Cow::Owned),
                _ => NULL,
            },
            Expression::EachValue(first, second) => match &*self.at(first, value)? {
                Value::Object(object) => self.projected(object.values(), second).map(Cow::Owned),
                _ => NULL,
            },
            Expression::Filter(first, condition, second) => {
                let first = self.at(first, value)?;
                let Value::Array(list) = &*first else { return NULL };
                let mut kept = Vec::new();
                for part in list {
                    if is_true(&*self.at(condition, part)?) {
                        kept.push(part);
                    }
                }
                self.projected(kept, second).map(Cow::Owned)
            }
            Expression::Flatten(inner) => {
                let inner = self.at(inner, value)?;
                let Value::Array(list) = &*inner else { return NULL };
                let mut flat = Vec::new();
                for part in list {
                    match part {
                        Value::Array(parts) => {
                            for part in parts {
                                flat.push(self.owned(Cow::Borrowed(part))?);
                            }
                        }
                        part => flat.push(self.owned(Cow::Borrowed(part))?),
                    }
                }
                Ok(Cow::Owned(Value::Array(flat)))
            }
            Expression::List(_) | Expression::Object(_) if value.is_null() => NULL,
            Expression::List(parts) => {
                let parts = parts.iter().map(|part| self.value(part, value));
                Ok(Cow::Owned(Value::Array(parts.collect::<Result<_, _>>()?)))
            }
            Expression::Object(parts) => {
                let mut object = Map::new();
                for (name, part) in parts {
                    object.insert(name.clone(), self.value(part, value)?);
                }
                Ok(Cow::Owned(Value::Object(object)))
            }
            Expression::Or(one, other) => {
                let one = self.at(one, value)?;
                if is_true(&one) { Ok(one) } else { self.at(other, value) }
            }
            Expression::And(one, other) => {
                let one = self.at(one, value)?;
                if is_true(&one) { self.at(other, value) } else { Ok(one) }
            }
            Expression::Not(inner) => Ok(Cow::Owned((!is_true(&*self.at(inner, value)?)).into())),
            Expression::Compare(comparison, one, other) => {
                let (one, other) = (self.at(one, value)?, self.at(other, value)?);
                self.count(size(&one).min(size(&other)))?;
                Ok(Cow::Owned(comparison.of(&one, &other)))
            }
            Expression::Literal(literal) => {
                self.count(size(literal))?;
                Ok(Cow::Owned(literal.clone()))
            }
            // Only functions take one.
            Expression::Reference(_) => Err(Unmet::WrongType),
            Expression::Call(function, arguments) => self.call(*function, arguments, value).map(Cow::Owned),
        }
    }

    /// Returns what an expression finds in each value, without nulls.
    fn projected<'v>(
        &self,
        values: impl IntoIterator<Item = &'v Value>,
        expression: &Expression,
    ) -> Result<Value, Unmet> {
        let mut found = Vec::new();
        for value in values {
            let one = self.at(expression, value)?;
            if !one.is_null() {
                found.push(self.owned(one)?);
            }
        }
        Ok(Value::Array(found))
    }
}

impl Comparison {
    fn of(self, one: &Value, other: &Value) -> Value {
        match self {
            Self::Equal => is_equal(one, other).into(),
            Self::Unequal => (!is_equal(one, other)).into(),
            order => {
                let (Some(one), Some(other)) = (one.as_f64(), other.as_f64()) else { return Value::Null };
                order.of_numbers(one, other).into()
            }
        }
    }
}

/// Whether two values are equal; numbers are, whatever their types.
pub(super) fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_equal(a, b)))
        }
        (one, other) => one == other,
    }
}

pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
    }
}

/// The number of values in a value, with texts by [`TEXT`] bytes.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / TEXT,
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Object(object) => {
            1 + object.iter().map(|(name, value)| 1 + name.len() / TEXT + size(value)).sum::<usize>()
        }
        _ => 1,
    }
}

/// Returns the places of a slice as Python's.
fn slice(length: usize, from: Option<i64>, to: Option<i64>, step: i64) -> impl Iterator<Item = usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let place = |at: i64| (if at < 0 { at.saturating_add(length) } else { at }).clamp(least, most);
    let (first, last) = if step > 0 { (0, length) } else { (length - 1, -1) };
    let (from, to) = (from.map_or(first, place), to.map_or(last, place));
    let next = move |at: i64| Some(at).filter(|at| if step > 0 { *at < to } else { *at > to });
    std::iter::successors(next(from), move |at| next(at.saturating_add(step)))
        .filter_map(|at| usize::try_from(at).ok())
}
