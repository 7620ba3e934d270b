//! The format of numbers, times and texts on pages.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use trawl_common::text::{escape_json, printable};

/// Maximum length of a text, in bytes.
const LONGEST: usize = 8 * 1024;
/// Maximum length of an item shown, in bytes.
const LONGEST_JSON: usize = 16 * 1024;

/// A number, in groups of three digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Number(pub(crate) u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// A number per second, or another number with a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Rate(pub(crate) f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            rate if rate < 99.95 => write!(f, "{rate:.1}"),
            rate => Number(rate.round() as u64).fmt(f),
        }
    }
}

/// A number of bytes, shown in a suitable unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.0 as f64, 0);
        while value >= 999.95 && unit < 4 {
            (value, unit) = (value / 1024.0, unit + 1);
        }
        let name = ["B", "KiB", "MiB", "GiB", "TiB"][unit];
        if unit == 0 { write!(f, "{value:.0} {name}") } else { write!(f, "{value:.1} {name}") }
    }
}

/// A duration, shown in its two largest units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Seconds(pub(crate) f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0.max(0.0) as u64;
        let [days, hours, minutes, seconds] =
            [whole / 86_400, whole / 3_600 % 24, whole / 60 % 60, whole % 60];
        match (days, hours, minutes) {
            (0, 0, 0) if self.0 < 10.0 => write!(f, "{:.1} s", self.0.max(0.0)),
            (0, 0, 0) => write!(f, "{seconds} s"),
            (0, 0, _) => write!(f, "{minutes} min {seconds:02} s"),
            (0, ..) => write!(f, "{hours} h {minutes:02} min"),
            _ => write!(f, "{days} d {hours:02} h"),
        }
    }
}

/// An instant in RFC 3339, shown to the second.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Time(pub(crate) String);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.get(..10), self.0.get(11..19)) {
            (Some(day), Some(time)) => write!(f, "{day} {time}"),
            _ => f.write_str(&self.0),
        }
    }
}

impl Time {
    /// The offset of its time zone; empty for UTC.
    pub(crate) fn offset(&self) -> &str {
        let rest = self.0.get(19..).unwrap_or_default();
        let offset = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
        if matches!(offset, "Z" | "+00:00") { "" } else { offset }
    }
}

/// A text that may have external content, without invisible characters and those that change the reading
/// direction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Text(String);

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(printable(&text, LONGEST))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(printable(text, LONGEST))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Formats JSON on several lines, cut if it is too long.
pub(crate) fn json(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut shown = String::new();
    for line in text.lines() {
        if shown.len() + line.len() > LONGEST_JSON {
            shown.push('\u{2026}');
            break;
        }
        shown.push_str(&escape_json(line));
        shown.push('\n');
    }
    shown
}

/// Formats a number with its noun: `1 page`, `2 pages`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", Number(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_groups_and_units() {
        let shown = [0, 999, 1_000, 1_234_567].map(|number| Number(number).to_string());
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.04, 12.34, 99.96, 1234.5].map(|rate| Rate(rate).to_string()),
            ["0.0", "12.3", "100", "1,235"]
        );
        assert_eq!(
            [0, 999, 1_000, 5 << 30].map(|bytes| Bytes(bytes).to_string()),
            ["0 B", "999 B", "1.0 KiB", "5.0 GiB"]
        );
    }

    #[test]
    fn times_are_shown_in_two_units() {
        let shown = [0.25, 12.9, 83.0, 7_260.0, 90_000.0].map(|seconds| Seconds(seconds).to_string());
        assert_eq!(shown, ["0.2 s", "12 s", "1 min 23 s", "2 h 01 min", "1 d 01 h"]);
        assert_eq!(Time("2026-01-31T12:00:01.500Z".to_owned()).to_string(), "2026-01-31 12:00:01");
        let offset = |text: &str| Time(text.to_owned()).offset().to_owned();
        assert_eq!(offset("2026-01-31T12:00:01.500Z") + &offset("2026-01-31T12:00:01+00:00"), "");
        assert_eq!(offset("2026-01-31T12:00:01+01:00"), "+01:00");
        assert_eq!(Time("\u{e4}".repeat(12)).to_string(), "\u{e4}".repeat(12));
    }

    #[test]
    fn a_text_loses_what_turns_the_reading_direction() {
        assert_eq!(Text::from("a\u{202e}b\nc".to_owned()).to_string(), "a b c");
    }
}
