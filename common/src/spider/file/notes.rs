//! Notes taken while a file is read.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use toml::de::DeTable;

use super::placeholders::{self, Unfilled};
use crate::mistake::{Mistake, Place, Places};
use crate::settings;
use crate::spider::Origin;
use crate::spider::arguments::{Declaration, Declarations};
use crate::spider::pattern::{Allowance, Untaken};
use crate::toml_value;

/// The environment, as a function from the names of variables to their values.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Maximum number of mistakes noted: no one reads more, and each costs a search for its line.
const MAX_MISTAKES: usize = 1000;

/// The text that is read, and the mistakes found so far.
pub(super) struct Notes<'a> {
    text: &'a str,
    places: Places<'a>,
    environment: Environment<'a>,
    mistakes: RefCell<Vec<Mistake>>,
    unset: RefCell<Vec<Mistake>>,
    arguments: RefCell<Declarations>,
    patterns: RefCell<Allowance>,
    origin: Origin<'a>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(text: &'a str, origin: Origin<'a>, environment: Environment<'a>) -> Self {
        let (mistakes, unset, arguments, patterns) = Default::default();
        let places = Places::from_text(text);
        Self { text, places, environment, mistakes, unset, arguments, patterns, origin }
    }

    /// Returns whether the text is tried for a caller.
    pub(super) fn is_tried(&self) -> bool {
        self.origin.is_tried()
    }

    /// Whether the text was fetched by Git.
    pub(super) fn is_fetched(&self) -> bool {
        self.origin.is_fetched()
    }

    /// Returns the settings that confine the text; `None` if nothing does.
    pub(super) fn limits(&self) -> Option<&'a settings::Spiders> {
        self.origin.limits()
    }

    /// Parses the text.
    pub(super) fn parse(&self) -> Result<DeTable<'a>, Mistake> {
        toml_value::parse(self.text, &self.places)
    }

    /// Returns the text that is read.
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the place where `span` begins.
    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        self.places.place(span)
    }

    pub(super) fn wrong(&self, place: Place, what: impl ToString) {
        self.add(Mistake { place: Some(place), what: what.to_string() });
    }

    pub(super) fn add(&self, mistake: Mistake) {
        let mut mistakes = self.mistakes.borrow_mut();
        if mistakes.len() < MAX_MISTAKES {
            mistakes.push(mistake);
        }
    }

    /// Returns the value of the variable `name`; notes if it is not set.
    pub(super) fn variable(&self, place: Place, name: &str) -> Option<String> {
        let value = (self.environment)(name).filter(|_| !self.is_tried());
        if value.is_none() {
            let what = format!("the environment variable {name} is not set");
            self.unset.borrow_mut().push(Mistake { place: Some(place), what });
        }
        value
    }

    /// Counts another pattern of the file.
    pub(super) fn take_pattern(&self, pattern: &str) -> Result<(), Untaken> {
        self.patterns.borrow_mut().take(pattern)
    }

    /// Declares the arguments that texts may use from here on.
    pub(super) fn declare(&self, arguments: Declarations) {
        *self.arguments.borrow_mut() = arguments;
    }

    /// Notes that the argument `key` has no value.
    pub(super) fn not_given(&self, place: Place, key: &str, name: &str) {
        let what = format!("{key}: has no default and is not given: -a {name}=VALUE");
        self.unset.borrow_mut().push(Mistake { place: Some(place), what });
    }

    /// Calls `look` with each argument.
    pub(super) fn each_argument(&self, look: impl Fn(&str, &Declaration)) {
        self.arguments.borrow().iter().for_each(|(name, argument)| look(name, argument));
    }

    /// Returns whether an argument has no value, so that texts are missing.
    pub(super) fn lacks_arguments(&self) -> bool {
        self.arguments.borrow().values().any(|argument| argument.value.is_none())
    }

    /// Returns the text of `key` with the values of its arguments; `None` if one has none, or if a value is wrong,
    /// which is noted. `check` says what is wrong with a value there.
    pub(super) fn filled<'t>(
        &self,
        place: Place,
        key: &str,
        text: &'t str,
        check: impl Fn(&str) -> Result<(), &'static str>,
    ) -> Option<Cow<'t, str>> {
        match placeholders::fill(text, &self.arguments.borrow(), check) {
            Ok(filled) => Some(filled),
            Err(Unfilled::Missing) => None,
            Err(Unfilled::Wrong(what)) => {
                self.wrong(place, format_args!("{key}: {what}"));
                None
            }
        }
    }

    /// Returns the memory that the file's patterns take, in bytes.
    pub(super) fn patterns(&self) -> usize {
        self.patterns.borrow().taken()
    }

    /// Returns the mistakes, and the variables and arguments that are not set, each in the order of their places;
    /// and the arguments.
    pub(super) fn into_lists(self) -> (Vec<Mistake>, Vec<Mistake>, Declarations) {
        let sorted = |list: RefCell<Vec<Mistake>>| {
            let mut list = list.into_inner();
            list.sort_by_key(|mistake| mistake.place);
            list
        };
        (sorted(self.mistakes), sorted(self.unset), self.arguments.into_inner())
    }
}
