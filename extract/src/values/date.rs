//! Parses dates with any time zone, and formats them by RFC 3339.

use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::fmt::temporal::Pieces;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};
use trawl_common::web::http_date;

/// Maximum length in bytes of a text that may be a date, if no format is given.
const MAX_LENGTH: usize = 64;

/// The ways of writing a date that are the same everywhere: the year first, or the month by its name. Without commas
/// and the like ([`plain`]).
const DATES: [&str; 10] = [
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y",
    "%Y %b %d", "%Y %B %d",
];

/// Formats of a time after a date.
const TIMES: [&str; 6] = ["%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M:%S%p", "%I:%M%p"];

/// The way of asctime, after the day of the week.
const ASCTIME: &str = "%b %e %H:%M:%S %Y";

/// The names of zones that say the same everywhere (RFC 822 5.1). Others would pass for UTC.
const ZONES: [&str; 12] = ["UT", "UTC", "GMT", "Z", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT"];

/// Zones of the United States (RFC 822 5.1), in hours.
const AMERICAN: [(&str, i32); 8] =
    [("EST", -5), ("EDT", -4), ("CST", -6), ("CDT", -5), ("MST", -7), ("MDT", -6), ("PST", -8), ("PDT", -7)];

/// The ways in which a text may say a date.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// A strptime format.
    pub(crate) format: Option<String>,
    /// The time zone of a time without an offset; UTC if `None`.
    pub(crate) zone: Option<TimeZone>,
}

impl Written {
    /// Parses a date: by the format, or by RFC 3339, ISO 8601, the formats of mails and HTTP, or an English month. A
    /// date with a time is returned in UTC; one without stays a date.
    pub(crate) fn parse(&self, text: &str) -> Option<String> {
        let text = text.trim();
        if let Some(format) = &self.format {
            let read = BrokenDownTime::parse(format, text).ok()?;
            return self.broken_down(read);
        }
        if text.len() > MAX_LENGTH {
            return None;
        }
        if let Ok(pieces) = Pieces::parse(text) {
            let zone = pieces.to_time_zone().ok()?;
            let zone = zone.as_ref().or(self.zone.as_ref());
            return written(pieces.date(), pieces.time(), pieces.to_numeric_offset(), zone);
        }
        if let Ok(read) = BrokenDownTime::parse(ASCTIME, without_weekday(text)) {
            return self.broken_down(read);
        }
        if has_known_zone(text)
            && let Some(instant) = http_date::parse(text, Timestamp::now())
        {
            return Some(instant.to_string());
        }
        self.by_parts(text)
    }

    fn broken_down(&self, mut read: BrokenDownTime) -> Option<String> {
        if let Some(timestamp) = read.timestamp() {
            return Some(timestamp.to_string());
        }
        if read.to_date().is_err() {
            // It may be wrong.
            read.set_weekday(None);
        }
        let time = read.hour().and_then(|_| read.to_time().ok());
        written(read.to_date().ok()?, time, read.offset(), self.zone.as_ref())
    }

    /// Parses a date by one of [`DATES`], optionally with a day of the week before it, and a time and an offset after
    /// it.
    fn by_parts(&self, text: &str) -> Option<String> {
        let text = plain(without_weekday(text));
        let text = text.as_str();
        let (text, offset) = split_offset(text);
        let (date, rest) = DATES
            .iter()
            .filter_map(|format| {
                let (read, used) = BrokenDownTime::parse_prefix(format, text).ok()?;
                let rest = &text[used..];
                let ends = rest.is_empty() || rest.starts_with([' ', 'T']);
                ends.then_some((of_whole_year(read.to_date().ok()?, format, &text[..used])?, rest))
            })
            .min_by_key(|(_, rest)| rest.len())?;
        let rest = rest.trim_start_matches([' ', 'T']);
        let time = match rest {
            "" if offset.is_some() => return None,
            "" => None,
            rest => {
                let read = TIMES.iter().find_map(|format| BrokenDownTime::parse(format, rest).ok());
                Some(read?.to_time().ok()?)
            }
        };
        written(date, time, offset, self.zone.as_ref())
    }
}

/// Writes a date, and its time in UTC: by its offset, else by the zone.
fn written(
    date: Date,
    time: Option<Time>,
    offset: Option<Offset>,
    zone: Option<&TimeZone>,
) -> Option<String> {
    let Some(time) = time else { return Some(date.to_string()) };
    let local = DateTime::from_parts(date, time);
    let offset = match (offset, zone) {
        // No clock is further from UTC: `10:00-18:00` are opening hours.
        (Some(offset), _) if !(-12 * 3600..=14 * 3600).contains(&offset.seconds()) => return None,
        (Some(offset), _) => offset,
        (None, Some(zone)) => {
            return Some(zone.to_ambiguous_zoned(local).compatible().ok()?.timestamp().to_string());
        }
        (None, None) => Offset::UTC,
    };
    // By the calendar: instants end a day before it does.
    let utc = local.checked_sub(SignedDuration::from_secs(offset.seconds().into())).ok()?;
    Some(format!("{utc}Z"))
}

/// Whether a text ends with no name of a zone, or with one of [`ZONES`].
fn has_known_zone(text: &str) -> bool {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_name = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    !is_name || ZONES.iter().any(|zone| last.eq_ignore_ascii_case(zone))
}

/// Returns a date that was read from `text` by a format, in its century: where the month has its name, a year of two
/// digits is no day, and else any of the numbers may be the year.
fn of_whole_year(date: Date, format: &str, text: &str) -> Option<Date> {
    let last = text.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    match date.year() {
        1000.. => Some(date),
        0..100 if last.len() == 2 && format.ends_with("%Y") && !format.contains("%m") => {
            let date = http_date::of_century(date.to_datetime(Time::midnight()), Timestamp::now())?;
            Some(date.date())
        }
        _ => None,
    }
}

/// Checks a format: a date that is formatted with it must be parsed by it.
pub(crate) fn check(format: &str) -> Result<(), String> {
    let sample = DateTime::constant(2024, 5, 17, 10, 30, 0, 0).to_zoned(TimeZone::UTC);
    let sample = sample.map_err(|error| error.to_string())?;
    let written = strtime::format(format, &sample).map_err(|error| error.to_string())?;
    if !format.contains('%') {
        return Err("it has no `%`, as in `%d.%m.%Y`".to_owned());
    }
    let by_format = Written { format: Some(format.to_owned()), zone: None };
    match by_format.parse(&written) {
        Some(date) if date.starts_with("2024-05-17") => Ok(()),
        _ => Err("it names no whole date, of day, month and year".to_owned()),
    }
}

/// Returns a date without what says nothing: commas, full stops after months, the endings of ordinal numbers, and small
/// words.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let words = words.filter_map(|word| {
        let lower = word.to_ascii_lowercase();
        let digits = ["st", "nd", "rd", "th"].iter().find_map(|ending| lower.strip_suffix(ending));
        match lower.trim_end_matches('.') {
            "at" | "@" | "of" | "the" => None,
            "sept" => Some("Sep"),
            "a.m" => Some("AM"),
            "p.m" => Some("PM"),
            _ if digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) => {
                Some(&word[..word.len() - 2])
            }
            _ => Some(word.trim_end_matches('.')),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Leaves out a day of the week, which may be wrong.
fn without_weekday(text: &str) -> &str {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let day = text[..end].to_ascii_lowercase();
    match day.len() >= 3 && DAYS.iter().any(|whole| whole.starts_with(&day)) {
        true => text[end..].trim_start_matches(['.', ',', ' ']),
        false => text,
    }
}

/// Splits the offset from the end of a text: `Z`, `UTC`, `GMT`, `EST`, `+0200`, `+02:00`, `+2`, `GMT+2`, `GMT+0200
/// (CEST)`.
fn split_offset(text: &str) -> (&str, Option<Offset>) {
    if let Some((before, _)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        // JavaScript names the zone once more.
        return match split_offset(before) {
            (_, None) => (text, None),
            split => split,
        };
    }
    if let Some((before, name)) = text.rsplit_once(' ')
        && let Some((_, hours)) = AMERICAN.iter().find(|(zone, _)| zone.eq_ignore_ascii_case(name))
        && before.contains(':')
    {
        return (before, Offset::from_seconds(hours * 3600).ok());
    }
    for name in ["UTC", "GMT", "Z"] {
        if let Some(rest) = text.strip_suffix(name)
            && rest.ends_with(|c: char| c == ' ' || c.is_ascii_digit())
        {
            return (rest.trim_end(), Some(Offset::UTC));
        }
    }
    let Some(at) = text.rfind(['+', '-', '\u{2212}']) else { return (text, None) };
    let (before, offset) = text.split_at(at);
    let sign = if offset.starts_with('+') { 1 } else { -1 };
    let digits: String = offset.chars().skip(1).filter(|c| *c != ':').collect();
    let is_offset = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A date has hyphens, too.
    if !is_offset || !before.contains(':') {
        return (text, None);
    }
    let (hours, minutes) = if digits.len() > 2 { digits.split_at(digits.len() - 2) } else { (&*digits, "0") };
    let seconds = |text: &str, unit: i32| text.parse::<i32>().ok().map(|number| number * unit);
    let offset = seconds(hours, 3600).zip(seconds(minutes, 60));
    let offset = offset.and_then(|(hours, minutes)| Offset::from_seconds(sign * (hours + minutes)).ok());
    let before = before.trim_end().trim_end_matches("GMT").trim_end_matches("UTC").trim_end();
    (before, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, format: Option<&str>) -> Option<String> {
        Written { format: format.map(str::to_owned), zone: None }.parse(text)
    }

    #[test]
    fn dates_are_recognised() {
        for (text, date) in [
            ("2024-05-01", "2024-05-01"),
            (" 2024-05-01T10:00:00+02:00 ", "2024-05-01T08:00:00Z"),
            ("2024-05-01 10:00", "2024-05-01T10:00:00Z"),
            ("2024-05-01T10:00:00.250Z", "2024-05-01T10:00:00.25Z"),
            ("Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21T07:28:00Z"),
            ("21 Oct 2015 07:28:00 +0100", "2015-10-21T06:28:00Z"),
            ("Thu, 21 Oct 2015 07:28:00 GMT", "2015-10-21T07:28:00Z"),
            ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"),
            ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"),
            ("2024-05-01 10:00:00 +0200", "2024-05-01T08:00:00Z"),
            ("2024-05-01 10:00:00 UTC", "2024-05-01T10:00:00Z"),
            ("2024-05-01T10:00:00 +02:00", "2024-05-01T08:00:00Z"),
            ("Thu, 01 May 2024 10:00:00 +02:00", "2024-05-01T08:00:00Z"),
            ("2024-05-01 10:00:00 GMT-3", "2024-05-01T13:00:00Z"),
            ("2024/05/01 10:00", "2024-05-01T10:00:00Z"),
            ("1 May 2024", "2024-05-01"),
            ("May 1, 2024", "2024-05-01"),
            ("Wednesday, May 1st, 2024", "2024-05-01"),
            ("the 1st of Sept. 2024 at 2:57 p.m.", "2024-09-01T14:57:00Z"),
            ("Aug. 9, 2012", "2012-08-09"),
            ("May 1, 2024, 10:30 PM", "2024-05-01T22:30:00Z"),
            ("Wed, 1 May 2024 at 10:30", "2024-05-01T10:30:00Z"),
            ("1 Sept 2024", "2024-09-01"),
            ("Wed, 01 May 2024 10:00:00 EDT", "2024-05-01T14:00:00Z"),
            ("May 1, 2024 @ 01:08 am PDT", "2024-05-01T08:08:00Z"),
            ("2024-05-01 10:00 EST", "2024-05-01T15:00:00Z"),
            ("Wed May 01 2024 10:34:51 GMT+0800 (CST)", "2024-05-01T02:34:51Z"),
            ("Wed May 01 2024 10:00:00 GMT+0200 (Central European Summer Time)", "2024-05-01T08:00:00Z"),
            ("2024-05-01T10:00[Europe/Paris]", "2024-05-01T08:00:00Z"),
            ("2024-05-01T10:00-12:00", "2024-05-01T22:00:00Z"),
            ("06-Nov-94", "1994-11-06"),
            ("1 May 24", "2024-05-01"),
            ("May 1, 24, 10:30", "2024-05-01T10:30:00Z"),
        ] {
            assert_eq!(parse(text, None).as_deref(), Some(date), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2024-02-30",
            "12",
            "2024-05-01T25:00",
            "05/01/2024",
            "01.05.2024",
            "1 Foo 2024",
            "Wed",
            "10:30",
            "Wed, 01 May 2024 10:00:00 CEST",
            "2024-05-01 10:00 (CST)",
            "2024-05-01 10:00-18:00",
            "2024-05-01T10:00[Europe/Nowhere]",
            "01.05.24",
            "12/05/24",
            "10-11-12",
            "1 May 5",
            "2024-05-01 x",
            "2024-05-01 +0200",
        ] {
            assert_eq!(parse(text, None), None, "{text}");
        }
    }

    #[test]
    fn the_last_instants_of_the_calendar_are_dates() {
        for (text, date) in [
            ("9999-12-31T23:59:59Z", Some("9999-12-31T23:59:59Z")),
            ("9999-12-31T23:59:59+14:00", Some("9999-12-31T09:59:59Z")),
            ("9999-12-31T23:59:59-01:00", None),
            ("9999-12-31", Some("9999-12-31")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
        ] {
            assert_eq!(parse(text, None).as_deref(), date, "{text}");
        }
    }

    #[test]
    fn a_zone_holds_where_no_offset_is_named() {
        let zone = TimeZone::get("Europe/Berlin").ok();
        for (text, format, date) in [
            ("2024-05-01 10:00", None, "2024-05-01T08:00:00Z"),
            ("2024-01-01 10:00", None, "2024-01-01T09:00:00Z"),
            ("2024-01-01 10:00 UTC", None, "2024-01-01T10:00:00Z"),
            ("2024-01-01", None, "2024-01-01"),
            ("1 May 2024 10:00", None, "2024-05-01T08:00:00Z"),
            ("Wed May  1 10:00:00 2024", None, "2024-05-01T08:00:00Z"),
            ("2024-05-01T10:00[America/New_York]", None, "2024-05-01T14:00:00Z"),
            ("01.05.2024 10:00", Some("%d.%m.%Y %H:%M"), "2024-05-01T08:00:00Z"),
            // This time does not exist, and is taken as an hour later.
            ("2024-03-31 02:30", None, "2024-03-31T01:30:00Z"),
        ] {
            let written = Written { format: format.map(str::to_owned), zone: zone.clone() };
            assert_eq!(written.parse(text).as_deref(), Some(date), "{text}");
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
            ("Thu, 01 May 2024", "%a, %d %b %Y", "2024-05-01"),
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
