//! Dates, by whatever clock, as RFC 3339 writes them.

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::rfc2822;
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};

/// The date that `text` is: by `format`, or by RFC 3339, ISO 8601 or the way of mails and HTTP. One with a time is given in
/// UTC, and taken for UTC where it names no offset; one without stays a date.
pub(crate) fn parse(text: &str, format: Option<&str>) -> Option<String> {
    let text = text.trim();
    if let Some(format) = format {
        let read = BrokenDownTime::parse(format, text).ok()?;
        if let Some(timestamp) = read.timestamp() {
            return Some(timestamp.to_string());
        }
        let time = read.hour().and_then(|_| read.to_time().ok());
        return written(read.to_date().ok()?, time, read.offset());
    }
    if let Ok(pieces) = Pieces::parse(text) {
        return written(pieces.date(), pieces.time(), pieces.to_numeric_offset());
    }
    rfc2822::parse(text).ok().map(|zoned| zoned.timestamp().to_string())
}

/// What is wrong with a format: a date that is written by it must be read by it.
pub(crate) fn check(format: &str) -> Result<(), String> {
    let sample = DateTime::constant(2024, 5, 17, 10, 30, 0, 0).to_zoned(TimeZone::UTC);
    let sample = sample.map_err(|error| error.to_string())?;
    let written = strtime::format(format, &sample).map_err(|error| error.to_string())?;
    if !format.contains('%') {
        return Err("it has no `%`, as in `%d.%m.%Y`".to_owned());
    }
    match parse(&written, Some(format)) {
        Some(date) if date.starts_with("2024-05-17") => Ok(()),
        _ => Err("it names no whole date, of day, month and year".to_owned()),
    }
}

fn written(date: Date, time: Option<Time>, offset: Option<Offset>) -> Option<String> {
    let Some(time) = time else { return Some(date.to_string()) };
    let timestamp = offset.unwrap_or(Offset::UTC).to_timestamp(DateTime::from_parts(date, time)).ok()?;
    Some(timestamp.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_recognised() {
        for (text, date) in [
            ("2024-05-01", "2024-05-01"),
            (" 2024-05-01T10:00:00+02:00 ", "2024-05-01T08:00:00Z"),
            ("2024-05-01 10:00", "2024-05-01T10:00:00Z"),
            ("2024-05-01T10:00:00.250Z", "2024-05-01T10:00:00.25Z"),
            ("Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21T07:28:00Z"),
            ("21 Oct 2015 07:28:00 +0100", "2015-10-21T06:28:00Z"),
        ] {
            assert_eq!(parse(text, None).as_deref(), Some(date), "{text}");
        }
        for text in ["", "yesterday", "2024-02-30", "12", "2024-05-01T25:00"] {
            assert_eq!(parse(text, None), None, "{text}");
        }
    }

    #[test]
    fn a_format_says_how_they_are_written() {
        for (text, format, date) in [
            ("1 May 2024", "%d %B %Y", "2024-05-01"),
            ("05/01/24", "%m/%d/%y", "2024-05-01"),
            ("01.05.2024 10:30", "%d.%m.%Y %H:%M", "2024-05-01T10:30:00Z"),
            ("2024-05-01 10:30 +0200", "%F %H:%M %z", "2024-05-01T08:30:00Z"),
            ("86400", "%s", "1970-01-02T00:00:00Z"),
        ] {
            assert_eq!(parse(text, Some(format)).as_deref(), Some(date), "{text}");
        }
        assert_eq!(parse("2024-05-01", Some("%d.%m.%Y")), None);
        for right in ["%d.%m.%Y", "%F", "%d %B %Y", "%m/%d/%y %H:%M", "%F %H:%M %z", "%s", "%a, %e %b %Y"] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for wrong in ["%d %!", "DD.MM.YYYY", "", "%d.%m.", "%H:%M", "%Y"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
