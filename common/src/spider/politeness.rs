//! `[politeness]` of a spider.

use crate::politeness::rate::Rate;
use crate::settings::{HostRule, Politeness, RobotsFor};

/// The values of a spider that override the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolitenessOverrides {
    /// The rate of requests to one host.
    pub rate: Option<Rate>,
    /// Number of requests that may follow each other without a gap.
    pub burst: Option<u32>,
    /// Maximum number of requests in flight to one host.
    pub concurrency: Option<u32>,
    /// Whether robots.txt is obeyed.
    pub robots: Option<bool>,
    /// The scope of one robots.txt.
    pub robots_for: Option<RobotsFor>,
    /// Exceptions for some hosts, which come before those of the settings.
    pub host: Vec<HostRule>,
}

impl PolitenessOverrides {
    /// Returns the politeness of a spider: by its file, and by `settings` for what that does not set.
    pub fn apply(&self, settings: &Politeness) -> Politeness {
        Politeness {
            rate: self.rate.unwrap_or(settings.rate),
            burst: self.burst.unwrap_or(settings.burst),
            concurrency: self.concurrency.or(settings.concurrency),
            robots: self.robots.unwrap_or(settings.robots),
            robots_for: self.robots_for.unwrap_or(settings.robots_for),
            host: self.host.iter().chain(&settings.host).cloned().collect(),
            ..settings.clone()
        }
    }
}
