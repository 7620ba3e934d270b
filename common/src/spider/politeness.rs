//! `[politeness]` of a spider.

use crate::politeness::rate::Rate;
use crate::settings::{HostRule, Politeness, RobotsFor};

/// What stands in place of the settings, where a spider says anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolitenessOverrides {
    /// How often one host is asked.
    pub rate: Option<Rate>,
    /// How many requests may follow each other without a gap.
    pub burst: Option<u32>,
    /// How many requests to one host may be under way at once.
    pub concurrency: Option<u32>,
    /// Whether robots.txt is obeyed.
    pub robots: Option<bool>,
    /// What one robots.txt speaks for.
    pub robots_for: Option<RobotsFor>,
    /// What differs for some hosts, before the settings' own rules.
    pub host: Vec<HostRule>,
}

impl PolitenessOverrides {
    /// How a spider asks hosts: as its file says, and as `settings` where that says nothing.
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
