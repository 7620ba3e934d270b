//! The rules of a site's `robots.txt` for this crawler, by RFC 9309.
//!
//! Pure: the caller has to fetch the file, and to know what a missing one means. Where the RFC leaves room, a file
//! means what its author will have tested it with, Google's parser: common misspellings of keys are accepted, as
//! is `disallow /` without its colon, and a rule that allows `/dir/index.html` allows `/dir/`. A line that means
//! this crawler applies to it, even if the RFC does not allow such a name ([`RobotsName`]).

mod file;
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

pub use self::file::RobotsFile;
pub use self::key::RobotsKey;
pub use self::name::{InvalidRobotsName, RobotsName};
use self::path::Path;
use self::pattern::Pattern;
pub use self::record::MAX_BYTES;
use self::record::{Agent, Record};
use self::rules::Rules;
use crate::web::url::CanonicalUrl;

/// Time that the fleet keeps a file. With [`MEMORY_TTL`] it is a day, the maximum use of a file (RFC 9309
/// 2.4).
pub const STORE_TTL: Duration = Duration::from_secs(24 * 3600 - MEMORY_TTL.as_secs());
/// Time that a worker keeps a file in memory.
pub const MEMORY_TTL: Duration = Duration::from_secs(300);

/// The rules of one `robots.txt` that apply to one crawler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    rules: Rules,
    crawl_delay: Option<Duration>,
}

impl Robots {
    /// Parses a file for the crawler of this name.
    ///
    /// Any bytes are a valid file; lines without a meaning are ignored. All groups that name the crawler, in any
    /// case, are taken together; if there is none, all groups for `*`.
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

    /// Interprets an origin's answer (RFC 9309 2.3.1): a missing file forbids nothing. `None` for a file that
    /// cannot be read, which forbids everything.
    pub fn new(file: &RobotsFile, crawler: &RobotsName) -> Option<Self> {
        match file.status {
            200..300 => Some(Self::parse(&file.body, crawler)),
            300..500 => Some(Self::allow_all()),
            _ => None,
        }
    }

    /// Returns the rules of a site that has none.
    pub(crate) fn allow_all() -> Self {
        Self::default()
    }

    /// Returns the size of the rules in memory, in bytes: for a file of short rules somewhat more than the file.
    pub fn bytes(&self) -> usize {
        self.rules.bytes()
    }

    /// Returns whether the crawler may request `url`, which is on the host of this file.
    ///
    /// The longest pattern that matches the path and the query decides, and `allow` if two are equally long.
    pub fn allows(&self, url: &CanonicalUrl) -> bool {
        let path = Path::from_url(url);
        path.is_robots_txt() || self.rules.allow(&path)
    }

    /// Returns the time between two requests that the site asks for; the longest, if it asks for several.
    ///
    /// This is not in the RFC. A delay applies to the agents named above it in its group.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }
}

/// All groups of one name, while they are read.
#[derive(Default)]
struct Group {
    exists: bool,
    /// Whether the line being read belongs to it.
    is_open: bool,
    /// The patterns, each with whether it allows.
    rules: Vec<(Pattern, bool)>,
    crawl_delay: Option<Duration>,
}

impl Group {
    /// Takes a `user-agent` line, which may name this group, and may continue the group before it.
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
