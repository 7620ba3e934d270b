//! What a site's `robots.txt` asks of this crawler, by RFC 9309.
//!
//! Pure: it is for the caller to fetch the file, and to know what a missing one means. Where the RFC leaves room, a
//! file means what its author will have tested it with, Google's parser: keys in usual misspellings are taken, as is
//! `disallow /` without its colon, and a rule that allows `/dir/index.html` allows `/dir/`. A line that means this crawler
//! is for it, also where the RFC knows no such name ([`RobotsName`]).

mod key;
mod name;
mod path;
mod pattern;
mod record;
mod rules;
mod spelling;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::key::RobotsKey;
pub use self::name::{InvalidRobotsName, RobotsName};
use self::path::Path;
use self::pattern::Pattern;
pub use self::record::MAX_BYTES;
use self::record::{Agent, Record};
use self::rules::Rules;
use crate::ports::RobotsFile;
use crate::web::url::CanonicalUrl;

/// A file is used for no longer than a day (RFC 9309 2.4): so long where the fleet keeps it, and then in a worker's memory.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 3600 - REMEMBERED_FOR.as_secs());
/// How long in a worker's memory.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(300);

/// The rules of one `robots.txt` that apply to one crawler, and no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    rules: Rules,
    crawl_delay: Option<Duration>,
}

impl Robots {
    /// Reads a file for the crawler of this name.
    ///
    /// Any bytes are a file: what says nothing is ignored. All groups that name the crawler, in any case, are taken
    /// together; if there is none, all groups for `*`.
    pub fn parse(body: &[u8], crawler: &RobotsName) -> Self {
        let mut own = Group::default();
        let mut everyone = Group::default();
        let mut has_rules = false;
        for record in record::records(body) {
            match record {
                Record::Agent(agent) => {
                    // A user agent after a rule starts another group; after anything else it joins the one before.
                    let goes_on = !std::mem::take(&mut has_rules);
                    own.name(goes_on, matches!(agent, Agent::Named(value) if crawler.is_meant_by(value)));
                    everyone.name(goes_on, agent == Agent::Everyone);
                }
                Record::Rule { allow, path } => {
                    has_rules = true;
                    own.rule(allow, path);
                    everyone.rule(allow, path);
                }
                Record::CrawlDelay(delay) => {
                    own.delay(delay);
                    everyone.delay(delay);
                }
            }
        }
        if own.exists { own.into_robots() } else { everyone.into_robots() }
    }

    /// What an origin's answer means (RFC 9309 2.3.1): a file that is not there forbids nothing. `None` for one that cannot be
    /// read: that forbids everything.
    pub fn of(file: &RobotsFile, crawler: &RobotsName) -> Option<Self> {
        match file.status {
            200..300 => Some(Self::parse(&file.body, crawler)),
            300..500 => Some(Self::allow_all()),
            _ => None,
        }
    }

    /// The rules of a site that has none.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// How many bytes its rules take in memory: of a file of short ones somewhat more than the file.
    pub fn bytes(&self) -> usize {
        self.rules.bytes()
    }

    /// Whether the crawler may ask for `url`, of whose host this is the file.
    ///
    /// The longest pattern that fits the path and the query decides, and `allow` where two are as long.
    pub fn allows(&self, url: &CanonicalUrl) -> bool {
        let path = Path::of(url);
        path.is_robots_txt() || self.rules.allow(&path)
    }

    /// The time between two requests that the site asks for; the longest, if it asks for several.
    ///
    /// Not in the RFC. A delay is that of the agents named above it in its group.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }
}

/// All groups of one name, as they are read.
#[derive(Default)]
struct Group {
    exists: bool,
    /// Whether the line being read belongs to it.
    is_open: bool,
    /// With whether each allows.
    rules: Vec<(Pattern, bool)>,
    crawl_delay: Option<Duration>,
}

impl Group {
    /// Takes a `user-agent` line, which names this group or not, and which may go on with the group before it.
    fn name(&mut self, goes_on: bool, is_named: bool) {
        self.exists |= is_named;
        self.is_open = is_named || goes_on && self.is_open;
    }

    fn rule(&mut self, allow: bool, path: &[u8]) {
        if !self.is_open {
            return;
        }
        let mut add = |path: &[u8]| self.rules.extend(Pattern::parse(path).map(|pattern| (pattern, allow)));
        add(path);
        if allow
            && let Some(folder) = path.strip_suffix(b"index.html").filter(|folder| folder.ends_with(b"/"))
        {
            add(&[folder, b"$"].concat());
        }
    }

    fn delay(&mut self, delay: Duration) {
        if self.is_open {
            self.crawl_delay = self.crawl_delay.max(Some(delay));
        }
    }

    fn into_robots(self) -> Robots {
        Robots { rules: Rules::new(self.rules), crawl_delay: self.crawl_delay }
    }
}
