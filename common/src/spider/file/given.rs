//! One value of a file: read as the expected type, or noted as wrong.

use std::fmt::Display;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde_json::Value;
use strum::VariantArray;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::notes::Notes;
use super::placeholders;
use crate::mistake::{Place, Sited};
use crate::nearest::nearest;
use crate::text::printable;
use crate::toml_value;

/// Maximum length of a name that is repeated in a mistake.
const MAX_SHOWN_NAME: usize = 64;

/// A value under its key.
pub(super) struct Given<'a> {
    pub(super) notes: &'a Notes<'a>,
    /// The path of keys that leads to it: `follow.area`.
    pub(super) key: String,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Given<'a> {
    pub(super) fn place(&self) -> Place {
        self.notes.place(&self.value.span())
    }

    /// Notes that the value is wrong.
    pub(super) fn wrong<T>(&self, what: impl Display) -> Option<T> {
        self.notes.wrong(self.place(), format_args!("{}: {what}", self.key));
        None
    }

    /// Notes that nothing has the name that a text in it gives. `what` says what there is not; `known` are the names.
    pub(super) fn no_such<'n>(
        &self,
        named: &Sited<String>,
        what: impl Display,
        known: impl Iterator<Item = &'n str> + Clone,
    ) {
        let (shown, hint) = (printable(&named.value, MAX_SHOWN_NAME), nearest(&named.value, known));
        let place = named.place.unwrap_or_else(|| self.place());
        self.notes.wrong(place, format_args!("{what} with the name `{shown}`{hint}"));
    }

    /// Notes that the value has another type than expected.
    pub(super) fn not_a<T>(&self, wanted: &str) -> Option<T> {
        self.wrong(toml_value::not_a(wanted, toml_value::type_of(self.value.get_ref())))
    }

    /// Reads a text, with the values of its arguments filled in.
    pub(super) fn text(&self) -> Option<Sited<String>> {
        self.text_of(|_| Ok(()))
    }

    /// Like [`Given::text`]. `check` says what is wrong with the value of an argument there.
    pub(super) fn text_of(&self, check: impl Fn(&str) -> Result<(), &'static str>) -> Option<Sited<String>> {
        let text = self.verbatim()?;
        let filled = self.notes.filled(self.place(), &self.key, text, check)?;
        Some(Sited { value: filled.into_owned(), place: Some(self.place()) })
    }

    /// Reads a text as it is written, in which no argument may stand.
    pub(super) fn verbatim(&self) -> Option<&'a str> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            _ => self.not_a("a text in quotes"),
        }
    }

    /// Reads a text that is not blank.
    pub(super) fn words(&self) -> Option<Sited<String>> {
        self.words_of(|_| Ok(()))
    }

    /// Like [`Given::words`]. `check` says what is wrong with the value of an argument there.
    pub(super) fn words_of(&self, check: impl Fn(&str) -> Result<(), &'static str>) -> Option<Sited<String>> {
        let text = self.text_of(check)?;
        if text.value.trim().is_empty() { self.wrong("must not be empty") } else { Some(text) }
    }

    /// Reads a text in the form that `T` parses.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&self) -> Option<T> {
        self.text()?.value.parse().map_or_else(|error| self.wrong(error), Some)
    }

    /// Reads the name of a variant.
    pub(super) fn variant<T: VariantArray + Copy + Into<&'static str>>(&self) -> Option<T> {
        let choices: Vec<(&str, T)> =
            T::VARIANTS.iter().map(|variant| ((*variant).into(), *variant)).collect();
        self.one_of(&choices)
    }

    /// Reads one of these names.
    pub(super) fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text()?.value;
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*choice);
        }
        self.wrong(toml_value::no_choice(&text, choices.iter().map(|(name, _)| *name)))
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.not_a("true or false"),
        }
    }

    /// Reads an integer that is at least `least`.
    pub(super) fn whole<T: TryFrom<i64> + PartialOrd + Display>(&self, least: T) -> Option<T> {
        let DeValue::Integer(number) = self.value.get_ref() else { return self.not_a("a whole number") };
        let Some(number) = toml_value::integer(number) else { return self.wrong("is too large") };
        match T::try_from(number) {
            Ok(number) if number >= least => Some(number),
            Err(_) if number > 0 => self.wrong("is too large"),
            _ => self.wrong(format_args!("must be {least} or more")),
        }
    }

    /// Reads a number, whole or not, of which `is_valid` holds. Others are wrong for the reason `why`.
    pub(super) fn number(&self, wanted: &str, is_valid: impl Fn(f64) -> bool, why: &str) -> Option<f64> {
        let text = match self.value.get_ref() {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) => number.as_str(),
            _ => return self.not_a(wanted),
        };
        match text.parse() {
            Ok(number) if is_valid(number) => Some(number),
            _ => self.wrong(why),
        }
    }

    /// Reads an integer that is at least 1.
    pub(super) fn positive(&self) -> Option<NonZeroU64> {
        self.whole(1).and_then(NonZeroU64::new)
    }

    pub(super) fn list(&self) -> Option<Vec<Self>> {
        let DeValue::Array(values) = self.value.get_ref() else { return self.not_a("a list in brackets") };
        Some(values.iter().map(|value| self.inner(value)).collect())
    }

    /// Reads a list; elements that cannot be read are noted and left out.
    pub(super) fn all<T>(&self, read: impl FnMut(&Self) -> Option<T>) -> Option<Vec<T>> {
        Some(self.list()?.iter().filter_map(read).collect())
    }

    /// Returns whether an argument stands anywhere in it.
    pub(super) fn has_placeholder(&self) -> bool {
        placeholders::is_in(&self.notes.text()[self.value.span()])
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Integer(_))
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    /// Returns whether it is a table with this key.
    pub(super) fn has_key(&self, key: &str) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(table) if table.contains_key(key))
    }

    /// Returns whether it is a table that is written in braces.
    pub(super) fn is_inline_table(&self) -> bool {
        is_inline_table(self.notes.text(), self.value)
    }

    /// Returns the value as JSON.
    pub(super) fn json(&self) -> Option<Value> {
        let value = match self.value.get_ref() {
            DeValue::String(_) => self.text()?.value.into(),
            DeValue::Integer(number) => {
                toml_value::integer(number).map_or_else(|| self.no_json(), |number| Some(number.into()))?
            }
            DeValue::Float(number) => {
                let number = number.as_str().parse().ok().and_then(serde_json::Number::from_f64);
                number.map_or_else(|| self.no_json(), |number| Some(Value::Number(number)))?
            }
            DeValue::Boolean(flag) => (*flag).into(),
            DeValue::Datetime(date) => date.to_string().into(),
            DeValue::Array(values) => {
                Value::Array(values.iter().map(|value| self.inner(value).json()).collect::<Option<_>>()?)
            }
            DeValue::Table(table) => {
                let entry = |(key, value): (&Spanned<DeString<'_>>, &'a Spanned<DeValue<'a>>)| {
                    Some((key.get_ref().to_string(), self.inner(value).json()?))
                };
                Value::Object(table.iter().map(entry).collect::<Option<_>>()?)
            }
        };
        Some(value)
    }

    fn no_json(&self) -> Option<Value> {
        self.wrong("is a number that JSON cannot say")
    }

    /// Returns a value inside this one.
    fn inner(&self, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self { notes: self.notes, key: self.key.clone(), value }
    }
}

/// Returns whether this value of `text` is a table that is written in braces.
pub(super) fn is_inline_table(text: &str, value: &Spanned<DeValue<'_>>) -> bool {
    matches!(value.get_ref(), DeValue::Table(_)) && text[value.span().start..].starts_with('{')
}
