//! Arguments of a spider: named values that are given when a crawl is started.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};
use crate::mistake::Place;
use crate::text::printable;

/// Maximum length of a name, in bytes.
const MAX_NAME: usize = 64;

/// Maximum length of a value, in bytes: about that of a URL.
const MAX_VALUE: usize = 2048;

/// Maximum length of a text that is repeated in an error.
const MAX_SHOWN: usize = 64;

/// The name of an argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArgumentName(String);

/// The value of an argument: one line of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArgumentValue(String);

/// One argument, written as `NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: ArgumentName,
    /// Its value.
    pub value: ArgumentValue,
}

/// An argument as the file of a spider declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The place of the declaration.
    pub place: Place,
    /// Its value; `None` if it must be given when a crawl is started.
    pub value: Option<String>,
    /// A description for people.
    pub help: Option<String>,
}

/// The arguments that a file declares, by name.
pub type Declarations = BTreeMap<String, Declaration>;

/// The error for a text that is no argument, or no name or value of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArgument {
    /// There is no `=` in it.
    #[error("`{0}` is no argument: write NAME=VALUE")]
    NoValue(String),
    /// The name has characters that names must not have, or is too long.
    #[error("`{0}` is not the name of an argument: use 1 to {MAX_NAME} of a-z, A-Z, 0-9, `_` and `-`")]
    Name(String),
    /// The value is too long.
    #[error("a value of an argument has at most {MAX_VALUE} bytes; this one has {0}")]
    TooLong(usize),
    /// The value has line breaks or other control characters.
    #[error("a value of an argument is one line of text, without control characters")]
    Control,
    /// The argument is given twice.
    #[error("the argument `{0}` is given twice")]
    Twice(ArgumentName),
}

impl FromStr for ArgumentName {
    type Err = InvalidArgument;
    fn from_str(text: &str) -> Result<Self, InvalidArgument> {
        let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
        match is_plain && (1..=MAX_NAME).contains(&text.len()) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidArgument::Name(printable(text, MAX_SHOWN))),
        }
    }
}

impl FromStr for ArgumentValue {
    type Err = InvalidArgument;
    fn from_str(text: &str) -> Result<Self, InvalidArgument> {
        if text.len() > MAX_VALUE {
            Err(InvalidArgument::TooLong(text.len()))
        } else if text.chars().any(char::is_control) {
            Err(InvalidArgument::Control)
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl FromStr for Argument {
    type Err = InvalidArgument;
    fn from_str(text: &str) -> Result<Self, InvalidArgument> {
        let no_value = || InvalidArgument::NoValue(printable(text, MAX_SHOWN));
        let (name, value) = text.split_once('=').ok_or_else(no_value)?;
        Ok(Self { name: name.parse()?, value: value.parse()? })
    }
}

/// Allows looking up a name by its text.
impl Borrow<str> for ArgumentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

text!(ArgumentName, ArgumentValue);
as_text!(ArgumentName, ArgumentValue);

/// The arguments that a crawl is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Arguments(BTreeMap<ArgumentName, ArgumentValue>);

impl Arguments {
    /// Collects arguments. Fails if one is there twice.
    pub fn new(all: impl IntoIterator<Item = Argument>) -> Result<Self, InvalidArgument> {
        let mut arguments = BTreeMap::new();
        for Argument { name, value } in all {
            if arguments.insert(name.clone(), value).is_some() {
                return Err(InvalidArgument::Twice(name));
            }
        }
        Ok(Self(arguments))
    }

    /// Returns the arguments to which declarations give a value.
    pub(crate) fn of_declared(declared: &Declarations) -> Self {
        let value = |(name, declaration): (&String, &Declaration)| {
            Some((name.parse().ok()?, declaration.value.as_ref()?.parse().ok()?))
        };
        Self(declared.iter().filter_map(value).collect())
    }

    /// Keeps only the arguments whose name `is_such` accepts.
    #[must_use]
    pub fn only(mut self, is_such: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|name, _| is_such(name.as_str()));
        self
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&ArgumentName, &ArgumentValue)> {
        self.0.iter()
    }

    /// Returns the value of the argument `name`, if it is given.
    pub fn get(&self, name: &str) -> Option<&ArgumentValue> {
        self.0.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(text: &str) -> Result<Argument, InvalidArgument> {
        text.parse()
    }

    #[test]
    fn an_argument_is_a_name_and_all_behind_the_first_equals_sign() {
        let Argument { name, value } = argument("query=a=b&c").unwrap();
        assert_eq!((name.to_string(), value.as_str()), ("query".to_owned(), "a=b&c"));
        assert_eq!(argument("empty=").unwrap().value.as_str(), "");
    }

    #[test]
    fn what_is_no_argument_is_refused_with_the_reason() {
        assert_eq!(argument("category"), Err(InvalidArgument::NoValue("category".to_owned())));
        let long = "n".repeat(65);
        for bad in ["=x", "a b=x", "a.b=x", "ä=x", &format!("{long}=x")] {
            assert!(matches!(argument(bad), Err(InvalidArgument::Name(_))), "{bad}");
        }
        for bad in ["a=x\ny", "a=x\0", "a=\u{1b}[2J", "a=\u{85}"] {
            assert_eq!(argument(bad), Err(InvalidArgument::Control), "{bad:?}");
        }
        assert_eq!(argument(&format!("a={}", "x".repeat(2049))), Err(InvalidArgument::TooLong(2049)));
        assert!(argument(&format!("a={}", "x".repeat(2048))).is_ok());
    }

    #[test]
    fn an_argument_may_be_given_once() {
        let of = |texts: &[&str]| Arguments::new(texts.iter().map(|text| argument(text).unwrap()));
        assert_eq!(of(&["a=1", "b=2"]).unwrap().get("b").unwrap().as_str(), "2");
        assert_eq!(of(&["a=1", "a=1"]).unwrap_err().to_string(), "the argument `a` is given twice");
    }
}
