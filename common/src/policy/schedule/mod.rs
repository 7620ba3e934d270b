//! Cron schedules: the times at which crawls of a spider are submitted automatically.
//!
//! Due times are arithmetic on instants. `trawl-jobs` submits crawls accordingly, and stores the instant up to which
//! this is done.

mod cron;
mod field;

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};

pub use cron::{Cron, InvalidCron};

use crate::time::UnixMs;

/// An instant is missed if no worker has checked the schedule for this long after it.
const PUNCTUAL: Duration = Duration::from_secs(60);

/// `[schedule]` of a spider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The times.
    pub cron: Cron,
    /// The time zone of the times.
    pub timezone: TimeZone,
    /// How to handle instants at which the fleet was down.
    pub missed: Missed,
    /// How to handle instants at which the spider's last crawl is not over.
    pub overlap: Overlap,
}

/// How to handle missed instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Missed {
    /// Submit nothing.
    #[default]
    Skip,
    /// Submit a crawl for the last of them.
    Run,
}

/// How to handle an instant at which the last crawl is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Overlap {
    /// Submit nothing.
    #[default]
    Skip,
    /// Let the job wait in the queue.
    Queue,
}

/// The result of checking a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The crawl of this instant is to be submitted.
    Run(UnixMs),
    /// This instant was missed, and is to be skipped.
    Missed(UnixMs),
}

/// Looks up a time zone by its name in the IANA database, as `Europe/Berlin`.
///
/// # Errors
/// Returns a hint for a name that does not exist.
pub fn timezone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).map_err(|_| {
        let shown = crate::text::printable(name, 40);
        format!(
            "there is no time zone `{shown}`: write a name of the IANA database, as `Europe/Berlin` or `UTC`"
        )
    })
}

impl From<Cron> for Schedule {
    /// Creates a schedule of these times in UTC.
    fn from(cron: Cron) -> Self {
        Self { cron, timezone: TimeZone::UTC, missed: Missed::default(), overlap: Overlap::default() }
    }
}

impl Schedule {
    /// Returns the first instant after this one; `None` at the end of the calendar. A time that the clocks skip is
    /// moved to the end of the gap; of one that occurs twice, the first counts.
    pub fn next(&self, after: UnixMs) -> Option<UnixMs> {
        let after = timestamp(after)?;
        let mut time = self.timezone.to_datetime(after);
        loop {
            time = self.cron.next(time)?;
            let instant = self.instant(time)?;
            // The next time after the first of two equal hours may be in the second.
            if instant > after {
                return Some(UnixMs(u64::try_from(instant.as_millisecond()).ok()?));
            }
        }
    }

    /// Returns the instants after this one.
    pub fn instants(&self, after: UnixMs) -> impl Iterator<Item = UnixMs> {
        std::iter::successors(self.next(after), |instant| self.next(*instant))
    }

    fn instant(&self, time: DateTime) -> Option<Timestamp> {
        let offset = match self.timezone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Fold { before, .. } => before,
            AmbiguousOffset::Gap { after, .. } => {
                let before_gap = after.to_timestamp(time).ok()?;
                return self.timezone.following(before_gap).next().map(|gap| gap.timestamp());
            }
        };
        offset.to_timestamp(time).ok()
    }

    /// Returns the action at `now`, if everything up to `until` is done. The result is the same for all callers between
    /// two instants, so they submit one crawl.
    pub fn due(&self, until: UnixMs, now: UnixMs) -> Option<Due> {
        let instant = self.latest(until, now)?;
        Some(match self.missed {
            Missed::Skip if now.since(instant) > PUNCTUAL => Due::Missed(instant),
            Missed::Skip | Missed::Run => Due::Run(instant),
        })
    }

    /// Returns the last instant after `until`, up to `now`.
    fn latest(&self, until: UnixMs, now: UnixMs) -> Option<UnixMs> {
        // Only few instants are checked: those of the last minute, else of the last half hour, the last day, and so on.
        let mut reach = Duration::from_secs(60);
        loop {
            let from = until.max(UnixMs(now.0.saturating_sub(reach.as_millis() as u64)));
            match self.instants(from).take_while(|instant| *instant <= now).last() {
                None if from > until => reach = reach.saturating_mul(32),
                latest => return latest,
            }
        }
    }

    /// Formats an instant in the schedule's time zone: `2026-11-24T03:00:00+01:00`.
    pub fn shown(&self, instant: UnixMs) -> String {
        match timestamp(instant) {
            Some(instant) => instant.display_with_offset(self.timezone.to_offset(instant)).to_string(),
            None => instant.to_string(),
        }
    }

    /// The name of the time zone.
    pub fn timezone_name(&self) -> &str {
        self.timezone.iana_name().unwrap_or("UTC")
    }
}

fn timestamp(instant: UnixMs) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(instant.0).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_berlin(cron: &str) -> Schedule {
        Schedule {
            timezone: timezone("Europe/Berlin").unwrap(),
            ..Schedule::from(cron.parse::<Cron>().unwrap())
        }
    }

    fn at(text: &str) -> UnixMs {
        UnixMs(text.parse::<Timestamp>().unwrap().as_millisecond() as u64)
    }

    #[track_caller]
    fn next(schedule: &Schedule, after: &str, expected: &[&str]) {
        let instants = schedule.instants(at(after)).take(expected.len());
        let found: Vec<String> = instants.map(|instant| schedule.shown(instant)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn times_are_those_of_the_clocks_of_a_zone() {
        let daily = in_berlin("0 3 * * *");
        next(&daily, "2026-06-30T12:00:00Z", &["2026-07-01T03:00:00+02:00", "2026-07-02T03:00:00+02:00"]);
        next(&daily, "2026-12-31T02:00:00Z", &["2027-01-01T03:00:00+01:00"]);
        assert!(timezone("Europe/Berln").unwrap_err().contains("`Europe/Berln`"));
        assert_eq!((daily.timezone_name(), timezone("UTC")), ("Europe/Berlin", Ok(TimeZone::UTC)));
    }

    #[test]
    fn a_time_that_does_not_exist_is_when_the_clocks_go_on() {
        // On 29 March 2026, the clocks go from 02:00 to 03:00.
        next(
            &in_berlin("30 2 * * *"),
            "2026-03-27T12:00:00Z",
            &["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
        );
        next(
            &in_berlin("*/20 * * * *"),
            "2026-03-29T00:40:00Z",
            &["2026-03-29T03:00:00+02:00", "2026-03-29T03:20:00+02:00"],
        );
    }

    #[test]
    fn a_time_that_comes_twice_runs_once() {
        // On 25 October 2026, the clocks go from 03:00 back to 02:00.
        let nightly = in_berlin("30 2 * * *");
        let runs = ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"];
        next(&nightly, "2026-10-24T12:00:00Z", &runs);
        next(&nightly, "2026-10-25T00:45:00Z", &runs[1..]);
        next(&nightly, "2026-10-25T01:15:00Z", &runs[1..]);
    }

    #[test]
    fn what_was_missed_is_left_out_or_made_up_for_once() {
        let (until, now) = (at("2026-11-20T03:00:00Z"), at("2026-11-23T12:00:00Z"));
        let skips = Schedule::from("0 3 * * *".parse::<Cron>().unwrap());
        let runs = Schedule { missed: Missed::Run, ..skips.clone() };
        let last = at("2026-11-23T03:00:00Z");
        assert_eq!(skips.due(until, now), Some(Due::Missed(last)));
        assert_eq!(runs.due(until, now), Some(Due::Run(last)));
        assert_eq!(runs.due(last, now), None);
        for late in [0, 1, 59_999, 60_000] {
            let now = last.plus(Duration::from_millis(late));
            assert_eq!(skips.due(until, now), Some(Due::Run(last)));
        }
    }

    #[test]
    fn a_clock_that_is_set_back_repeats_nothing() {
        let minutely = Schedule::from("* * * * *".parse::<Cron>().unwrap());
        let until = at("2026-11-23T12:00:00Z");
        for back in [0, 1, 3_600_000] {
            assert_eq!(minutely.due(until, UnixMs(until.0 - back)), None);
        }
    }

    fn schedules() -> impl Strategy<Value = Schedule> {
        let crons = ["* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 31 * *", "15 1-3 * * sun", "0 12 29 2 *"];
        let zones = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"];
        let missed = prop_oneof![Just(Missed::Skip), Just(Missed::Run)];
        let parts = (prop::sample::select(crons.to_vec()), prop::sample::select(zones.to_vec()), missed);
        parts.prop_map(|(cron, zone, missed)| {
            let timezone = timezone(zone).unwrap();
            Schedule { timezone, missed, ..Schedule::from(cron.parse::<Cron>().unwrap()) }
        })
    }

    fn instants() -> impl Strategy<Value = UnixMs> {
        (at("2025-01-01T00:00:00Z").0..at("2029-01-01T00:00:00Z").0).prop_map(UnixMs)
    }

    proptest! {
        #[test]
        fn what_comes_next_comes_later_and_is_so_from_anywhere_before(
            schedule in schedules(), after in instants(), later in 0..90_000_000_u64
        ) {
            let first = schedule.next(after).unwrap();
            prop_assert!(first > after);
            let between = UnixMs(after.0 + later);
            if between < first {
                prop_assert_eq!(schedule.next(between), Some(first));
            }
        }

        #[test]
        fn what_is_due_is_the_last_instant_and_is_due_once(
            schedule in schedules(), until in instants(), away in 0..4_000_000_000_u64
        ) {
            let now = UnixMs(until.0 + away);
            match schedule.due(until, now) {
                None => prop_assert!(schedule.next(until).unwrap() > now),
                Some(Due::Run(instant) | Due::Missed(instant)) => {
                    prop_assert!(until < instant && instant <= now);
                    prop_assert!(schedule.next(instant).unwrap() > now);
                    prop_assert_eq!(schedule.due(instant, now), None);
                }
            }
        }
    }
}
