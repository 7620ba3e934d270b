//! One field of a cron expression: a set of small numbers.

use crate::text::printable;

/// The rules for a field.
pub(super) struct Field {
    /// Its name in errors.
    pub(super) name: &'static str,
    least: i8,
    most: i8,
    /// Names for its numbers, from the smallest on.
    names: &'static [&'static str],
}

/// The numbers that a field names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    set: u64,
    /// Whether it is written with an asterisk, and so leaves the choice to the other field of days.
    pub(super) is_any: bool,
}

pub(super) const MINUTE: Field = Field { name: "minute", least: 0, most: 59, names: &[] };
pub(super) const HOUR: Field = Field { name: "hour", least: 0, most: 23, names: &[] };
pub(super) const DAY: Field = Field { name: "day of month", least: 1, most: 31, names: &[] };
pub(super) const MONTH: Field = Field {
    name: "month",
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// Sunday is 0 and 7.
pub(super) const WEEKDAY: Field = Field {
    name: "day of week",
    least: 0,
    most: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Field {
    /// Parses a list of numbers, ranges and steps. Fails with a description.
    pub(super) fn read(&self, text: &str) -> Result<Numbers, String> {
        let mut set = 0;
        for part in text.split(',') {
            set |= self.part(part)?;
        }
        if self.most == WEEKDAY.most {
            set |= (set >> 7) & 1;
        }
        Ok(Numbers { set, is_any: text.starts_with('*') })
    }

    fn part(&self, part: &str) -> Result<u64, String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((first, last)) => (self.number(first)?, self.number(last)?),
            None if step.is_some() => {
                let most = self.most;
                return Err(format!(
                    "`{}`: steps are for `*` and ranges, as in `{range}-{most}/2`",
                    shown(part)
                ));
            }
            None => (self.number(range)?, self.number(range)?),
        };
        if first > last {
            return Err(format!("`{}` ends before it begins", shown(range)));
        }
        Ok((first..=last).step_by(step.unwrap_or(1)).fold(0, |set, number| set | (1 << number)))
    }

    fn step(&self, text: &str) -> Result<usize, String> {
        match digits(text) {
            Some(step) if (1..=self.most).contains(&step) => Ok(step as usize),
            _ => Err(format!("`{}` is no step from 1 to {}", shown(text), self.most)),
        }
    }

    fn number(&self, text: &str) -> Result<i8, String> {
        let named = self.names.iter().zip(self.least..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        match named.map(|(_, number)| number).or_else(|| digits(text)) {
            Some(number) if (self.least..=self.most).contains(&number) => Ok(number),
            _ => {
                let (least, most) = (self.least, self.most);
                let names = match self.names {
                    [first, .., last] => format!(", nor {first} to {last}"),
                    _ => String::new(),
                };
                Err(format!("`{}` is no number from {least} to {most}{names}", shown(text)))
            }
        }
    }
}

impl Numbers {
    /// Returns whether it has this number.
    pub(super) fn has(self, number: i8) -> bool {
        (self.set >> number) & 1 == 1
    }

    /// Returns the first number from `least` on, which is 63 at most.
    pub(super) fn from(self, least: i8) -> Option<i8> {
        let rest = self.set & (u64::MAX << least);
        (rest != 0).then(|| rest.trailing_zeros() as i8)
    }
}

fn digits(text: &str) -> Option<i8> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn shown(text: &str) -> String {
    printable(text, 40)
}
