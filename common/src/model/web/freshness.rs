//! How long a cached response may be reused (RFC 9111), in a shared cache.

use std::time::Duration;

use crate::time::UnixMs;
use crate::web::headers::Headers;
use crate::web::http_date;

/// Returns how long after its arrival a response is fresh, according to its origin; zero if the origin says nothing or
/// forbids reuse. No heuristic is applied (4.2.2).
pub fn lifetime(headers: &Headers, arrived: UnixMs) -> Duration {
    let varies = headers.all("vary").flat_map(|value| value.split(',')).any(|name| name.trim() == "*");
    let forbidden = ["no-store", "no-cache", "private"].iter().any(|name| directive(headers, name).is_some());
    // Nothing matches `Vary: *` (4.1).
    if varies || forbidden {
        return Duration::ZERO;
    }
    let date = headers.get("date").and_then(|date| instant(date, arrived)).unwrap_or(arrived);
    let total = of_directives(headers).unwrap_or_else(|| {
        // An invalid date counts as past (5.3).
        let expires = headers.get("expires").and_then(|date| instant(date, arrived));
        expires.map_or(Duration::ZERO, |expires| expires.since(date))
    });
    let in_caches = headers.get("age").and_then(seconds).unwrap_or_default();
    total.saturating_sub(in_caches.max(arrived.since(date)))
}

/// Returns the value of `s-maxage`, or else `max-age` (4.2.1); an argument that is not a number counts as absent.
fn of_directives(headers: &Headers) -> Option<Duration> {
    let argument = directive(headers, "s-maxage").or_else(|| directive(headers, "max-age"))?;
    Some(seconds(argument).unwrap_or_default())
}

/// Returns the argument of the first directive of this name in `Cache-Control`, empty if it has none.
fn directive<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    let directives = headers.all("cache-control").flat_map(|value| value.split(','));
    let mut parts = directives.map(|directive| directive.split_once('=').unwrap_or((directive, "")));
    let (_, argument) = parts.find(|(other, _)| other.trim().eq_ignore_ascii_case(name))?;
    Some(argument.trim().trim_matches('"'))
}

/// Parses seconds (1.2.2); values that do not fit saturate.
fn seconds(text: &str) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX))))
}

/// Parses an HTTP date (RFC 9110 5.6.7), received at `arrived`.
fn instant(text: &str, arrived: UnixMs) -> Option<UnixMs> {
    let date = http_date::parse(text, jiff::Timestamp::from_millisecond(arrived.0.try_into().ok()?).ok()?)?;
    u64::try_from(date.as_millisecond()).ok().map(UnixMs)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT
    const ARRIVED: UnixMs = UnixMs(784_111_777_000);

    fn fresh(fields: &[(&str, &str)]) -> u64 {
        lifetime(&fields.iter().copied().collect(), ARRIVED).as_secs()
    }

    #[test]
    fn the_origin_says_how_long_a_response_is_fresh() {
        assert_eq!(fresh(&[]), 0);
        assert_eq!(fresh(&[("last-modified", "Sun, 06 Nov 1984 08:49:37 GMT")]), 0, "nothing is guessed");
        assert_eq!(fresh(&[("cache-control", "max-age=600")]), 600);
        assert_eq!(fresh(&[("cache-control", "public, Max-Age=\"600\"")]), 600);
        assert_eq!(fresh(&[("cache-control", "max-age=600"), ("cache-control", "s-maxage=30")]), 30);
        assert_eq!(fresh(&[("expires", "Sun, 06 Nov 1994 08:59:37 GMT")]), 600);
        assert_eq!(
            fresh(&[("cache-control", "max-age=60"), ("expires", "Sun, 06 Nov 1994 08:59:37 GMT")]),
            60
        );
    }

    #[test]
    fn what_is_no_time_is_none() {
        for nonsense in
            ["max-age", "max-age=", "max-age=-1", "max-age=1.5", "max-age=soon", "max-age=+9", "max_age=9"]
        {
            assert_eq!(fresh(&[("cache-control", nonsense)]), 0, "{nonsense}");
        }
        for nonsense in ["0", "-1", "never", "Sun, 06 Nov 1993 08:49:37 GMT"] {
            assert_eq!(fresh(&[("expires", nonsense)]), 0, "{nonsense}");
        }
        assert_eq!(fresh(&[("cache-control", "max-age=99999999999999999999")]), u64::from(u32::MAX));
    }

    #[test]
    fn what_is_for_one_or_for_none_is_not_kept() {
        for forbids in ["no-store", "NO-STORE", "private", "private=\"set-cookie, x\"", "no-cache"] {
            assert_eq!(
                fresh(&[("cache-control", "max-age=600"), ("cache-control", forbids)]),
                0,
                "{forbids}"
            );
            assert_eq!(fresh(&[("cache-control", &format!("{forbids}, max-age=600"))]), 0, "{forbids}");
        }
        assert_eq!(fresh(&[("cache-control", "max-age=600"), ("vary", "accept, *")]), 0);
        assert_eq!(fresh(&[("cache-control", "max-age=600"), ("vary", "accept")]), 600);
    }

    #[test]
    fn the_time_in_other_caches_counts() {
        assert_eq!(fresh(&[("cache-control", "max-age=600"), ("age", "200")]), 400);
        assert_eq!(fresh(&[("cache-control", "max-age=600"), ("age", "18446744073709551615")]), 0);
        let sent = ("date", "Sun, 06 Nov 1994 08:44:37 GMT");
        assert_eq!(fresh(&[("cache-control", "max-age=600"), sent]), 300);
        assert_eq!(fresh(&[("expires", "Sun, 06 Nov 1994 08:54:37 GMT"), sent]), 300);
        assert_eq!(
            fresh(&[("cache-control", "max-age=600"), ("date", "Sun, 06 Nov 2094 08:44:37 GMT")]),
            600
        );
    }

    proptest! {
        #[test]
        fn whatever_else_a_head_says_what_is_not_to_be_stored_is_not(fields in prop::collection::vec((
            prop_oneof![Just("cache-control"), Just("expires"), Just("date"), Just("age"), Just("vary")],
            "(max-age|s-maxage|private|,|=|\"|[0-9]{1,30}|Sun, 06 Nov 1994 08:49:37 GMT|\\PC){0,8}",
        ), 0..6)) {
            let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            fields.push(("cache-control", "no-store"));
            prop_assert_eq!(fresh(&fields), 0);
        }
    }
}
