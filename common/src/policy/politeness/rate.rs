//! Rates: a number of requests in a unit of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;

/// The rate at which one host may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Rate {
    /// As fast as the host answers.
    Unlimited,
    /// A number of requests per unit of time.
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
    /// Returns the time between two requests at this rate; `None` if there is no limit.
    pub fn interval(self) -> Option<Duration> {
        match self {
            Self::Unlimited => None,
            Self::Limited { count, per } => {
                Some(Duration::from_micros(per.millis() * 1_000 / u64::from(count.max(1))))
            }
        }
    }
}

/// The error for a text that is not a rate.
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

as_text!(Rate);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Limited { count, per } => write!(f, "{count}/{}", per.letter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_as_it_is_written() {
        for text in ["60/m", "5/s", "100/h", "unlimited"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for bad in ["", "5", "0/s", "-1/s", "5/d", "5/sec", "9999999/s"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }
}
