//! The format of numbers, times and texts on pages.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde_json::Value;
use trawl_common::text::{count, escape_json, printable};
use trawl_common::time::{UnixMs, as_rfc_3339};

/// Maximum length of a text, in bytes.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// Maximum length of an item shown, in bytes.
const MAX_JSON_BYTES: usize = 16 * 1024;

/// A number, in groups of three digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Number(pub(crate) u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&count(self.0))
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

/// An instant in RFC 3339, shown as how long ago it was.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Time(pub(crate) String);

impl fmt::Display for Time {
    /// Writes the instant to the second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.get(..10), self.0.get(11..19)) {
            (Some(day), Some(time)) => write!(f, "{day} {time}"),
            _ => f.write_str(&self.0),
        }
    }
}

/// Instants further away than this are shown by their date.
const NEAR: Duration = Duration::from_secs(48 * 3600);

impl Time {
    /// Returns the instant; `None` if it is not one.
    pub(crate) fn instant(&self) -> Option<UnixMs> {
        let text: StrDeserializer<'_, serde::de::value::Error> = self.0.as_str().into_deserializer();
        as_rfc_3339::deserialize(text).ok()
    }

    /// Returns the element that shows how far away it is, and exactly when it is to whoever points at it.
    pub(crate) fn html(&self) -> String {
        let exact = escaped(&self.to_string());
        let shown = self.instant().map_or_else(|| exact.clone(), |at| relative(at, UnixMs::now(), self));
        format!("<time datetime=\"{}\" title=\"{exact}\">{shown}</time>", escaped(&self.0))
    }
}

/// Returns how long before or after `now` an instant is, in its largest unit: `3 min ago`.
fn relative(at: UnixMs, now: UnixMs, exact: &Time) -> String {
    let (away, is_past) = if at > now { (at.since(now), false) } else { (now.since(at), true) };
    let shown = match away.as_secs() {
        _ if away > NEAR => return escaped(exact.to_string().get(..16).unwrap_or(&exact.0)),
        0..5 => return "now".to_owned(),
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3_600 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    };
    if is_past { format!("{shown} ago") } else { format!("in {shown}") }
}

/// Returns text that is safe within HTML.
fn escaped(text: &str) -> String {
    let safe = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        c => c.to_string(),
    };
    text.chars().map(safe).collect()
}

/// A text that may have external content, without invisible characters and those that change the reading
/// direction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Text(String);

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(printable(&text, MAX_TEXT_BYTES))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(printable(text, MAX_TEXT_BYTES))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Text {
    /// Returns HTML, with what is between backticks as code.
    pub(crate) fn html(&self) -> String {
        let part = |(index, text): (usize, &str)| match index % 2 {
            1 => format!("<code>{}</code>", escaped(text)),
            _ => escaped(text),
        };
        match self.0.matches('`').count() % 2 {
            0 => self.0.split('`').enumerate().map(part).collect(),
            _ => escaped(&self.0),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Formats JSON on several lines, cut if it is too long.
pub(crate) fn json(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut shown = String::new();
    for line in text.lines() {
        if shown.len() + line.len() > MAX_JSON_BYTES {
            shown.push('\u{2026}');
            break;
        }
        shown.push_str(&escape_json(line));
        shown.push('\n');
    }
    shown
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
        assert_eq!(Time("\u{e4}".repeat(12)).to_string(), "\u{e4}".repeat(12));
    }

    #[test]
    fn an_instant_is_shown_by_how_far_away_it_is_and_exactly_on_hover() {
        let now = UnixMs(1_700_000_000_000);
        let shown = |seconds: i64| {
            let at = UnixMs(now.0.saturating_add_signed(seconds * 1000));
            relative(at, now, &Time(at.to_string()))
        };
        let all = [0, -4, -59, -180, -3 * 3_600 - 59, -47 * 3_600, 90, 7_200].map(shown);
        assert_eq!(all, ["now", "now", "59 s ago", "3 min ago", "3 h ago", "47 h ago", "in 1 min", "in 2 h"]);
        assert_eq!(shown(-49 * 3_600), "2023-11-12 21:13");
        let html = Time("2023-11-14T22:13:20.123Z".to_owned()).html();
        let expected = "<time datetime=\"2023-11-14T22:13:20.123Z\" title=\"2023-11-14 22:13:20\">2023-11-14 22:13</time>";
        assert_eq!(html, expected);
        let odd = Time("<b>\"".to_owned()).html();
        assert!(!odd.contains("<b>") && odd.contains("&lt;b&gt;"), "{odd}");
    }

    #[test]
    fn commands_within_a_text_are_code_and_nothing_in_it_is_markup() {
        let html = |text: &str| Text::from(text).html();
        assert_eq!(html("run `a <b>` & wait"), "run <code>a &lt;b&gt;</code> &amp; wait");
        assert_eq!(html("an odd ` <i>"), "an odd ` &lt;i&gt;");
    }

    #[test]
    fn a_text_loses_what_turns_the_reading_direction() {
        assert_eq!(Text::from("a\u{202e}b\nc".to_owned()).to_string(), "a b c");
    }
}
