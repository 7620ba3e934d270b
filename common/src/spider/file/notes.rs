//! What is noted while a file is read.

use std::cell::RefCell;
use std::ops::Range;

use crate::spider::{Mistake, Place, Places};

/// The environment, by the names of its variables.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How many mistakes are noted: nobody reads more, and each takes a look at its line.
const MAX_MISTAKES: usize = 1000;

/// The text that is read, and what is wrong in it so far.
pub(super) struct Notes<'a> {
    places: Places<'a>,
    environment: Environment<'a>,
    mistakes: RefCell<Vec<Mistake>>,
    unset: RefCell<Vec<Mistake>>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(text: &'a str, environment: Environment<'a>) -> Self {
        let (mistakes, unset) = Default::default();
        Self { places: Places::of(text), environment, mistakes, unset }
    }

    /// The place where `span` begins.
    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        self.places.place(span)
    }

    pub(super) fn wrong(&self, place: Place, what: impl ToString) {
        let mut mistakes = self.mistakes.borrow_mut();
        if mistakes.len() < MAX_MISTAKES {
            mistakes.push(Mistake { place: Some(place), what: what.to_string() });
        }
    }

    /// The value of the variable `name`; that it is not set is noted.
    pub(super) fn variable(&self, place: Place, name: &str) -> Option<String> {
        let value = (self.environment)(name);
        if value.is_none() {
            let what = format!("the environment variable {name} is not set");
            self.unset.borrow_mut().push(Mistake { place: Some(place), what });
        }
        value
    }

    /// The mistakes, and the variables that are not set, each in the order of their places.
    pub(super) fn into_lists(self) -> (Vec<Mistake>, Vec<Mistake>) {
        let sorted = |list: RefCell<Vec<Mistake>>| {
            let mut list = list.into_inner();
            list.sort_by_key(|mistake| mistake.place);
            list
        };
        (sorted(self.mistakes), sorted(self.unset))
    }
}
