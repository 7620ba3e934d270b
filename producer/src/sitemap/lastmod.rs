//! The latest time at which a page changed, according to its sitemap.

use jiff::civil::{Date, DateTime};
use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan};
use trawl_common::time::UnixMs;

/// Offset of the last time zone, in hours: a day in UTC-12 ends this much later than in UTC.
const LAST_ZONE: i8 = -12;

/// Returns the latest instant at which a page with this `lastmod`, a W3C date and time
/// (<https://www.w3.org/TR/NOTE-datetime>), may have changed: a year, month or day counts to its end, and a
/// time without a zone as if it were in the last one. `None` if it is not such a date.
pub fn changed_by(lastmod: &str) -> Option<UnixMs> {
    let instant = match lastmod.len() {
        4 | 7 | 10 => end(lastmod)?,
        _ if !has_minutes(lastmod) => return None,
        _ => match lastmod.parse::<Timestamp>() {
            Ok(instant) => instant,
            Err(_) => anywhere(lastmod.parse::<DateTime>().ok()?)?,
        },
    };
    // A change before 1970 counts as one at its start.
    Some(UnixMs(u64::try_from(instant.as_millisecond()).unwrap_or_default()))
}

/// Whether `text` starts with `YYYY-MM-DDThh:`. The parser also accepts an hour alone, and takes it for the
/// hour's start.
fn has_minutes(text: &str) -> bool {
    let text = text.as_bytes();
    matches!(text.get(10), Some(b'T' | b't' | b' ')) && text.get(13) == Some(&b':')
}

/// Returns the end of a year, month or day.
fn end(date: &str) -> Option<Timestamp> {
    let mut parts = date.split('-');
    let year = parts.next()?.parse().ok()?;
    let (month, day) = (parts.next(), parts.next());
    let first = Date::new(year, month.unwrap_or("12").parse().ok()?, 1).ok()?;
    let last = match day {
        Some(day) => first.with().day(day.parse().ok()?).build().ok()?,
        None => first.last_of_month(),
    };
    anywhere(last.checked_add(1.day()).ok()?.to_datetime(jiff::civil::Time::midnight()))
}

fn anywhere(time: DateTime) -> Option<Timestamp> {
    Offset::constant(LAST_ZONE).to_timestamp(time).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by(text: &str) -> Option<String> {
        changed_by(text).map(|instant| instant.to_string())
    }

    #[test]
    fn an_instant_is_that_instant() {
        let instant = Some("2026-11-21T13:45:29.000Z".to_owned());
        assert_eq!(by("2026-11-21T13:45:29Z"), instant);
        assert_eq!(by("2026-11-21T15:45:29+02:00"), instant);
        assert_eq!(by("2026-11-21T13:45:29.00+00:00"), instant);
        assert_eq!(by("2026-11-21T13:45Z").as_deref(), Some("2026-11-21T13:45:00.000Z"));
        assert_eq!(by("1960-01-01T00:00:00Z").as_deref(), Some("1970-01-01T00:00:00.000Z"));
    }

    #[test]
    fn a_date_without_a_time_lasts_until_its_day_is_over_everywhere() {
        assert_eq!(by("2026-11-21").as_deref(), Some("2026-11-22T12:00:00.000Z"));
        assert_eq!(by("2024-02").as_deref(), Some("2024-03-01T12:00:00.000Z"));
        assert_eq!(by("2026").as_deref(), Some("2027-01-01T12:00:00.000Z"));
    }

    #[test]
    fn a_time_without_a_zone_may_be_that_of_any() {
        assert_eq!(by("2026-11-21T13:45:29").as_deref(), Some("2026-11-22T01:45:29.000Z"));
        assert_eq!(by("2026-11-21 13:45:29").as_deref(), Some("2026-11-22T01:45:29.000Z"));
    }

    #[test]
    fn what_is_no_date_says_nothing() {
        for nonsense in [
            "",
            "soon",
            "2026-13",
            "2026-02-30",
            "20261121",
            "20261121T134529Z",
            "2026-11-21T10Z",
            "21/11/2026",
            "2026-1-1",
            "-026",
            "9999",
            "Tue, 02 Jan 2024 03:04:05 GMT",
            "2026-11-21T25:00:00Z",
        ] {
            assert_eq!(by(nonsense), None, "{nonsense}");
        }
    }

    proptest! {
        #[test]
        fn a_shorter_date_never_says_less_than_a_longer_one(
            year in 1970_i16..3000, month in 1_i8..=12, day in 1_i8..=28, hour in 0_i8..24, zone in -12_i8..=14
        ) {
            let sign = if zone < 0 { '-' } else { '+' };
            let zone = zone.abs();
            let full = format!("{year}-{month:02}-{day:02}T{hour:02}:59:59{sign}{zone:02}:00");
            let instants = [full.as_str(), &full[..19], &full[..10], &full[..7], &full[..4]].map(changed_by);
            prop_assert!(instants.iter().all(Option::is_some) && instants.is_sorted(), "{:?}", instants);
        }

        #[test]
        fn no_text_is_too_strange(text in "[-0-9TZ:+. ]{0,30}|\\PC{0,30}") {
            changed_by(&text);
        }
    }
}
