//! A list that is typed or chosen, one entry per line; errors name every wrong line.

use std::fmt::Display;
use std::ops::ControlFlow;

use axum::http::StatusCode;
use trawl_common::list::{self, Line};
use trawl_common::text::counted;

use crate::failure::Failure;
use crate::shown::{Number, Text};

/// Maximum number of wrong lines to name.
const MAX_NAMED: usize = 50;

/// The lines that cannot be read.
#[derive(Default)]
pub(crate) struct WrongLines {
    pub(crate) named: Vec<WrongLine>,
    count: u64,
}

/// A line that cannot be read.
pub(crate) struct WrongLine {
    pub(crate) number: u64,
    pub(crate) reason: Text,
}

/// The reason why a form with a list was rejected.
pub(crate) enum Refused {
    Lines(WrongLines),
    Failure(Failure),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl Refused {
    /// Returns the status, message and wrong lines for showing the form again, so that its contents are not
    /// lost. A failure whose status is not in `kept` has its own page.
    pub(crate) fn shown(self, kept: &[u16]) -> Result<(StatusCode, Option<Text>, WrongLines), Failure> {
        match self {
            Self::Lines(lines) => Ok((StatusCode::BAD_REQUEST, None, lines)),
            Self::Failure(failure) if kept.contains(&failure.status) => {
                Ok((failure.status(), Some(failure.detail), WrongLines::default()))
            }
            Self::Failure(failure) => Err(failure),
        }
    }
}

impl WrongLines {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The number of wrong lines, in words.
    pub(crate) fn counted(&self) -> String {
        format!("{} cannot be read", counted(self.count, "line"))
    }

    /// The number of wrong lines not named.
    pub(crate) fn left_out(&self) -> Number {
        Number(self.count - self.named.len() as u64)
    }

    fn add(&mut self, number: u64, reason: impl Display) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            self.named.push(WrongLine { number, reason: reason.to_string().into() });
        }
    }
}

/// Parses the entries of a list; fails with every line that cannot be parsed.
pub(crate) fn read<T>(list: &[u8], parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, WrongLines> {
    let (mut entries, mut wrong) = (Vec::new(), WrongLines::default());
    let take = |Line { number, said }: Line<T>| {
        match said {
            Ok(entry) => entries.push(entry),
            Err(broken) => wrong.add(number, broken.reason),
        }
        ControlFlow::Continue(())
    };
    if let Err(error) = list::read(list, parse, take) {
        wrong.add(1, error);
    }
    if wrong.is_empty() { Ok(entries) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_line_is_named_with_its_number_and_the_first_fifty_are_shown() {
        let parse = |line: &str| if line == "x" { Ok(()) } else { Err(format!("no {line}")) };
        assert_eq!(read(b"x\n\nx\n", parse).map_err(|_| ()), Ok(vec![(), ()]));
        let list = format!("x\n\nwrong\u{202e}\n{}", "bad\n".repeat(60));
        let Err(wrong) = read(list.as_bytes(), parse) else { panic!("they are wrong") };
        assert_eq!((wrong.named[0].number, wrong.named[0].reason.as_str()), (3, "no wrong "));
        assert_eq!(
            (wrong.named.len(), wrong.left_out(), &*wrong.counted()),
            (50, Number(11), "61 lines cannot be read")
        );
    }
}
