//! One value of a file: read as what is wanted there, or noted as wrong.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde_json::Value;
use toml::Spanned;
use toml::de::DeValue;

use super::notes::Notes;
use crate::nearest::nearest;
use crate::spider::{Place, Sited};
use crate::text::printable;

/// How much of a value is repeated in a mistake.
const SHOWN: usize = 60;

/// A value under its key.
pub(super) struct Given<'a> {
    pub(super) notes: &'a Notes<'a>,
    /// The keys that lead to it: `follow.area`.
    pub(super) key: String,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Given<'a> {
    pub(super) fn place(&self) -> Place {
        self.notes.place(&self.value.span())
    }

    /// Notes that it is wrong.
    pub(super) fn wrong<T>(&self, what: impl Display) -> Option<T> {
        self.notes.wrong(self.place(), format_args!("{}: {what}", self.key));
        None
    }

    /// Notes that it is not what is wanted there.
    pub(super) fn not_a<T>(&self, wanted: &str) -> Option<T> {
        let found = match self.value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.wrong(format_args!("{wanted} is wanted, not {found}"))
    }

    pub(super) fn text(&self) -> Option<Sited<String>> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(Sited { value: text.to_string(), place: Some(self.place()) }),
            _ => self.not_a("a text in quotes"),
        }
    }

    /// A text that says something.
    pub(super) fn words(&self) -> Option<Sited<String>> {
        let text = self.text()?;
        if text.value.trim().is_empty() { self.wrong("must not be empty") } else { Some(text) }
    }

    /// A text that is written as `T` is.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&self) -> Option<T> {
        self.text()?.value.parse().map_or_else(|error| self.wrong(error), Some)
    }

    /// One of these names.
    pub(super) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text()?.value;
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*choice);
        }
        let names = || choices.iter().map(|(name, _)| *name);
        self.wrong(format_args!("there is no `{}`{}", printable(&text, SHOWN), nearest(&text, names())))
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.not_a("true or false"),
        }
    }

    /// A whole number from `least` on.
    pub(super) fn whole<T: TryFrom<i64> + PartialOrd + Display>(&self, least: T) -> Option<T> {
        let DeValue::Integer(number) = self.value.get_ref() else { return self.not_a("a whole number") };
        let Ok(number) = i64::from_str_radix(number.as_str(), number.radix()) else {
            return self.wrong("is too large");
        };
        match T::try_from(number) {
            Ok(number) if number >= least => Some(number),
            Err(_) if number > 0 => self.wrong("is too large"),
            _ => self.wrong(format_args!("must be {least} or more")),
        }
    }

    /// A number from 1 on.
    pub(super) fn positive(&self) -> Option<NonZeroU64> {
        self.whole(1).and_then(NonZeroU64::new)
    }

    pub(super) fn list(&self) -> Option<Vec<Self>> {
        let DeValue::Array(values) = self.value.get_ref() else { return self.not_a("a list in brackets") };
        let given = |value| Self { notes: self.notes, key: self.key.clone(), value };
        Some(values.iter().map(given).collect())
    }

    /// Those of a list that can be read.
    pub(super) fn all<T>(&self, read: impl FnMut(&Self) -> Option<T>) -> Option<Vec<T>> {
        Some(self.list()?.iter().filter_map(read).collect())
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    /// The value as JSON.
    pub(super) fn json(&self) -> Option<Value> {
        as_json(self.value.get_ref()).map_or_else(|| self.wrong("is a number that JSON cannot say"), Some)
    }
}

fn as_json(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok()?.into(),
        DeValue::Float(number) => {
            serde_json::Number::from_f64(number.as_str().parse().ok()?).map(Value::Number)?
        }
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Array(values) => {
            Value::Array(values.iter().map(|value| as_json(value.get_ref())).collect::<Option<_>>()?)
        }
        DeValue::Table(table) => {
            let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
                let key: &std::borrow::Cow<'_, str> = key.get_ref();
                Some((key.to_string(), as_json(value.get_ref())?))
            };
            Value::Object(table.iter().map(entry).collect::<Option<_>>()?)
        }
    })
}
