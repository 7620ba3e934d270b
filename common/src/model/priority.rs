//! Priorities of jobs, tasks and requests.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::printable;

/// The priority of a job or a task: any finite number, the highest first. The default is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Priority(f64);

/// The error for a text or number that is no priority.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a priority: write a number, as 10 or -0.5; the highest is taken first")]
pub struct InvalidPriority(String);

impl Priority {
    /// Returns the number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Returns whether it is above the default, and so comes before others.
    pub fn is_urgent(self) -> bool {
        self > Self::default()
    }
}

impl TryFrom<f64> for Priority {
    type Error = InvalidPriority;
    fn try_from(number: f64) -> Result<Self, InvalidPriority> {
        match number.is_finite() {
            // -0 becomes 0: the two would be one number with two spellings.
            true => Ok(Self(number + 0.0)),
            false => Err(InvalidPriority(number.to_string())),
        }
    }
}

impl From<Priority> for f64 {
    fn from(priority: Priority) -> Self {
        priority.0
    }
}

impl FromStr for Priority {
    type Err = InvalidPriority;
    fn from_str(text: &str) -> Result<Self, InvalidPriority> {
        let invalid = || InvalidPriority(printable(text, 40));
        text.parse::<f64>().ok().and_then(|number| number.try_into().ok()).ok_or_else(invalid)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Eq for Priority {}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> Ordering {
        // No number is NaN, and no zero negative.
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_finite_number_is_no_priority() {
        for bad in ["", "high", "NaN", "inf", "-inf", "1e999", "1,5"] {
            let error = bad.parse::<Priority>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{bad}`")), "{error}");
        }
        assert!(serde_json::from_str::<Priority>("1e999").is_err());
        for good in ["0", "-2.5", "10", "0.1"] {
            assert_eq!(good.parse::<Priority>().unwrap().to_string(), good);
        }
        assert_eq!("-0".parse::<Priority>().unwrap().to_string(), "0");
    }
}
