//! Ranges of TCP ports.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;

/// One port, `443`, or an inclusive range, `1024-65535`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PortRange {
    first: u16,
    last: u16,
}

/// The error for a text that names no ports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no port: write `443` or `1024-65535`")]
pub struct NoPortRange(String);

impl PortRange {
    /// Returns the ports from `first` to `last`.
    pub const fn range(first: u16, last: u16) -> Self {
        Self { first, last }
    }

    /// Returns whether `port` is one of them.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl FromStr for PortRange {
    type Err = NoPortRange;
    fn from_str(text: &str) -> Result<Self, NoPortRange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ends = first.trim().parse().ok().zip(last.trim().parse().ok());
        let ports = ends.map(|(first, last)| Self { first, last });
        ports.filter(|ports| ports.first <= ports.last).ok_or_else(|| NoPortRange(text.to_owned()))
    }
}

as_text!(PortRange);

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return self.first.fmt(f);
        }
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_both_its_ends() {
        let ports: PortRange = "1024-65535".parse().unwrap();
        assert!(ports.contains(1024) && ports.contains(65535) && !ports.contains(1023));
        let one: PortRange = "443".parse().unwrap();
        assert!(one.contains(443) && !one.contains(444));
    }

    #[test]
    fn ports_are_written_as_they_are_read() {
        for text in ["80", "1024-65535"] {
            assert_eq!(text.parse::<PortRange>().unwrap().to_string(), text);
        }
        for text in ["", "-", "http", "65536", "9-1", "1-2-3"] {
            assert!(text.parse::<PortRange>().unwrap_err().to_string().contains("443"), "{text}");
        }
    }
}
