//! Converts found values to the type of a field.

use std::borrow::Cow;

use regex::Regex;
use serde_json::Value;
use trawl_common::spider::{Kind, Whitespace};
use trawl_common::text::legible;

use crate::document::base::Base;
use crate::document::found::{Found, outer_html, visible_lines, visible_text, visible_words};
use crate::document::json;
use crate::values::budget::Budget;
use crate::values::date::Written;
use crate::values::number;
use crate::values::truth::Truth;

/// The conversion of a field's values.
#[derive(Debug, Default)]
pub(crate) struct Convert {
    pub(crate) kind: Kind,
    pub(crate) regex: Option<Regex>,
    pub(crate) date: Written,
    pub(crate) decimal: Option<char>,
    pub(crate) truth: Truth,
    pub(crate) whitespace: Option<Whitespace>,
}

/// The reason why there is no value; `None` if nothing was found.
pub(crate) type Refusal = Option<&'static str>;

const TOO_LARGE: Refusal = Some("it does not fit into what an item may hold");

impl Convert {
    /// Returns the value, or the reason why it does not fit the type or the budget.
    pub(crate) fn value(
        &self,
        raw: &Found<'_>,
        base: &Base<'_>,
        budget: &mut Budget,
    ) -> Result<Value, Refusal> {
        match raw {
            Found::Json(value) => self.of_json(value, base, budget),
            Found::Text(text) => {
                self.of_text(text, self.whitespace.unwrap_or(Whitespace::Collapse), base, budget)
            }
            Found::Element(element) if self.kind == Kind::Html => {
                self.of_text(&outer_html(*element), Whitespace::Keep, base, budget)
            }
            Found::Element(element) => match self.whitespace.unwrap_or(Whitespace::Collapse) {
                Whitespace::Lines => self.of_text(&visible_lines(*element), Whitespace::Lines, base, budget),
                Whitespace::Collapse => {
                    self.of_text(&visible_words(*element), Whitespace::Collapse, base, budget)
                }
                Whitespace::Keep => self.of_text(&visible_text(*element), Whitespace::Keep, base, budget),
            },
        }
    }

    /// Returns the value that the steps of `transform` begin with: text with its white space as the field says, or
    /// JSON.
    pub(crate) fn start(&self, raw: &Found<'_>) -> Option<Value> {
        let spaced = |text: &str, whitespace: Whitespace| match whitespace {
            Whitespace::Collapse => legible(text, usize::MAX),
            Whitespace::Lines => lines(text),
            Whitespace::Keep => text.to_owned(),
        };
        let whitespace = self.whitespace.unwrap_or(Whitespace::Collapse);
        Some(match raw {
            Found::Json(value) => match &**value {
                Value::Null => return None,
                Value::String(text) => spaced(text, self.whitespace.unwrap_or(Whitespace::Keep)).into(),
                value => Budget::new(MAX_START).json(value)?,
            },
            Found::Text(text) => spaced(text, whitespace).into(),
            Found::Element(element) if self.kind == Kind::Html => outer_html(*element).into(),
            Found::Element(element) => match whitespace {
                Whitespace::Lines => lines(&visible_lines(*element)).into(),
                Whitespace::Collapse => spaced(&visible_words(*element), whitespace).into(),
                Whitespace::Keep => visible_text(*element).into(),
            },
        })
    }

    /// Converts a value after the steps of `transform`, or the reason why it does not fit. `is_json`: whether it was
    /// JSON at first.
    pub(crate) fn transformed(
        &self,
        value: &Value,
        is_json: bool,
        base: &Base<'_>,
        budget: &mut Budget,
    ) -> Result<Value, Refusal> {
        match value {
            Value::String(text) if !is_json => self.of_text(text, Whitespace::Keep, base, budget),
            value => self.of_json(value, base, budget),
        }
    }

    fn of_text(
        &self,
        text: &str,
        whitespace: Whitespace,
        base: &Base<'_>,
        budget: &mut Budget,
    ) -> Result<Value, Refusal> {
        let mut text = Cow::Borrowed(text);
        if whitespace == Whitespace::Lines {
            text = lines(&text).into();
        }
        if let Some(regex) = &self.regex {
            if !self.is_verbatim() && whitespace == Whitespace::Collapse {
                text = legible(&text, usize::MAX).into();
            }
            let found = regex
                .captures(&text)
                .ok_or_else(|| reason(&text, "the regular expression does not match"))?;
            text = found.get(1).or(found.get(0)).ok_or(None)?.as_str().to_owned().into();
        }
        let number =
            |budget: &mut Budget, value: Value| if budget.take(NUMBER) { Ok(value) } else { Err(TOO_LARGE) };
        let refused = |why: &'static str| reason(&text, why);
        match self.kind {
            Kind::Text if whitespace == Whitespace::Collapse => budget.legible(&text).ok_or(None),
            Kind::Text | Kind::Html => budget.verbatim(&text).ok_or(None),
            Kind::Number => number(budget, number::parse(&text, self.decimal).map_err(refused)?),
            Kind::Integer => number(budget, whole(number::parse(&text, self.decimal).map_err(refused)?)?),
            // An element without text is true because it is present.
            Kind::Boolean => {
                let value =
                    self.truth.of(&text).ok_or(Some("it is none of the texts that are true or false"))?;
                number(budget, value.into())
            }
            Kind::Date => {
                let date = self.date.parse(&text).ok_or_else(|| refused("it is no date that is known"))?;
                budget.legible(&date).ok_or(TOO_LARGE)
            }
            Kind::Url => {
                let url = base.resolve(&text).ok_or_else(|| refused("it is no URL"))?;
                budget.legible(&url).ok_or(TOO_LARGE)
            }
            Kind::Json => {
                let value = json::parse(&text).map_err(|_| refused("it is no JSON"))?;
                budget.json(&value).ok_or(TOO_LARGE)
            }
        }
    }

    /// Converts a JSON value. A value that is of the right type already stays unchanged; objects and lists always do.
    fn of_json(&self, value: &Value, base: &Base<'_>, budget: &mut Budget) -> Result<Value, Refusal> {
        let is_plain = self.regex.is_none();
        let as_it_is = |budget: &mut Budget, value: &Value| budget.json(value).ok_or(TOO_LARGE);
        let number = match (value, self.kind) {
            (Value::Null, _) => return Err(None),
            (Value::Array(_) | Value::Object(_), _) => return as_it_is(budget, value),
            (_, Kind::Json) | (Value::Bool(_), Kind::Boolean) if is_plain => return as_it_is(budget, value),
            (Value::Number(_), Kind::Number | Kind::Integer) if is_plain => Some(value.clone()),
            (Value::String(text), Kind::Number | Kind::Integer) if is_plain && self.decimal != Some(',') => {
                number::plain(text.trim())
            }
            _ => None,
        };
        // Text from programs is kept exactly.
        let whitespace = self.whitespace.unwrap_or(Whitespace::Keep);
        match (number, value) {
            (Some(number), _) if self.kind == Kind::Integer => as_it_is(budget, &whole(number)?),
            (Some(number), _) => as_it_is(budget, &number),
            (None, Value::String(text)) => self.of_text(text, whitespace, base, budget),
            (None, other) => self.of_text(&other.to_string(), whitespace, base, budget),
        }
    }

    /// Whether white space is significant in the input.
    fn is_verbatim(&self) -> bool {
        matches!(self.kind, Kind::Html | Kind::Json)
    }
}

/// Returns the reason, unless nothing was found.
pub(crate) fn reason(text: &str, why: &'static str) -> Refusal {
    (!text.trim().is_empty()).then_some(why)
}

fn whole(number: Value) -> Result<Value, Refusal> {
    number::whole(&number).ok_or(Some("it is not whole"))
}

/// Returns the lines of a text without superfluous white space, with one empty line in place of several.
fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut gap = "";
    for line in text.lines() {
        let line = legible(line, usize::MAX);
        if line.is_empty() {
            gap = if out.is_empty() { "" } else { "\n\n" };
        } else {
            out.push_str(gap);
            out.push_str(&line);
            gap = "\n";
        }
    }
    out
}

/// Maximum size of JSON that the steps of `transform` begin with, in bytes.
const MAX_START: usize = 8 << 20;

/// Approximate size of a number as JSON.
const NUMBER: usize = 8;

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use serde_json::json;
    use trawl_common::settings::Urls;

    use super::*;

    fn of(kind: Kind, raw: Found<'_>) -> Option<Value> {
        let (url, urls) = ("https://example.com/dir/".parse().unwrap(), Urls::default());
        let base = Base::new(None, &url, &urls, UTF_8);
        Convert { kind, ..Convert::default() }.value(&raw, &base, &mut Budget::new(1 << 20)).ok()
    }

    /// Converts a text for a field with this key, or returns the reason why it cannot.
    fn with(convert: Convert, raw: Found<'_>) -> Result<Value, Refusal> {
        let (url, urls) = ("https://example.com/dir/".parse().unwrap(), Urls::default());
        convert.value(&raw, &Base::new(None, &url, &urls, UTF_8), &mut Budget::new(1 << 20))
    }

    fn of_text(kind: Kind, text: &str) -> Option<Value> {
        of(kind, Found::text(text))
    }

    fn of_json(kind: Kind, value: Value) -> Option<Value> {
        of(kind, Found::Json(Cow::Owned(value)))
    }

    #[test]
    fn texts_become_what_the_field_is() {
        for (kind, text, value) in [
            (Kind::Text, " a \n b ", json!("a b")),
            (Kind::Number, "1.234,50 €", json!(1234.5)),
            (Kind::Integer, "1,234 pages", json!(1234)),
            (Kind::Boolean, " Yes ", json!(true)),
            (Kind::Boolean, "", json!(true)),
            (Kind::Boolean, "off", json!(false)),
            (Kind::Boolean, "In  Stock", json!(true)),
            (Kind::Boolean, "https://schema.org/InStock", json!(true)),
            (Kind::Boolean, "http://schema.org/SoldOut", json!(false)),
            (Kind::Boolean, "sold out", json!(false)),
            (Kind::Date, "2024-05-01", json!("2024-05-01")),
            (Kind::Url, " ../x?utm_source=y#z ", json!("https://example.com/x")),
            (Kind::Url, "mailto:a@b.example", json!("mailto:a@b.example")),
            (Kind::Html, "<p>\n</p>", json!("<p>\n</p>")),
            (Kind::Json, r#"{"a": [1, " b "]}"#, json!({"a": [1, " b "]})),
        ] {
            assert_eq!(of_text(kind, text), Some(value), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_no_value() {
        for (kind, text) in [
            (Kind::Text, "\n"),
            (Kind::Number, "free"),
            (Kind::Integer, "1.5"),
            (Kind::Boolean, "maybe"),
            (Kind::Date, "soon"),
            (Kind::Url, "http://["),
            (Kind::Url, "http://user:secret@example.com/"),
            (Kind::Url, " "),
            (Kind::Json, "{"),
        ] {
            assert_eq!(of_text(kind, text), None, "{text}");
        }
    }

    #[test]
    fn json_stays_what_it_is_where_it_fits() {
        for (kind, found, value) in [
            (Kind::Text, json!(1.50), json!("1.5")),
            (Kind::Text, json!(true), json!("true")),
            (Kind::Text, json!("Para 1\n\nPara\t2 "), json!("Para 1\n\nPara\t2 ")),
            (Kind::Json, json!(["a\nb"]), json!(["a\nb"])),
            (Kind::Json, json!({"price": 1, "price ": 2}), json!({"price": 1, "price ": 2})),
            (Kind::Text, json!({"a": 1}), json!({"a": 1})),
            (Kind::Number, json!("3.125"), json!(3.125)),
            (Kind::Number, json!("EUR 3,50"), json!(3.5)),
            (Kind::Number, json!(7), json!(7)),
            (Kind::Integer, json!(7.0), json!(7)),
            (Kind::Boolean, json!(false), json!(false)),
            (Kind::Boolean, json!(1), json!(true)),
            (Kind::Json, json!("1"), json!("1")),
            (Kind::Url, json!("x"), json!("https://example.com/dir/x")),
        ] {
            assert_eq!(of_json(kind, found.clone()), Some(value), "{found} as {kind:?}");
        }
        assert_eq!(of_json(Kind::Integer, json!(7.5)), None);
        assert_eq!(of_json(Kind::Json, Value::Null), None);
    }

    #[test]
    fn a_pattern_keeps_its_first_group_or_all_that_it_matches() {
        let (url, urls) = ("https://example.com/".parse().unwrap(), Urls::default());
        let base = Base::new(None, &url, &urls, UTF_8);
        for (pattern, value) in
            [(r"Price: (\S+)", Some(json!("3"))), (r"\w+:", Some(json!("Price:"))), ("x", None)]
        {
            let convert = Convert { regex: Some(Regex::new(pattern).unwrap()), ..Convert::default() };
            assert_eq!(
                convert.value(&Found::text("Price:\n  3 €"), &base, &mut Budget::new(99)).ok(),
                value,
                "{pattern}"
            );
        }
    }
    #[test]
    fn what_is_refused_says_why() {
        for (kind, text, reason) in [
            (Kind::Number, "free", Some("it has no digit")),
            (Kind::Integer, "1.5", Some("it is not whole")),
            (Kind::Boolean, "maybe", Some("it is none of the texts that are true or false")),
            (Kind::Date, "soon", Some("it is no date that is known")),
            (Kind::Url, "http://[", Some("it is no URL")),
            (Kind::Json, "{", Some("it is no JSON")),
            (Kind::Text, " ", None),
            (Kind::Number, " ", None),
        ] {
            assert_eq!(
                with(Convert { kind, ..Convert::default() }, Found::text(text)),
                Err(reason),
                "{text}"
            );
        }
    }

    #[test]
    fn white_space_is_as_the_field_says() {
        let text = " a  b\r\n\tc\n\n\n d ";
        for (whitespace, value) in [
            (None, "a b c d"),
            (Some(Whitespace::Collapse), "a b c d"),
            (Some(Whitespace::Lines), "a b\nc\n\nd"),
            (Some(Whitespace::Keep), text),
        ] {
            let convert = || Convert { whitespace, ..Convert::default() };
            assert_eq!(with(convert(), Found::text(text)), Ok(json!(value)));
            let of_json = if whitespace.is_none() { text } else { value };
            assert_eq!(with(convert(), Found::Json(Cow::Owned(json!(text)))), Ok(json!(of_json)));
        }
    }

    #[test]
    fn a_decimal_comma_holds_in_json_too() {
        let convert = || Convert { kind: Kind::Number, decimal: Some(','), ..Convert::default() };
        assert_eq!(with(convert(), Found::Json(Cow::Owned(json!("1.234")))), Ok(json!(1234)));
        assert_eq!(with(convert(), Found::Json(Cow::Owned(json!(1.234)))), Ok(json!(1.234)));
    }
}
