//! Reading of expressions, shared by the languages XPath and JMESPath: characters, numbers and comparisons.

use std::ops::RangeInclusive;
use std::vec::IntoIter;

use trawl_common::nearest::nearest;
use trawl_common::text::printable;

/// Maximum length of an expression, in bytes.
const MAX_LENGTH: usize = 4096;

/// Maximum number of arguments of a function that takes any number.
pub(crate) const MAX_ARGUMENTS: usize = 100;

/// The tokens of an expression that were not read yet, each with its place.
pub(crate) struct Tokens<'a, Token> {
    text: &'a str,
    rest: IntoIter<(usize, Token)>,
}

impl<'a, Token> Tokens<'a, Token> {
    /// Cuts an expression of at most `most` tokens with `cut`. The error says what is wrong with it.
    pub(crate) fn new(
        text: &'a str,
        cut: impl FnOnce(&str) -> Result<Vec<(usize, Token)>, String>,
        most: usize,
    ) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("it is longer than {MAX_LENGTH} bytes"));
        }
        let tokens = cut(text)?;
        if tokens.len() > most {
            return Err(format!("it has more than {most} words and signs"));
        }
        Ok(Self { text, rest: tokens.into_iter() })
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> Option<Token> {
        self.rest.next().map(|(_, token)| token)
    }

    /// Returns the next token without taking it.
    pub(crate) fn peek(&self) -> Option<&Token> {
        self.rest.as_slice().first().map(|(_, token)| token)
    }

    /// Returns the token after the next one.
    pub(crate) fn second(&self) -> Option<&Token> {
        self.rest.as_slice().get(1).map(|(_, token)| token)
    }

    /// Returns the error that something else is wanted here.
    pub(crate) fn unexpected(&self, wanted: &str) -> String {
        match self.rest.as_slice().first() {
            Some((at, _)) => format!("{wanted} is wanted before `{}`", printable(&self.text[*at..], 40)),
            None => format!("{wanted} is wanted at its end"),
        }
    }

    /// Fails if there is another token.
    pub(crate) fn end(&self) -> Result<(), String> {
        if self.peek().is_some() { Err(self.unexpected("the end")) } else { Ok(()) }
    }
}

/// A comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether it holds between two numbers, which are compared exactly.
    #[expect(clippy::float_cmp, reason = "both languages compare exactly")]
    pub(crate) fn of_numbers(self, one: f64, other: f64) -> bool {
        match self {
            Self::Equal => one == other,
            Self::Unequal => one != other,
            Self::Less => one < other,
            Self::LessOrEqual => one <= other,
            Self::Greater => one > other,
            Self::GreaterOrEqual => one >= other,
        }
    }
}

/// Returns the error for the name of a function that is none of `known`.
pub(crate) fn no_function<'n>(name: &str, known: impl Iterator<Item = &'n str> + Clone) -> String {
    format!("there is no function `{}`{}", printable(name, 40), nearest(name, known))
}

/// Checks how many arguments a function is given.
pub(crate) fn check_number(name: &str, numbers: &RangeInclusive<usize>, given: usize) -> Result<(), String> {
    if numbers.contains(&given) {
        return Ok(());
    }
    let wanted = match (*numbers.start(), *numbers.end()) {
        (least, most) if least == most => least.to_string(),
        (least, MAX_ARGUMENTS) => format!("{least} or more"),
        (least, most) => format!("{least} to {most}"),
    };
    Err(format!("`{name}()` has {wanted} arguments, not {given}"))
}
