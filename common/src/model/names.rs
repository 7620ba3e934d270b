//! The names of projects, spiders, crawls, workers, readers, subscribers and callers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::as_text::{as_text, text};
use crate::time::UnixMs;
use crate::web::url::Fingerprint;

/// The error for a name with characters other than `a-z0-9_.-`, one that begins with a dot, or one that is too
/// long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not a name: use 1 to {most} of a-z, 0-9, `_`, `-` and, but for the first, `.`")]
pub struct InvalidName {
    shown: String,
    most: usize,
}

fn parse_name(text: &str, most: usize) -> Result<Arc<str>, InvalidName> {
    let fits = (1..=most).contains(&text.len());
    let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(&b));
    // Names become parts of paths, where `.` and `..` are the folders of others.
    if fits && plain && !text.starts_with('.') {
        Ok(text.into())
    } else {
        let shown: String = text.chars().filter(|c| !c.is_control()).take(64).collect();
        Err(InvalidName { shown, most })
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $most:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                parse_name(text, $most).map(Self)
            }
        }

        text!($name);
        as_text!($name);
    };
}

name! {
    /// A spider: a named definition of where to start, what to follow and what to extract.
    SpiderName, 64
}
name! {
    /// One run of a spider. Its maximum length is above that of a spider's name, because it may hold one
    /// ([`CrawlRef::adhoc_of`]).
    CrawlId, 72
}
name! {
    /// One process of the fleet: a worker, or a run of a producer.
    WorkerId, 64
}

name! {
    /// A reader of the stream of items, which keeps its position.
    ReaderName, 64
}

name! {
    /// A subscriber to events, for which a queue keeps them.
    SubscriberName, 64
}

name! {
    /// A caller of the HTTP API with a token.
    CallerName, 64
}

name! {
    /// A runner: a worker on a machine that reaches nothing but the HTTP API. It is short enough for a [`WorkerId`].
    RunnerName, 48
}

name! {
    /// A project: the owner of spiders and jobs.
    ProjectName, 64
}

impl Default for ProjectName {
    /// Returns the project that is used if none is named.
    fn default() -> Self {
        Self("default".into())
    }
}

impl Default for SpiderName {
    /// Returns the spider that needs no file.
    fn default() -> Self {
        Self("default".into())
    }
}

impl CrawlId {
    /// Returns whether it is the id of an ad-hoc crawl: each spider has one of its own.
    pub fn is_adhoc(&self) -> bool {
        self.0.strip_prefix(ADHOC).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Returns an id that sorts by time and is unique without coordination: `20231114-221320-a1b2c3`.
    pub fn generate(now: UnixMs) -> Self {
        Self::at(now, &random_suffix())
    }

    /// Returns the id of the crawl that a spider's schedule starts at an instant, the same in every worker: like
    /// one that is [generated](CrawlId::generate), with a longer suffix.
    pub fn of_schedule(spider: &SpiderRef, instant: UnixMs) -> Self {
        Self::at(instant, &format!("{:016x}", Fingerprint::from_text(&format!("{spider} {instant}")).short()))
    }

    fn at(instant: UnixMs, suffix: &str) -> Self {
        Self(format!("{}-{suffix}", instant.stamp()).into())
    }

    /// Whether this is an id of [`CrawlId::generate`] or [`CrawlId::of_schedule`] that begins so. A person's name for a
    /// crawl is none.
    pub fn is_made_from(&self, start: &str) -> bool {
        let parts: Vec<&str> = self.0.split('-').collect();
        let is_made = match parts[..] {
            [day, time, suffix] => {
                let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
                let is_suffix = matches!(suffix.len(), 6 | 16);
                day.len() == 8 && time.len() == 6 && is_suffix && is_number(day) && is_number(time)
            }
            _ => false,
        };
        is_made && self.0.starts_with(start)
    }
}

impl WorkerId {
    /// Returns this machine's name and a random suffix, so that a restarted process is a new one.
    pub fn of_this_machine() -> Self {
        Self::generate(&std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default())
    }

    /// Returns the id of a worker that is a runner of this name.
    pub fn of_runner(name: &RunnerName) -> Self {
        Self(format!("{name}-{}", random_suffix()).into())
    }

    /// Returns whether a process on this machine generated it.
    pub fn is_of_this_machine(&self) -> bool {
        self.machine() == Self::of_this_machine().machine()
    }

    /// Returns the name of its machine, which is the part before the random suffix.
    pub fn machine(&self) -> &str {
        self.0.rsplit_once('-').map_or(&*self.0, |(machine, _)| machine)
    }

    fn generate(machine: &str) -> Self {
        let machine: String = machine
            .to_ascii_lowercase()
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
            .take(48)
            .collect();
        let machine = if machine.is_empty() { "worker" } else { &machine };
        Self(format!("{machine}-{}", random_suffix()).into())
    }
}

fn random_suffix() -> String {
    format!("{:06x}", rand::random::<u32>() & 0xff_ffff)
}

/// The id of the default spider's ad-hoc crawl; those of other spiders begin with it.
const ADHOC: &str = "adhoc";

/// A crawl together with its spider: the address of its stats.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CrawlRef {
    /// The crawl.
    pub id: CrawlId,
    /// The spider that it runs.
    pub spider: SpiderName,
}

impl CrawlRef {
    /// Returns the crawl of a message without headers: a URL that someone published by hand.
    pub fn adhoc() -> Self {
        Self::adhoc_of(SpiderName::default())
    }

    /// Returns a spider's ad-hoc crawl, for URLs that others publish: `adhoc`, or `adhoc.<spider>` for any spider
    /// but the default one.
    pub fn adhoc_of(spider: SpiderName) -> Self {
        let id = match spider == SpiderName::default() {
            true => ADHOC.into(),
            false => format!("{ADHOC}.{spider}").into(),
        };
        Self { id: CrawlId(id), spider }
    }

    /// Returns whether this is an ad-hoc crawl, which never ends.
    pub fn is_adhoc(&self) -> bool {
        match self.id.as_str().strip_prefix(ADHOC) {
            Some("") => self.spider == SpiderName::default(),
            Some(rest) => rest.strip_prefix('.') == Some(self.spider.as_str()),
            None => false,
        }
    }
}

/// A spider together with its project: `shop` in the default one, `books/shop` in another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpiderRef {
    /// The project.
    pub project: ProjectName,
    /// The spider.
    pub spider: SpiderName,
}

impl From<SpiderName> for SpiderRef {
    /// Returns the spider in the default project.
    fn from(spider: SpiderName) -> Self {
        Self { project: ProjectName::default(), spider }
    }
}

impl FromStr for SpiderRef {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        match text.split_once('/') {
            Some((project, spider)) => Ok(Self { project: project.parse()?, spider: spider.parse()? }),
            None => Ok(text.parse::<SpiderName>()?.into()),
        }
    }
}

impl fmt::Display for SpiderRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.project != ProjectName::default() {
            write!(f, "{}/", self.project)?;
        }
        self.spider.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spider_of_another_project_than_the_default_one_is_named_with_it() {
        for (text, shown) in [("shop", "shop"), ("default/shop", "shop"), ("books/shop", "books/shop")] {
            assert_eq!(text.parse::<SpiderRef>().unwrap().to_string(), shown);
        }
        for bad in ["", "/", "books/", "/shop", "a/b/c", "../shop"] {
            assert!(bad.parse::<SpiderRef>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_name_that_could_break_a_key_or_a_terminal_is_refused() {
        for bad in [
            "",
            "UPPER",
            "a b",
            "a{b}",
            "a:b",
            "a\u{1b}[0m",
            ".",
            "..",
            ".a",
            "../a",
            "a/b",
            "a\\b",
            &"x".repeat(65),
        ] {
            assert!(bad.parse::<SpiderName>().is_err(), "{bad:?}");
        }
        assert_eq!("docs-2_x".parse::<SpiderName>().unwrap().as_str(), "docs-2_x");
    }

    #[test]
    fn every_spider_has_a_crawl_of_its_own_for_what_others_publish() {
        for (spider, id) in [("default", "adhoc"), ("docs", "adhoc.docs"), (&"x".repeat(64), "adhoc.")] {
            let adhoc = CrawlRef::adhoc_of(spider.parse().unwrap());
            assert!(adhoc.is_adhoc() && adhoc.id.as_str().starts_with(id), "{adhoc:?}");
            assert_eq!(adhoc.id.as_str().parse::<CrawlId>().unwrap(), adhoc.id, "it survives a header");
        }
        let docs = CrawlRef::adhoc_of("docs".parse().unwrap());
        assert!(!CrawlRef { spider: "other".parse().unwrap(), ..docs }.is_adhoc());
    }

    #[test]
    fn a_crawl_id_carries_its_date() {
        let id = CrawlId::generate(UnixMs(1_700_000_000_123));
        assert!(id.as_str().starts_with("20231114-221320-"), "{id}");
    }

    #[test]
    fn a_worker_id_survives_any_machine_name() {
        assert!(WorkerId::generate("Ünïcode Host.local").as_str().parse::<WorkerId>().is_ok());
        assert!(WorkerId::generate("").as_str().starts_with("worker-"));
    }

    #[test]
    fn a_worker_id_tells_its_machine() {
        assert!(WorkerId::of_this_machine().is_of_this_machine());
        let [one, another] = ["node-1", "node-10"].map(WorkerId::generate);
        assert_eq!(one.machine(), "node-1");
        assert_ne!(one.machine(), another.machine());
    }
}
