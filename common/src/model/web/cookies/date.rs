//! Dates in cookies (RFC 6265bis 5.1.1), which servers write in many ways.

use jiff::civil;
use jiff::tz::TimeZone;

use crate::time::UnixMs;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Returns the instant of a date, or `None` if it is none. Instants before 1970 are 1970.
pub(super) fn parse(text: &str) -> Option<UnixMs> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none()
            && let Some(found) = time_of(token)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = digits(token, 1..=2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = digits(token, 2..=4)
        {
            year = Some(found);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let (hour, minute, second) = time?;
    if year < 1601 {
        return None;
    }
    let small = |number: u16| i8::try_from(number).ok();
    let date = civil::DateTime::new(
        i16::try_from(year).ok()?,
        month?,
        small(day?)?,
        small(hour)?,
        small(minute)?,
        small(second)?,
        0,
    );
    let instant = date.ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(UnixMs(u64::try_from(instant.timestamp().as_millisecond()).unwrap_or_default()))
}

fn is_delimiter(c: char) -> bool {
    matches!(c, '\t' | ' '..='/' | ';'..='@' | '['..='`' | '{'..='~')
}

/// Returns the number at the start of a token, if it has this many digits; other characters may follow them.
fn digits(token: &str, count: std::ops::RangeInclusive<usize>) -> Option<u16> {
    let end = token.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(token.len());
    if count.contains(&end) { token[..end].parse().ok() } else { None }
}

fn time_of(token: &str) -> Option<(u16, u16, u16)> {
    let mut parts = token.splitn(3, ':');
    let mut whole = || {
        let part = parts.next()?;
        if part.bytes().all(|byte| byte.is_ascii_digit()) { digits(part, 1..=2) } else { None }
    };
    let (hour, minute) = (whole()?, whole()?);
    let second = digits(parts.next()?, 1..=2)?;
    Some((hour, minute, second))
}

fn month_of(token: &str) -> Option<i8> {
    let start = token.get(..3)?.to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| *month == start)?;
    i8::try_from(at + 1).ok()
}
