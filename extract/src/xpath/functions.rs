//! Functions (XPath 1.0, section 4), and `has-class`, which parsel has too.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use scraper::CaseSensitivity;

use super::evaluate::{At, Evaluation, Stopped};
use super::expression::Expression;
use super::nodes::NodeId;
use super::value::{Value, is_blank};
use crate::language::{MAX_ARGUMENTS, check_number};

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Boolean,
    Ceiling,
    Concat,
    Contains,
    Count,
    False,
    Floor,
    HasClass,
    Id,
    Lang,
    Last,
    LocalName,
    Name,
    NamespaceUri,
    NormalizeSpace,
    Not,
    Number,
    Position,
    Round,
    StartsWith,
    String,
    StringLength,
    Substring,
    SubstringAfter,
    SubstringBefore,
    Sum,
    Translate,
    True,
}

impl Function {
    /// All functions by name, with the numbers of arguments that each may have.
    pub(super) const ALL: [(&'static str, Self, RangeInclusive<usize>); 28] = [
        ("boolean", Self::Boolean, 1..=1),
        ("ceiling", Self::Ceiling, 1..=1),
        ("concat", Self::Concat, 2..=MAX_ARGUMENTS),
        ("contains", Self::Contains, 2..=2),
        ("count", Self::Count, 1..=1),
        ("false", Self::False, 0..=0),
        ("floor", Self::Floor, 1..=1),
        ("has-class", Self::HasClass, 1..=MAX_ARGUMENTS),
        ("id", Self::Id, 1..=1),
        ("lang", Self::Lang, 1..=1),
        ("last", Self::Last, 0..=0),
        ("local-name", Self::LocalName, 0..=1),
        ("name", Self::Name, 0..=1),
        ("namespace-uri", Self::NamespaceUri, 0..=1),
        ("normalize-space", Self::NormalizeSpace, 0..=1),
        ("not", Self::Not, 1..=1),
        ("number", Self::Number, 0..=1),
        ("position", Self::Position, 0..=0),
        ("round", Self::Round, 1..=1),
        ("starts-with", Self::StartsWith, 2..=2),
        ("string", Self::String, 0..=1),
        ("string-length", Self::StringLength, 0..=1),
        ("substring", Self::Substring, 2..=3),
        ("substring-after", Self::SubstringAfter, 2..=2),
        ("substring-before", Self::SubstringBefore, 2..=2),
        ("sum", Self::Sum, 1..=1),
        ("translate", Self::Translate, 3..=3),
        ("true", Self::True, 0..=0),
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(other, ..)| *other == name).map(|(_, function, _)| function)
    }

    /// Checks the arguments. The error says what is wrong with them.
    pub(super) fn check(self, arguments: &[Expression]) -> Result<(), String> {
        let Some((name, _, numbers)) = Self::ALL.into_iter().find(|(_, other, _)| *other == self) else {
            return Ok(());
        };
        check_number(name, &numbers, arguments.len())?;
        let is_of_nodes =
            matches!(self, Self::Count | Self::Sum | Self::LocalName | Self::Name | Self::NamespaceUri);
        if is_of_nodes && arguments.first().is_some_and(|first| !first.finds_nodes()) {
            return Err(format!("`{name}()` is for nodes"));
        }
        Ok(())
    }

    pub(super) fn is_number(self) -> bool {
        matches!(
            self,
            Self::Ceiling
                | Self::Count
                | Self::Floor
                | Self::Last
                | Self::Number
                | Self::Position
                | Self::Round
                | Self::StringLength
                | Self::Sum
        )
    }
}

impl Evaluation<'_, '_> {
    /// Calls a function, whose arguments were checked.
    pub(super) fn call(&self, function: Function, given: &[Expression], at: At) -> Result<Value, Stopped> {
        let text = |place: usize| match given.get(place) {
            Some(argument) => self.text(argument, at),
            None => self.text_of(at.node),
        };
        let number = |place: usize| match given.get(place) {
            Some(argument) => self.number(argument, at),
            None => Ok(Value::Text(self.text_of(at.node)?).to_number(self.nodes)),
        };
        let truth = || given.first().map_or(Ok(false), |argument| self.truth(argument, at));
        let found = || given.first().map_or(Ok(vec![at.node]), |argument| self.found(argument, at));
        Ok(match function {
            Function::Boolean => Value::Truth(truth()?),
            Function::Not => Value::Truth(!truth()?),
            Function::True => Value::Truth(true),
            Function::False => Value::Truth(false),
            Function::Position => Value::Number(at.position as f64),
            Function::Last => Value::Number(at.size as f64),
            Function::Count => Value::Number(found()?.len() as f64),
            Function::Sum => {
                let mut sum = 0.0;
                for node in found()? {
                    sum += Value::Text(self.text_of(node)?).to_number(self.nodes);
                }
                Value::Number(sum)
            }
            Function::Number => Value::Number(number(0)?),
            Function::Floor => Value::Number(number(0)?.floor()),
            Function::Ceiling => Value::Number(number(0)?.ceil()),
            Function::Round => Value::Number(round(number(0)?)),
            Function::String => Value::Text(text(0)?),
            Function::StringLength => Value::Number(text(0)?.chars().count() as f64),
            Function::NormalizeSpace => Value::Text(normalized(&text(0)?)),
            Function::Concat => {
                let mut whole = String::new();
                for place in 0..given.len() {
                    whole.push_str(&text(place)?);
                    whole = self.count_text(whole)?;
                }
                Value::Text(whole)
            }
            Function::Contains => Value::Truth(text(0)?.contains(&text(1)?)),
            Function::StartsWith => Value::Truth(text(0)?.starts_with(&text(1)?)),
            Function::SubstringBefore => {
                let (whole, part) = (text(0)?, text(1)?);
                Value::Text(whole.split_once(&*part).map(|(before, _)| before.to_owned()).unwrap_or_default())
            }
            Function::SubstringAfter => {
                let (whole, part) = (text(0)?, text(1)?);
                Value::Text(whole.split_once(&*part).map(|(_, after)| after.to_owned()).unwrap_or_default())
            }
            Function::Substring => {
                let length = if given.len() > 2 { Some(number(2)?) } else { None };
                Value::Text(substring(&text(0)?, number(1)?, length))
            }
            Function::Translate => Value::Text(translated(&text(0)?, &text(1)?, &text(2)?)),
            Function::Name | Function::LocalName => {
                let name = found()?.first().map(|node| self.nodes.name(*node)).unwrap_or_default();
                let local = name.rsplit(':').next().unwrap_or_default();
                Value::Text(if function == Function::Name { name } else { local }.to_owned())
            }
            // HTML has none.
            Function::NamespaceUri => Value::Text(String::new()),
            Function::Id => Value::Nodes(self.with_ids(&given[0], at)?),
            Function::Lang => Value::Truth(self.is_in_language(at.node, &text(0)?)),
            Function::HasClass => {
                let mut has_all = true;
                for place in 0..given.len() {
                    let class = text(place)?;
                    let element = self.nodes.element(at.node);
                    has_all &= element
                        .is_some_and(|element| element.has_class(&class, CaseSensitivity::CaseSensitive));
                }
                Value::Truth(has_all)
            }
        })
    }

    /// Returns the first element with each of these IDs.
    fn with_ids(&self, ids: &Expression, at: At) -> Result<Vec<NodeId>, Stopped> {
        let mut texts = Vec::new();
        match self.at(ids, at)? {
            Value::Nodes(found) => {
                for node in found {
                    texts.push(self.text_of(node)?);
                }
            }
            value => texts.push(value.to_text(self.nodes)),
        }
        let mut wanted: HashSet<&str> = texts.iter().flat_map(|text| text.split(is_blank)).collect();
        wanted.remove("");
        let mut found = Vec::new();
        for node in (0..self.nodes.len()).map(NodeId::new) {
            self.count(1)?;
            let id = self.nodes.element(node).and_then(|element| element.attr("id"));
            if id.is_some_and(|id| wanted.remove(id)) {
                found.push(node);
            }
        }
        Ok(found)
    }

    /// Whether a node is in a language, by the nearest `lang`.
    fn is_in_language(&self, node: NodeId, language: &str) -> bool {
        let mut around = std::iter::successors(Some(node), |node| self.nodes.parent(*node));
        let named = around.find_map(|node| self.nodes.element(node).and_then(|element| element.attr("lang")));
        named.is_some_and(|named| {
            let head = named.get(..language.len()).unwrap_or_default();
            head.eq_ignore_ascii_case(language)
                && matches!(named.as_bytes().get(language.len()), None | Some(b'-'))
        })
    }
}

/// Rounds to the nearest whole number, the greater of two.
fn round(number: f64) -> f64 {
    if number.is_finite() { (number + 0.5).floor() } else { number }
}

fn normalized(text: &str) -> String {
    text.split(is_blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns the characters at positions from `start` on, the first of which is 1.
fn substring(text: &str, start: f64, length: Option<f64>) -> String {
    let start = round(start);
    let end = length.map_or(f64::INFINITY, |length| start + round(length));
    let places = text.chars().zip(1_u32..);
    let kept = places.filter(|(_, place)| f64::from(*place) >= start && f64::from(*place) < end);
    kept.map(|(c, _)| c).collect()
}

fn translated(text: &str, from: &str, to: &str) -> String {
    let (mut changes, mut to) = (HashMap::new(), to.chars());
    for c in from.chars() {
        let other = to.next();
        changes.entry(c).or_insert(other);
    }
    text.chars().filter_map(|c| changes.get(&c).copied().unwrap_or(Some(c))).collect()
}
