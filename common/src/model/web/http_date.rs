//! HTTP dates (RFC 9110 5.6.7).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;

/// The obsolete formats: of RFC 850, with a two-digit year, and of asctime. Their days of the week are ignored.
const OBSOLETE: [&str; 4] =
    ["%d-%b-%y %H:%M:%S GMT", "%d-%b-%Y %H:%M:%S GMT", "%b %e %H:%M:%S %Y", "%b %e %H:%M:%S GMT %Y"];

/// Parses a date received at `now`, in any of the three formats. Days of the week may be wrong.
pub fn parse(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(instant) = DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text) {
        return Some(instant);
    }
    let letters = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let text = if letters >= 3 { text[letters..].trim_start_matches([',', ' ']) } else { text };
    let read =
        OBSOLETE.iter().find_map(|format| BrokenDownTime::parse(format, text).ok()?.to_datetime().ok())?;
    let has_short_year = text.split(['-', ' ']).nth(2).is_some_and(|year| year.len() == 2);
    let read = if has_short_year { of_century(read, now)? } else { read };
    read.to_zoned(TimeZone::UTC).ok().map(|date| date.timestamp())
}

/// Returns the date with a year of two digits that is no more than 50 years after `now`.
pub fn of_century(date: DateTime, now: Timestamp) -> Option<DateTime> {
    let now = now.to_zoned(TimeZone::UTC).year();
    let year = now - now.rem_euclid(100) + date.year().rem_euclid(100);
    let year = if year > now + 50 { year - 100 } else { year };
    date.with().year(year).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_formats_are_read_whatever_day_of_the_week_they_name() {
        let now = "1994-11-06T08:49:30Z".parse().unwrap();
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            " Sun, 06 Nov 1994 09:49:37 +0100 ",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Monday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sat Nov 06 08:49:37 GMT 1994",
        ] {
            assert_eq!(parse(text, now), Some("1994-11-06T08:49:37Z".parse().unwrap()), "{text}");
        }
        for text in ["", "soon", "Sunday, 06-Foo-94 08:49:37 GMT", "Sun Nov 31 08:49:37 1994", "120", "-"] {
            assert_eq!(parse(text, now), None, "{text}");
        }
    }

    #[test]
    fn a_day_of_the_week_may_be_missing() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        for text in ["16-Nov-2024 08:49:37 GMT", "16-Nov-24 08:49:37 GMT", "Sat,16-Nov-24 08:49:37 GMT"] {
            assert_eq!(parse(text, now), Some("2024-11-16T08:49:37Z".parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_short_year_is_no_more_than_50_years_ahead() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let year = |year: &str| {
            let date = parse(&format!("Sunday, 06-Nov-{year} 08:49:37 GMT"), now).unwrap();
            date.to_zoned(TimeZone::UTC).year()
        };
        assert_eq!(
            [year("26"), year("76"), year("77"), year("94"), year("00")],
            [2026, 2076, 1977, 1994, 2000]
        );
    }
}
