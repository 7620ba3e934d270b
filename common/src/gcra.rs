//! Rates, and the arithmetic that spaces requests: the generic cell rate algorithm, as a virtual schedule.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::UnixMs;

/// How often one host may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Rate {
    /// As fast as it answers.
    Unlimited,
    /// So many requests per unit of time.
    Limited {
        /// Requests per `per`.
        count: u32,
        /// The unit of time.
        per: Unit,
    },
}

/// The units that a rate is given in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `s`
    Second,
    /// `m`
    Minute,
    /// `h`
    Hour,
}

impl Unit {
    fn millis(self) -> u64 {
        match self {
            Self::Second => 1_000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Second => 's',
            Self::Minute => 'm',
            Self::Hour => 'h',
        }
    }
}

impl Rate {
    /// The time between two requests at this rate; `None` when there is no limit.
    pub fn interval(self) -> Option<Duration> {
        match self {
            Self::Unlimited => None,
            Self::Limited { count, per } => {
                Some(Duration::from_micros(per.millis() * 1_000 / u64::from(count.max(1))))
            }
        }
    }
}

/// A text that is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a rate: write `60/m`, `5/s`, `100/h` or `unlimited`")]
pub struct InvalidRate(String);

impl FromStr for Rate {
    type Err = InvalidRate;
    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let invalid = || InvalidRate(crate::text::printable(text, 40));
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let (count, unit) = text.split_once('/').ok_or_else(invalid)?;
        let per = match unit {
            "s" => Unit::Second,
            "m" => Unit::Minute,
            "h" => Unit::Hour,
            _ => return Err(invalid()),
        };
        match count.parse() {
            Ok(count @ 1..=1_000_000) => Ok(Self::Limited { count, per }),
            _ => Err(invalid()),
        }
    }
}

impl TryFrom<String> for Rate {
    type Error = InvalidRate;
    fn try_from(text: String) -> Result<Self, InvalidRate> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> String {
        rate.to_string()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Limited { count, per } => write!(f, "{count}/{}", per.letter()),
        }
    }
}

/// How a host is to be asked: one request each `interval`, up to `burst` of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The time between two requests.
    pub interval: Duration,
    /// How many requests may follow each other without a gap after a quiet time; at least 1.
    pub burst: u32,
}

/// Slots further ahead than this are not reserved, so that a backlog that vanishes blocks nobody.
pub const HORIZON: Duration = Duration::from_secs(30);

/// One host's schedule, in microseconds so that fast rates do not round.
///
/// The Redis script `reserve.lua` does the same arithmetic; one conformance suite holds both to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The theoretical arrival time of the next request.
    pub next: u64,
    /// The end of the line of those who wait without a reservation.
    pub line: u64,
}

/// An answer to a request for a slot. Instants are on the clock of whoever keeps the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Reserved: ask the host after this wait, at this instant.
    Granted {
        /// How long from now.
        wait: Duration,
        /// The instant itself, to carry along while parked.
        at: UnixMs,
    },
    /// Too far ahead to reserve: ask again after this wait.
    Later {
        /// How long from now.
        wait: Duration,
    },
}

/// Reserves the next slot at `now` (microseconds) for one URL.
///
/// `held` is a slot that was reserved for it earlier (milliseconds): it is honoured until a quarter of
/// the interval has passed, and void after that.
pub fn reserve(schedule: &mut Schedule, pace: Pace, now: u64, held: Option<UnixMs>) -> Slot {
    let interval = pace.interval.as_micros() as u64;
    if let Some(slot) = held {
        let slot = slot.0.saturating_mul(1_000);
        if now <= slot.saturating_add(interval / 4) {
            return granted(slot, now);
        }
    }
    let burst = interval * u64::from(pace.burst.max(1) - 1);
    let slot = now.max(schedule.next.saturating_sub(burst));
    let horizon = HORIZON.as_micros() as u64;
    if slot > now + horizon {
        schedule.line = schedule.line.max(now + horizon) + interval;
        return Slot::Later { wait: Duration::from_micros(schedule.line - now) };
    }
    schedule.next = schedule.next.max(now) + interval;
    granted(slot, now)
}

fn granted(slot: u64, now: u64) -> Slot {
    Slot::Granted { wait: Duration::from_micros(slot.saturating_sub(now)), at: UnixMs(slot.div_ceil(1_000)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: u64 = 1_700_000_000_000_000;

    fn pace(rate: &str, burst: u32) -> Pace {
        let rate: Rate = rate.parse().unwrap();
        Pace { interval: rate.interval().unwrap(), burst }
    }

    fn wait(slot: Slot) -> u128 {
        match slot {
            Slot::Granted { wait, .. } => wait.as_millis(),
            Slot::Later { wait } => panic!("not granted, wait {wait:?}"),
        }
    }

    #[test]
    fn a_rate_reads_as_it_is_written() {
        for text in ["60/m", "5/s", "100/h", "unlimited"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for bad in ["", "5", "0/s", "-1/s", "5/d", "5/sec", "9999999/s"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn slots_are_an_interval_apart() {
        let mut schedule = Schedule::default();
        let waits: Vec<_> =
            (0..4).map(|_| wait(reserve(&mut schedule, pace("5/s", 1), START, None))).collect();
        assert_eq!(waits, [0, 200, 400, 600]);
    }

    #[test]
    fn a_burst_goes_at_once_and_then_the_rate_holds() {
        let mut schedule = Schedule::default();
        let waits: Vec<_> =
            (0..5).map(|_| wait(reserve(&mut schedule, pace("5/s", 3), START, None))).collect();
        assert_eq!(waits, [0, 0, 0, 200, 400]);
    }

    #[test]
    fn slots_beyond_the_horizon_are_not_reserved() {
        let mut schedule = Schedule::default();
        let one_per_second = pace("1/s", 1);
        for _ in 0..31 {
            wait(reserve(&mut schedule, one_per_second, START, None));
        }
        let before = schedule.next;
        let later = reserve(&mut schedule, one_per_second, START, None);
        assert_eq!(later, Slot::Later { wait: Duration::from_secs(31) });
        assert_eq!(schedule.next, before, "a cancelled backlog must block nobody");
    }

    #[test]
    fn a_held_slot_is_honoured_in_time_and_void_after() {
        let mut schedule = Schedule::default();
        let one_per_second = pace("1/s", 1);
        wait(reserve(&mut schedule, one_per_second, START, None));
        let Slot::Granted { at, .. } = reserve(&mut schedule, one_per_second, START, None) else { panic!() };
        let in_time = reserve(&mut schedule, one_per_second, START + 1_200_000, Some(at));
        assert_eq!(wait(in_time), 0);
        assert_eq!(schedule.next, START + 2_000_000, "an honoured slot reserves nothing anew");
        let too_late = reserve(&mut schedule, one_per_second, START + 1_300_000, Some(at));
        assert_eq!(wait(too_late), 700);
    }

    proptest! {
        #[test]
        fn no_window_holds_more_than_the_rate_and_the_burst(
            count in 1u32..50, burst in 1u32..5, gaps in prop::collection::vec(0u64..3_000_000, 1..200)
        ) {
            let pace = Pace { interval: Duration::from_micros(1_000_000 / u64::from(count)), burst };
            let interval = pace.interval.as_micros() as u64;
            let mut schedule = Schedule::default();
            let mut now = START;
            let mut slots = Vec::new();
            for gap in gaps {
                now += gap;
                if let Slot::Granted { wait, .. } = reserve(&mut schedule, pace, now, None) {
                    slots.push(now + wait.as_micros() as u64);
                }
            }
            prop_assert!(slots.is_sorted());
            let width = burst as usize + 1;
            for window in slots.windows(width) {
                prop_assert!(window[width - 1] - window[0] >= interval - 1);
            }
        }
    }
}
