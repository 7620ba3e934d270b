//! Cron expressions: five fields, as in cron(5).

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};

use super::field::{DAY, Field, HOUR, MINUTE, MONTH, Numbers, WEEKDAY};

/// Number of days after which the calendar repeats, including the days of the week: 400 years.
const CALENDAR: usize = 146_097;

/// The times that a cron expression names: `minute hour day-of-month month day-of-week`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: Numbers,
    hours: Numbers,
    days: Numbers,
    months: Numbers,
    weekdays: Numbers,
}

/// The error for a text that is no cron expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCron {
    /// It does not have five fields.
    #[error("five fields are wanted, `minute hour day-of-month month day-of-week`, and not {0}")]
    Fields(usize),
    /// A field is wrong.
    #[error("{field}: {what}")]
    Field {
        /// The field.
        field: &'static str,
        /// The error in it.
        what: String,
    },
    /// Its months have no such day.
    #[error("such a day never comes")]
    Never,
}

impl Cron {
    /// Returns the first minute after that of `after` that it names; `None` at the end of the calendar.
    pub(super) fn next(&self, after: DateTime) -> Option<DateTime> {
        let mut date = after.date();
        let mut time = self.first_from(after.hour(), after.minute() + 1);
        for _ in 0..=CALENDAR {
            if let Some(time) = time.filter(|_| self.names(date)) {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            time = self.first_from(0, 0);
        }
        None
    }

    /// Returns the first of its times of day from `hour:minute` on.
    fn first_from(&self, hour: i8, minute: i8) -> Option<Time> {
        let in_this_hour = self.minutes.from(minute).filter(|_| self.hours.has(hour));
        let (hour, minute) = match in_this_hour {
            Some(minute) => (hour, minute),
            None => (self.hours.from(hour + 1)?, self.minutes.from(0)?),
        };
        Time::new(hour, minute, 0, 0).ok()
    }

    /// Returns whether it names this day: as in cron(5), by either field of days if both are restricted.
    fn names(&self, date: Date) -> bool {
        let is_day = self.days.has(date.day());
        let is_weekday = self.weekdays.has(date.weekday().to_sunday_zero_offset());
        self.months.has(date.month())
            && match self.days.is_any || self.weekdays.is_any {
                true => is_day && is_weekday,
                false => is_day || is_weekday,
            }
    }
}

impl FromStr for Cron {
    type Err = InvalidCron;

    fn from_str(text: &str) -> Result<Self, InvalidCron> {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(InvalidCron::Fields(fields.len()));
        };
        let read = |field: Field, text: &str| {
            field.read(text).map_err(|what| InvalidCron::Field { field: field.name, what })
        };
        let cron = Self {
            text: fields.join(" "),
            minutes: read(MINUTE, minute)?,
            hours: read(HOUR, hour)?,
            days: read(DAY, day)?,
            months: read(MONTH, month)?,
            weekdays: read(WEEKDAY, weekday)?,
        };
        let comes = cron.next(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)).is_some();
        if comes { Ok(cron) } else { Err(InvalidCron::Never) }
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cron(text: &str) -> Cron {
        text.parse().unwrap()
    }

    /// The next times that an expression names after one.
    #[track_caller]
    fn next(text: &str, after: &str, expected: &[&str]) {
        let cron = cron(text);
        let mut time: DateTime = after.parse().unwrap();
        for expected in expected {
            time = cron.next(time).unwrap();
            assert_eq!(time, expected.parse().unwrap(), "{text} after {after}");
        }
    }

    #[test]
    fn lists_ranges_steps_and_names_are_read_as_cron_reads_them() {
        next("*/15 * * * *", "2026-11-23T16:14:59", &["2026-11-23T16:15", "2026-11-23T16:30"]);
        next(
            "5,50-52 8-9 * * *",
            "2026-01-31T09:50",
            &["2026-01-31T09:51", "2026-01-31T09:52", "2026-02-01T08:05"],
        );
        next("0 0-23/8 * * *", "2026-12-31T16:00", &["2027-01-01T00:00", "2027-01-01T08:00"]);
        next("0 3 * * Mon-Fri", "2026-11-20T03:00", &["2026-11-23T03:00"]);
        next(
            "0 3 * * 5-7",
            "2026-11-20T03:00",
            &["2026-11-21T03:00", "2026-11-22T03:00", "2026-11-27T03:00"],
        );
        next("0 0 1 jan,JUL *", "2026-01-01T00:00", &["2026-07-01T00:00", "2027-01-01T00:00"]);
        assert_eq!(cron(" 0  3 * * 7 ").to_string(), "0 3 * * 7");
    }

    #[test]
    fn a_month_without_a_31st_and_a_year_without_a_29th_of_february_are_left_out() {
        next("0 0 31 * *", "2026-03-31T00:00", &["2026-05-31T00:00", "2026-07-31T00:00"]);
        next("0 0 29 2 *", "2026-01-01T00:00", &["2028-02-29T00:00", "2032-02-29T00:00"]);
        next("0 0 29 2 *", "2096-03-01T00:00", &["2104-02-29T00:00"]);
    }

    #[test]
    fn where_both_fields_of_days_are_restricted_either_is_enough() {
        next(
            "0 0 13 * fri",
            "2026-11-12T00:00",
            &["2026-11-13T00:00", "2026-11-20T00:00", "2026-11-27T00:00"],
        );
        next("0 0 13 * *", "2026-11-12T00:00", &["2026-11-13T00:00", "2026-12-13T00:00"]);
        next("0 0 */2 * mon", "2026-11-23T00:00", &["2026-12-07T00:00"]);
    }

    #[test]
    fn what_is_no_expression_is_an_error_that_names_the_field() {
        for (text, expected) in [
            ("* * * *", "not 4"),
            ("@daily", "not 1"),
            ("0 * * * * *", "not 6"),
            ("60 * * * *", "minute: `60` is no number from 0 to 59"),
            ("-1 * * * *", "minute: `` is no number"),
            ("+1 * * * *", "minute: `+1`"),
            ("* 24 * * *", "hour: `24`"),
            ("* * 0 * *", "day of month: `0` is no number from 1 to 31"),
            ("* * * foo *", "month: `foo` is no number from 1 to 12, nor jan to dec"),
            ("* * * * 8", "day of week: `8`"),
            ("* 22-2 * * *", "hour: `22-2` ends before it begins"),
            ("5/15 * * * *", "minute: `5/15`: steps are for `*` and ranges, as in `5-59/2`"),
            ("*/0 * * * *", "minute: `0` is no step from 1 to 59"),
            ("*/90 * * * *", "minute: `90` is no step from 1 to 59"),
            ("1,,2 * * * *", "minute: `` is no number"),
            ("* * 30 feb *", "never comes"),
            ("0 0 31 4,6,9,11 *", "never comes"),
        ] {
            let error = text.parse::<Cron>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    fn fields() -> impl Strategy<Value = String> {
        let number = |least: u8, most: u8| {
            let range = (least..=most, least..=most).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b)));
            let step = (1..most).prop_map(|step| format!("*/{step}"));
            let number = (least..=most).prop_map(|number| number.to_string());
            prop_oneof![2 => Just("*".to_owned()), 1 => range, 1 => step, 2 => number]
        };
        let fields = (number(0, 59), number(0, 23), number(1, 31), number(1, 12), number(0, 7));
        fields.prop_map(|(a, b, c, d, e)| format!("{a} {b} {c} {d} {e}"))
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_panic(text in ".{0,40}") {
            let _ = text.parse::<Cron>();
        }

        #[test]
        fn what_is_next_is_named_and_nothing_between_is(text in fields(), minutes in 0..2_000_000_i64) {
            let Ok(cron) = text.parse::<Cron>() else { return Ok(()) };
            let start: DateTime = "2026-01-01T00:00".parse().unwrap();
            let after = start.checked_add(jiff::Span::new().minutes(minutes)).unwrap();
            let found = cron.next(after).unwrap();
            prop_assert!(found > after);
            let is_named = |time: DateTime| {
                cron.names(time.date()) && cron.hours.has(time.hour()) && cron.minutes.has(time.minute())
            };
            prop_assert!(is_named(found));
            let mut time = after;
            for _ in 0..3_000 {
                time = time.checked_add(jiff::Span::new().minutes(1)).unwrap();
                if time >= found {
                    break;
                }
                prop_assert!(!is_named(time), "{time} is before {found}");
            }
        }
    }
}
