//! The time in which a crawl ran.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::time::UnixMs;

/// The time from the start of a crawl to its end. As text two instants, `1795253834355-1795253899120`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Period {
    /// Its first instant.
    pub from: UnixMs,
    /// Its last instant.
    pub to: UnixMs,
}

impl Period {
    /// Whether an instant is in it.
    pub fn contains(self, at: UnixMs) -> bool {
        (self.from..=self.to).contains(&at)
    }
}

/// The error for a text that is no [`Period`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no period: that is two instants in ms, as 1795253834355-1795253899120")]
pub struct InvalidPeriod(String);

impl FromStr for Period {
    type Err = InvalidPeriod;
    fn from_str(text: &str) -> Result<Self, InvalidPeriod> {
        let instant = |text: &str| text.parse().ok().map(UnixMs);
        let period = text.split_once('-').and_then(|(from, to)| Some((instant(from)?, instant(to)?)));
        period.map(|(from, to)| Self { from, to }).ok_or_else(|| InvalidPeriod(text.to_owned()))
    }
}

as_text!(Period);

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from.0, self.to.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_reads_as_it_is_written_and_has_both_its_ends() {
        let period: Period = "5-9".parse().unwrap();
        assert_eq!(period.to_string(), "5-9");
        assert_eq!([4, 5, 9, 10].map(|ms| period.contains(UnixMs(ms))), [false, true, true, false]);
        assert!("5".parse::<Period>().is_err() && "5-x".parse::<Period>().is_err());
    }
}
