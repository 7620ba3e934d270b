//! Dead letters of a crawl, and the commands that list them and send them again.

use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::{CrawlId, SpiderName};

use crate::{Global, count, counted};

/// The place where `trawl dlq` finds the dead letters of a crawl.
#[derive(Clone, Debug)]
pub enum DeadLetters {
    /// On the fleet's servers.
    Fleet,
    /// In a state file, quoted for a shell.
    File(String),
    /// Nowhere: they go with the crawl.
    Gone,
}

impl DeadLetters {
    /// Returns the flags after a space with which commands find the place.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::File(file) => format!(" --state {file}"),
            Self::Fleet | Self::Gone => String::new(),
        }
    }

    /// Returns the flags with which `trawl dlq` finds those of a crawl; `None` if it cannot.
    pub(crate) fn flags(&self, crawl: &CrawlId) -> Option<String> {
        match self {
            Self::Fleet => Some(format!("--crawl {crawl}")),
            Self::File(file) => Some(format!("--state {file}")),
            Self::Gone => None,
        }
    }

    /// Reports the dead letters of a crawl, with the commands that list them.
    pub(crate) fn say(&self, stats: &CrawlStats) {
        let parts = [(stats.counts.failed, "failed"), (stats.counts.expired, "expired")];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts.map(|(number, how)| format!("{} {how}", count(*number))).collect();
        if let (Some(flags), false) = (self.flags(&stats.crawl), parts.is_empty()) {
            anstream::eprintln!("{}: `trawl dlq list {flags}`", parts.join(", "));
        }
        self.say_invalid(&stats.crawl, stats.invalid());
    }

    /// Reports entries of a crawl's sources that are no URLs, with the command that lists them.
    pub fn say_invalid(&self, crawl: &CrawlId, number: u64) {
        if let (Some(flags), 1..) = (self.flags(crawl), number) {
            anstream::eprintln!("{} invalid: `trawl dlq list {flags} --reason invalid`", count(number));
        }
    }

    /// Reports URLs that a crawl left out as they failed before, with the command that sends them again.
    pub fn say_failed_before(&self, global: &Global, spider: &SpiderName, number: u64) {
        if number > 0 {
            let (urls, replay) = (counted(number, "URL"), self.replay(spider));
            global.say(format_args!("left out: {urls} that failed before; {replay} sends them again"));
        }
    }

    /// Warns that nothing is new as these URLs failed before, with the command that sends them again.
    pub fn warn_nothing_new(&self, spider: &SpiderName, number: u64) {
        let (urls, replay) = (counted(number, "URL"), self.replay(spider));
        anstream::eprintln!("warning: nothing new: {urls} failed before; {replay} sends what failed again");
    }

    /// Returns the command that sends again what failed in the crawls of a spider.
    fn replay(&self, spider: &SpiderName) -> String {
        format!("`trawl dlq replay --spider {spider}{}`", self.place())
    }
}
