//! Extracts fields from a response.

use std::borrow::Cow;

use serde_json::{Map, Value};
use trawl_common::frontier::outcome::{Class, Failure};
use trawl_common::spider::Required;
use trawl_common::text::printable;

use crate::context::{Context, Within};
use crate::document::found::Found;
use crate::document::json::{Path, parts};
use crate::extraction::{Extraction, Missing, Unfit};
use crate::jmespath::Unmet;
use crate::plan::{Each, Field, Format, Source, splits};
use crate::values::budget::Budget;
use crate::values::table;
use crate::values::transform::On;

/// Maximum number of bytes shown of a value that does not fit.
const MAX_SHOWN_BYTES: usize = 100;

/// Maximum size of the texts that steps look at together, in bytes.
const MAX_STARTS: usize = 8 << 20;

const TOO_LONG: &str = "it is longer than a text may be";

type FoundAll<'a> = Box<dyn Iterator<Item = Found<'a>> + 'a>;

impl Field {
    /// Returns the field's value: null if the response has none, or if the field does not apply to its format. Required
    /// fields without a value, and values that do not fit, are recorded in `extraction`.
    pub(crate) fn value<'a>(
        &'a self,
        context: &'a Context<'a>,
        within: Within<'a>,
        budget: &mut Budget,
        extraction: &mut Extraction,
    ) -> Result<Value, Failure> {
        let is_there = match self.source.format() {
            None => true,
            Some(Format::Json) => context.json.is_some() || matches!(within, Within::Json(_)),
            Some(Format::Html) => context.json.is_none(),
        };
        if !is_there {
            return Ok(Value::Null);
        }
        let mut values = match &self.source {
            Source::Each(each, fields) => self.objects(each, fields, context, within, budget, extraction)?,
            source => self.values(source, context, within, budget, extraction)?,
        };
        let is_required = self.required != Required::No && self.default.is_none();
        if is_required {
            extraction.look(&self.path, !values.is_empty());
        }
        if values.is_empty() {
            if is_required && extraction.missing.iter().all(|other| other.field != self.path) {
                extraction.missing.push(Missing { field: self.path.clone(), required: self.required });
            }
            let none = if self.list { Value::Array(Vec::new()) } else { Value::Null };
            return Ok(self.default.clone().unwrap_or(none));
        }
        Ok(if self.list { values.into() } else { values.swap_remove(0) })
    }

    fn values<'a>(
        &'a self,
        source: &'a Source,
        context: &'a Context<'a>,
        within: Within<'a>,
        budget: &mut Budget,
        extraction: &mut Extraction,
    ) -> Result<Vec<Value>, Failure> {
        if !self.transform.is_empty() {
            return self.transformed(source, context, within, budget, extraction);
        }
        let mut values = Vec::new();
        for raw in source.raws(context, within, splits(self.convert.kind))? {
            context.goes_on()?;
            match self.convert.value(&raw, context.base, budget) {
                Ok(value) => {
                    values.push(value);
                    if budget.take_cut() {
                        self.note(&raw.shown(), TOO_LONG, true, extraction, Vec::new);
                    }
                }
                Err(Some(reason)) => self.note(&raw.shown(), reason, false, extraction, Vec::new),
                Err(None) => {}
            }
            if budget.is_full() || !self.list && !values.is_empty() {
                break;
            }
        }
        Ok(values)
    }

    /// Returns the values after the steps of `transform`.
    fn transformed<'a>(
        &'a self,
        source: &'a Source,
        context: &'a Context<'a>,
        within: Within<'a>,
        budget: &mut Budget,
        extraction: &mut Extraction,
    ) -> Result<Vec<Value>, Failure> {
        let is_for_all = self.transform.is_for_all();
        let (mut values, mut start, mut is_json) = (Vec::new(), Vec::new(), false);
        let mut bytes_left = MAX_STARTS;
        for raw in source.raws(context, within, splits(self.convert.kind))? {
            context.goes_on()?;
            is_json = matches!(raw, Found::Json(_));
            start.extend(self.convert.start(&raw));
            if is_for_all {
                let bytes = start.last().map_or(0, |value| 1 + value.as_str().map_or(0, str::len));
                match usize::checked_sub(bytes_left, bytes) {
                    Some(left) => bytes_left = left,
                    None => break,
                }
                continue;
            }
            self.run(&start, is_json, context, budget, extraction, &mut values);
            start.clear();
            if budget.is_full() || !self.list && !values.is_empty() {
                break;
            }
        }
        if is_for_all {
            self.run(&start, is_json, context, budget, extraction, &mut values);
        }
        Ok(values)
    }

    /// Adds what the steps of `transform` make of these values.
    fn run(
        &self,
        start: &[Value],
        is_json: bool,
        context: &Context<'_>,
        budget: &mut Budget,
        extraction: &mut Extraction,
        values: &mut Vec<Value>,
    ) {
        let on = On { base: context.base, given_up: context.given_up, is_json };
        let done = self.transform.run(start, &on);
        let (mut refused, mut is_cut) = (done.refused, done.is_cut);
        for value in &done.values {
            match self.convert.transformed(value, is_json, context.base, budget) {
                Ok(value) => values.push(value),
                Err(reason) => refused = refused.or(reason),
            }
            is_cut |= budget.take_cut();
            if budget.is_full() || !self.list && !values.is_empty() {
                break;
            }
        }
        let trace = || self.transform.trace(start, &on);
        let found =
            || start.iter().take(3).map(|value| Found::Json(Cow::Borrowed(value)).shown().into_owned());
        if let Some(reason) = refused.or(is_cut.then_some(TOO_LONG)) {
            self.note(&found().collect::<Vec<_>>().join(", "), reason, refused.is_none(), extraction, trace);
        }
    }

    /// Records a value that is not kept as it was found, with the steps that it took; only the first one of each field.
    fn note(
        &self,
        value: &str,
        reason: &'static str,
        is_cut: bool,
        extraction: &mut Extraction,
        steps: impl FnOnce() -> Vec<String>,
    ) {
        if extraction.unfit.iter().all(|other| other.field != self.path) {
            let (field, value, steps) = (self.path.clone(), printable(value, MAX_SHOWN_BYTES), steps());
            extraction.unfit.push(Unfit { field, value, reason, steps, is_cut });
        }
    }

    fn objects<'a>(
        &'a self,
        each: &'a Each,
        fields: &'a [Field],
        context: &'a Context<'a>,
        within: Within<'a>,
        budget: &mut Budget,
        extraction: &mut Extraction,
    ) -> Result<Vec<Value>, Failure> {
        let mut objects = Vec::new();
        for within in each.matches(context, within) {
            context.goes_on()?;
            let mut object = Map::new();
            for field in fields {
                object.insert(field.name.clone(), field.value(context, within, budget, extraction)?);
                budget.take(field.name.len() + "\"\":null,".len());
            }
            objects.push(Value::Object(object));
            if budget.is_full() || !self.list {
                break;
            }
        }
        Ok(objects)
    }
}

impl Each {
    /// Returns the matches of `each`, in order.
    pub(crate) fn matches<'a>(
        &'a self,
        context: &'a Context<'a>,
        within: Within<'a>,
    ) -> Box<dyn Iterator<Item = Within<'a>> + 'a> {
        match self {
            Self::Tree(query) => {
                let elements =
                    context.element(within).into_iter().flat_map(|scope| query.elements(scope, context));
                Box::new(elements.map(Within::Element))
            }
            Self::Json(path) => {
                let values = context.value(within).into_iter().flat_map(|value| path.find(value));
                // For a path that leads to a list, the elements of the list are the matches.
                Box::new(values.flat_map(|value| parts(value, true)).map(Within::Json))
            }
            Self::Script(number, path) => {
                let values = context.scripts.get(*number).into_iter().flatten();
                let found = values.flat_map(|value| Path::reached(path.as_ref(), value));
                Box::new(found.flat_map(|value| parts(value, true)).map(Within::Json))
            }
        }
    }
}

impl Source {
    /// Returns the raw values in the order of the response; elements of a JSON list one by one if it `splits`.
    fn raws<'a>(
        &'a self,
        context: &'a Context<'a>,
        within: Within<'a>,
        splits: bool,
    ) -> Result<FoundAll<'a>, Failure> {
        let element = context.element(within);
        Ok(match self {
            Self::Tree(query) => Box::new(element.into_iter().flat_map(|scope| query.raws(scope, context))),
            Self::Streamed(number) => {
                Box::new(context.page.found[*number].iter().map(|text| Found::text(text)))
            }
            Self::Json(path) => {
                let found = context.value(within).into_iter().flat_map(|value| path.find(value));
                Box::new(found.flat_map(move |value| parts(value, splits)).map(borrowed))
            }
            Self::JmesPath(expression) => {
                let found = context.value(within).map(|value| expression.find(value));
                if let Some(Err(Unmet::TooMuch)) = found {
                    return Err(Failure::new(Class::Parse, "a JMESPath expression makes too many values"));
                }
                let found = found.and_then(Result::ok).unwrap_or_default();
                let parts = match found {
                    Value::Array(parts) if splits => parts,
                    one => vec![one],
                };
                Box::new(parts.into_iter().map(owned))
            }
            Self::Script(number, path) => {
                let values = context.scripts.get(*number).into_iter().flatten();
                Box::new(values.flat_map(move |value| reached(value, path.as_ref(), splits)).map(borrowed))
            }
            Self::Header(name) => Box::new(context.response.headers.all(name).map(Found::text)),
            Self::Meta(number) => {
                let metas = context.page.meta.named.iter().filter(move |(other, _)| other == number);
                Box::new(metas.map(|(_, content)| Found::text(content)))
            }
            Self::JsonLd(number, path) => {
                let objects = context.json_ld.get(*number).into_iter().flatten();
                Box::new(objects.flat_map(move |object| reached(object, path.as_ref(), splits)).map(borrowed))
            }
            Self::Microdata(name, path) => {
                let items =
                    element.map(|scope| context.microdata.items(scope, name, context.base)).transpose()?;
                let values = items
                    .into_iter()
                    .flatten()
                    .flat_map(move |item| reached(&item, path.as_ref(), splits).cloned().collect::<Vec<_>>());
                Box::new(values.map(owned))
            }
            Self::Table(query) => {
                let tables = element.into_iter().flat_map(|scope| query.elements(scope, context));
                Box::new(tables.flat_map(table::rows).map(owned))
            }
            Self::Carried(name) => {
                let value = context.came.and_then(|came| came.values.get(name));
                Box::new(value.into_iter().flat_map(move |value| parts(value, splits)).map(borrowed))
            }
            Self::Page(field) => Box::new(context.own(*field).into_iter()),
            Self::Each(..) => Box::new(std::iter::empty()),
        })
    }
}

/// Returns an object, or the values that a path finds in it.
fn reached<'a>(
    object: &'a Value,
    path: Option<&Path>,
    splits: bool,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    Path::reached(path, object).into_iter().flat_map(move |value| parts(value, splits))
}

fn borrowed(value: &Value) -> Found<'_> {
    Found::Json(Cow::Borrowed(value))
}

fn owned<'a>(value: Value) -> Found<'a> {
    Found::Json(Cow::Owned(value))
}
