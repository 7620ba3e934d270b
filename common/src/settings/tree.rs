//! Settings as a tree of TOML, which is read so that each mistake is known by its path and its place.

use std::fmt::{self, Display};
use std::ops::Range;

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Settings;
use crate::nearest::nearest;
use crate::text::printable;
use crate::toml_value;

/// Reads the settings in a tree; returns the first mistake if there is one.
pub(super) fn read(tree: &DeTable<'_>) -> Result<Settings, Fault> {
    Settings::deserialize(MapAccessDeserializer::new(Entries { rest: tree.iter(), value: None }))
}

/// Merges `layer` into `tree`: values of `layer` override, tables are merged.
pub(super) fn lay<'a>(tree: &mut DeTable<'a>, layer: &DeTable<'a>) {
    for (key, value) in layer {
        match (tree.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value.get_ref()) {
            (Some(DeValue::Table(below)), DeValue::Table(above)) => lay(below, above),
            _ => drop(tree.insert(key.clone(), value.clone())),
        }
    }
}

/// One step into a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// Returns the value at the end of a path, with the span of its key if it has one.
pub(super) fn find<'t, 'a>(
    tree: &'t DeTable<'a>,
    path: &[Step],
) -> Option<(Range<usize>, &'t Spanned<DeValue<'a>>)> {
    let (Step::Key(first), rest) = path.split_first()? else { return None };
    let (key, value) = tree.get_key_value(first.as_str())?;
    descend(key.span(), value, rest)
}

fn descend<'t, 'a>(
    key: Range<usize>,
    value: &'t Spanned<DeValue<'a>>,
    path: &[Step],
) -> Option<(Range<usize>, &'t Spanned<DeValue<'a>>)> {
    match (path.split_first(), value.get_ref()) {
        (None, _) => Some((key, value)),
        (Some(_), DeValue::Table(table)) => find(table, path),
        (Some((Step::Index(at), rest)), DeValue::Array(values)) => {
            let value = values.get(*at)?;
            descend(value.span(), value, rest)
        }
        _ => None,
    }
}

/// Removes the value at the end of a path. Returns whether it was there.
pub(super) fn remove(tree: &mut DeTable<'_>, path: &[Step]) -> bool {
    match path {
        [Step::Key(last)] => tree.remove(last.as_str()).is_some(),
        [Step::Key(first), rest @ ..] => {
            tree.get_mut(first.as_str()).is_some_and(|value| remove_within(value.get_mut(), rest))
        }
        _ => false,
    }
}

fn remove_within(value: &mut DeValue<'_>, path: &[Step]) -> bool {
    match (value, path) {
        (DeValue::Table(table), path) => remove(table, path),
        (DeValue::Array(values), [Step::Index(at)]) if *at < values.len() => {
            let others = values.iter().enumerate().filter(|(other, _)| other != at);
            *values = others.map(|(_, value)| value.clone()).collect();
            true
        }
        (DeValue::Array(values), [Step::Index(at), rest @ ..]) => {
            values.get_mut(*at).is_some_and(|value| remove_within(value.get_mut(), rest))
        }
        _ => false,
    }
}

/// A mistake and its location.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) path: Vec<Step>,
    /// Its span in the text.
    pub(super) span: Range<usize>,
    pub(super) what: What,
}

/// The kind of a mistake.
#[derive(Debug)]
pub(super) enum What {
    /// There is no such key; with a suggestion.
    NoKey(String),
    /// The value has another type than expected.
    Type(String),
    /// Something else.
    Value(String),
}

impl Fault {
    fn new(what: What) -> Self {
        Self { path: Vec::new(), span: NOWHERE, what }
    }

    /// Returns the fault with `step` put before its path; `value` is the value at the end of the step.
    fn within(mut self, step: Step, value: &Spanned<DeValue<'_>>) -> Self {
        if self.span == NOWHERE {
            let found = descend(value.span(), value, &self.path);
            self.span = found.map_or(value.span(), |(key, value)| match self.what {
                What::NoKey(_) => key,
                _ => value.span(),
            });
        }
        self.path.insert(0, step);
        self
    }
}

/// The span of something with no known position.
const NOWHERE: Range<usize> = usize::MAX..usize::MAX;

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.path.iter().filter_map(|step| match step {
            Step::Key(key) => Some(printable(key, 64)),
            Step::Index(_) => None,
        });
        let path = keys.collect::<Vec<_>>().join(".");
        match &self.what {
            What::NoKey(hint) => f.write_str(&toml_value::no_key(&path, hint)),
            What::Type(what) | What::Value(what) => write!(f, "{path}: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: Display>(what: T) -> Self {
        Self::new(What::Value(what.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Str(_) => "a text",
            Unexpected::Signed(_) | Unexpected::Unsigned(_) => "a whole number",
            Unexpected::Float(_) => "a number",
            Unexpected::Bool(_) => "true or false",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a table",
            _ => "that",
        };
        Self::new(What::Type(toml_value::not_a(named(wanted), found)))
    }

    fn invalid_value(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let range = match wanted.to_string().as_str() {
            "u8" => "must be 0 to 255".to_owned(),
            "u16" => "must be 0 to 65535".to_owned(),
            "u32" => "must be 0 to 4294967295".to_owned(),
            "u64" | "usize" => "must be 0 or more".to_owned(),
            "a nonzero u64" => "must be 1 or more".to_owned(),
            other => format!("{other} is wanted"),
        };
        Self::new(What::Value(range))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(What::Value(toml_value::no_choice(name, known.iter().copied())))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        let hint = nearest(name, known.iter().copied());
        Self { path: vec![Step::Key(name.to_owned())], ..Self::new(What::NoKey(hint)) }
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(What::Value(format!("`{name}` is missing")))
    }
}

/// Returns the name of the expected type for people.
fn named(wanted: &dyn Expected) -> String {
    match wanted.to_string().as_str() {
        "a string" => "a text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list in brackets".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" | "a nonzero u64" => "a whole number".to_owned(),
        other if other.starts_with("struct ") || other == "a map" => "a table".to_owned(),
        other => other.to_owned(),
    }
}

/// One value of a tree.
struct Node<'t, 'a>(&'t Spanned<DeValue<'a>>);

impl<'de> Deserializer<'de> for Node<'_, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.get_ref() {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Integer(number) => match toml_value::integer(number) {
                Some(number) => visitor.visit_i64(number),
                None => Err(Fault::custom("is too large")),
            },
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => visitor.visit_f64(number),
                Err(_) => Err(Fault::custom("is no number")),
            },
            DeValue::Boolean(flag) => visitor.visit_bool(*flag),
            DeValue::Datetime(date) => visitor.visit_string(date.to_string()),
            DeValue::Array(values) => visitor.visit_seq(Values { rest: values.iter().enumerate() }),
            DeValue::Table(table) => visitor.visit_map(Entries { rest: table.iter(), value: None }),
        }
    }

    /// A value in TOML is always present, because TOML has no null.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0.get_ref() {
            DeValue::String(name) => visitor.visit_enum(name.as_ref().into_deserializer()),
            _ => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

type Pair<'t, 'a> = (&'t Spanned<std::borrow::Cow<'a, str>>, &'t Spanned<DeValue<'a>>);

/// The entries of a table.
struct Entries<'t, 'a, I: Iterator<Item = Pair<'t, 'a>>> {
    rest: I,
    value: Option<Pair<'t, 'a>>,
}

impl<'de, 't, 'a: 't, I: Iterator<Item = Pair<'t, 'a>>> MapAccess<'de> for Entries<'t, 'a, I> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.value = self.rest.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        let name: &str = key.get_ref().as_ref();
        let read = seed.deserialize(IntoDeserializer::<Fault>::into_deserializer(name));
        read.map(Some).map_err(|fault| Fault { span: key.span(), ..fault })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (key, value) = self.value.take().ok_or_else(|| Fault::custom("a key comes first"))?;
        let step = || Step::Key(key.get_ref().to_string());
        seed.deserialize(Node(value)).map_err(|fault| fault.within(step(), value))
    }
}

/// The values of a list.
struct Values<'t, 'a, I: Iterator<Item = (usize, &'t Spanned<DeValue<'a>>)>>
where
    'a: 't,
{
    rest: I,
}

impl<'de, 't, 'a, I: Iterator<Item = (usize, &'t Spanned<DeValue<'a>>)>> SeqAccess<'de>
    for Values<'t, 'a, I>
{
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((at, value)) = self.rest.next() else { return Ok(None) };
        seed.deserialize(Node(value)).map(Some).map_err(|fault| fault.within(Step::Index(at), value))
    }
}
