//! From what was found to a value of a field's kind.

use std::borrow::Cow;

use regex::Regex;
use serde_json::Value;
use trawl_common::spider::Kind;
use trawl_common::text::legible;

use crate::document::base::Base;
use crate::document::found::{Found, outer_html, visible_text};
use crate::document::json;
use crate::values::budget::Budget;
use crate::values::date;
use crate::values::number;

/// What a field makes of each value that was found.
#[derive(Debug, Default)]
pub(crate) struct Convert {
    pub(crate) kind: Kind,
    pub(crate) regex: Option<Regex>,
    pub(crate) format: Option<String>,
}

impl Convert {
    /// The value; none if it does not fit the kind, or not into the budget.
    pub(crate) fn value(&self, raw: &Found<'_>, base: &Base<'_>, budget: &mut Budget) -> Option<Value> {
        match raw {
            Found::Json(value) => self.of_json(value, base, budget),
            Found::Text(text) => self.of_text(text, base, budget),
            Found::Element(element) if self.kind == Kind::Html => {
                self.of_text(&outer_html(*element), base, budget)
            }
            Found::Element(element) => self.of_text(&visible_text(*element), base, budget),
        }
    }

    fn of_text(&self, text: &str, base: &Base<'_>, budget: &mut Budget) -> Option<Value> {
        let mut text = Cow::Borrowed(text);
        if let Some(regex) = &self.regex {
            if !self.is_verbatim() {
                text = legible(&text, usize::MAX).into();
            }
            let found = regex.captures(&text)?;
            text = found.get(1).or(found.get(0))?.as_str().to_owned().into();
        }
        match self.kind {
            Kind::Text => budget.legible(&text),
            Kind::Html => budget.html(&text),
            Kind::Number => number::parse(&text).filter(|_| budget.take(NUMBER)),
            Kind::Integer => whole(&number::parse(&text)?, budget),
            Kind::Boolean => boolean(text.trim()).filter(|_| budget.take(NUMBER)),
            Kind::Date => budget.legible(&date::parse(&text, self.format.as_deref())?),
            Kind::Url => budget.legible(&base.resolve(&text)?),
            Kind::Json => budget.json(&json::parse(text.as_bytes()).ok()?),
        }
    }

    /// A value of JSON that is of the kind already stays what it is; objects and lists do in any case.
    fn of_json(&self, value: &Value, base: &Base<'_>, budget: &mut Budget) -> Option<Value> {
        let is_plain = self.regex.is_none();
        let number = match (value, self.kind) {
            (Value::Null, _) => return None,
            (Value::Array(_) | Value::Object(_), _) => return budget.json(value),
            (_, Kind::Json) | (Value::Bool(_), Kind::Boolean) if is_plain => return budget.json(value),
            (Value::Number(_), Kind::Number) if is_plain => Some(value.clone()),
            (Value::Number(_), Kind::Integer) if is_plain => return whole(value, budget),
            (Value::String(text), Kind::Number | Kind::Integer) if is_plain => number::plain(text.trim()),
            _ => None,
        };
        match (number, value) {
            (Some(number), _) if self.kind == Kind::Integer => whole(&number, budget),
            (Some(number), _) => budget.json(&number),
            (None, Value::String(text)) => self.of_text(text, base, budget),
            (None, other) => self.of_text(&other.to_string(), base, budget),
        }
    }

    /// Whether white space means something in what is read.
    fn is_verbatim(&self) -> bool {
        matches!(self.kind, Kind::Html | Kind::Json)
    }
}

fn whole(number: &Value, budget: &mut Budget) -> Option<Value> {
    number::whole(number).filter(|_| budget.take(NUMBER))
}

/// About what a number takes as JSON.
const NUMBER: usize = 8;

/// Answers, and whether something is to be had, as shops and schema.org (`https://schema.org/InStock`) say it.
fn boolean(text: &str) -> Option<Value> {
    const TRUE: &[&str] = &["", "yes", "true", "on", "1", "in stock", "instock", "available"];
    const FALSE: &[&str] = &[
        "no",
        "false",
        "off",
        "0",
        "out of stock",
        "outofstock",
        "sold out",
        "soldout",
        "not available",
        "unavailable",
        "discontinued",
    ];
    let (_, name) = text.split_once("schema.org/").unwrap_or(("", text));
    let name: Vec<&str> = name.split_ascii_whitespace().collect();
    let name = name.join(" ");
    let is_one_of = |words: &[&str]| words.iter().any(|word| name.eq_ignore_ascii_case(word));
    if is_one_of(TRUE) { Some(Value::Bool(true)) } else { is_one_of(FALSE).then_some(Value::Bool(false)) }
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use serde_json::json;
    use trawl_common::settings::Urls;

    use super::*;

    fn of(kind: Kind, raw: Found<'_>) -> Option<Value> {
        let (url, urls) = ("https://example.com/dir/".parse().unwrap(), Urls::default());
        let base = Base::of(None, &url, &urls, UTF_8);
        Convert { kind, ..Convert::default() }.value(&raw, &base, &mut Budget::of(1 << 20))
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
            (Kind::Json, r#"{"a": [1, " b "]}"#, json!({"a": [1, "b"]})),
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
        let base = Base::of(None, &url, &urls, UTF_8);
        for (pattern, value) in
            [(r"Price: (\S+)", Some(json!("3"))), (r"\w+:", Some(json!("Price:"))), ("x", None)]
        {
            let convert = Convert { regex: Some(Regex::new(pattern).unwrap()), ..Convert::default() };
            assert_eq!(
                convert.value(&Found::text("Price:\n  3 €"), &base, &mut Budget::of(99)),
                value,
                "{pattern}"
            );
        }
    }
}
