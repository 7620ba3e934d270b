//! What is noted while a file is read.

use std::cell::RefCell;
use std::ops::Range;

use crate::spider::{Mistake, Place};

/// The environment, by the names of its variables.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The text that is read, and what is wrong in it so far.
pub(super) struct Notes<'a> {
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    environment: Environment<'a>,
    mistakes: RefCell<Vec<Mistake>>,
    unset: RefCell<Vec<Mistake>>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(text: &'a str, environment: Environment<'a>) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
        Self {
            text,
            lines: std::iter::once(0).chain(ends).collect(),
            environment,
            mistakes: RefCell::default(),
            unset: RefCell::default(),
        }
    }

    /// The place where `span` begins.
    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        let at = self.text.floor_char_boundary(span.start);
        let line = self.lines.partition_point(|begin| *begin <= at);
        let before = &self.text[self.lines[line - 1]..at];
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Place { line: number(line), column: number(before.chars().count() + 1) }
    }

    pub(super) fn wrong(&self, place: Place, what: impl ToString) {
        self.mistakes.borrow_mut().push(Mistake { place: Some(place), what: what.to_string() });
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
