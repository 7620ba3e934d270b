//! What was ordered of crawls and hosts, kept apart from the store that carries it out.
//!
//! Redis is where a crawl's state is read and changed. What can't be known from the messages that wait in the queues is written
//! to a stream of RabbitMQ as well: the terms that a crawl was opened with, pauses, ends, blocked hosts. A store that has
//! lost its data learns them from there, so that a limit holds and what was cancelled stays so.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use trawl_common::format::is_newer;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::ports::Terms;
use trawl_common::web::host::HostKey;

/// One entry, as JSON in the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    /// A crawl was opened, anew or once more, with these terms.
    Opened {
        crawl: CrawlId,
        spider: SpiderName,
        #[serde(flatten)]
        terms: Terms,
    },
    /// A crawl was paused, goes on, was cancelled, or has finished.
    Status { crawl: CrawlId, spider: SpiderName, status: CrawlState },
    /// A host is to be asked no more.
    Blocked { host: String },
    /// A host may be asked again.
    Unblocked { host: String },
    /// From here on records are signed. It says nothing else.
    Sealed,
}

impl Record {
    /// Reads one; `None` if it is of a format that only newer programs read. So is each entry that has a `v` above that of this one, whatever else
    /// it holds.
    pub(crate) fn read(entry: &[u8]) -> serde_json::Result<Option<Self>> {
        let Formatted { format } = serde_json::from_slice(entry)?;
        if is_newer(format) { Ok(None) } else { serde_json::from_slice(entry).map(Some) }
    }

    pub(crate) fn opened(crawl: &CrawlRef, terms: Terms) -> Self {
        Self::Opened { crawl: crawl.id.clone(), spider: crawl.spider.clone(), terms }
    }

    pub(crate) fn status(crawl: &CrawlRef, status: CrawlState) -> Self {
        Self::Status { crawl: crawl.id.clone(), spider: crawl.spider.clone(), status }
    }
}

/// What every entry says.
#[derive(Deserialize)]
struct Formatted {
    #[serde(rename = "v", default = "Formatted::first")]
    format: u64,
}

impl Formatted {
    fn first() -> u64 {
        1
    }
}

/// What a crawl was by the last records about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedCrawl {
    pub(crate) terms: Terms,
    pub(crate) status: CrawlState,
}

/// What all records together say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) crawls: BTreeMap<CrawlRef, LoggedCrawl>,
    pub(crate) blocked: BTreeSet<HostKey>,
}

impl Logged {
    /// Takes in the next record.
    pub(crate) fn apply(&mut self, record: Record) {
        let unknown = LoggedCrawl { terms: Terms::default(), status: CrawlState::Running };
        match record {
            Record::Opened { crawl, spider, terms } => {
                self.crawls.entry(CrawlRef { id: crawl, spider }).or_insert(unknown).terms = terms;
            }
            Record::Status { crawl, spider, status } => {
                let crawl = self.crawls.entry(CrawlRef { id: crawl, spider }).or_insert(unknown);
                // What is over stays so.
                if !crawl.status.is_over() {
                    crawl.status = status;
                }
            }
            Record::Blocked { host } => drop(self.blocked.insert(HostKey::from_text(&host))),
            Record::Sealed => {}
            Record::Unblocked { host } => drop(self.blocked.remove(&HostKey::from_text(&host))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    fn logged(records: impl IntoIterator<Item = Record>) -> Logged {
        let mut logged = Logged::default();
        for record in records {
            // As it is read from the stream.
            let text = serde_json::to_string(&record).unwrap();
            logged.apply(serde_json::from_str(&text).unwrap());
        }
        logged
    }

    fn crawl(id: &str) -> CrawlRef {
        CrawlRef { id: id.parse().unwrap(), spider: "docs".parse().unwrap() }
    }

    #[test]
    fn a_crawl_has_the_terms_that_it_was_last_opened_with_and_the_last_status() {
        let terms = |pages| Terms { max_pages: NonZeroU64::new(pages), ..Terms::default() };
        let logged = logged([
            Record::opened(&crawl("a"), terms(5)),
            Record::status(&crawl("a"), CrawlState::Paused),
            Record::opened(&crawl("a"), terms(7)),
            Record::opened(&crawl("b"), terms(9)),
        ]);
        let expected = LoggedCrawl { terms: terms(7), status: CrawlState::Paused };
        assert_eq!(logged.crawls[&crawl("a")], expected);
        assert_eq!(logged.crawls[&crawl("b")].status, CrawlState::Running);
    }

    #[test]
    fn an_entry_of_a_newer_format_is_left_out_and_one_that_is_none_is_an_error() {
        let sealed = |more: &str| format!("{{\"record\":\"sealed\"{more}}}");
        let read = |text: String| Record::read(text.as_bytes());
        assert_eq!(read(sealed("")).unwrap(), Some(Record::Sealed));
        assert_eq!(read(sealed(",\"v\":1")).unwrap(), Some(Record::Sealed));
        assert_eq!(read(sealed(",\"v\":4")).unwrap(), None);
        assert_eq!(read("{\"record\":\"slowed\",\"v\":4}".to_owned()).unwrap(), None);
        for wrong in [sealed(",\"v\":\"new\""), "{\"record\":\"slowed\"}".to_owned(), "[]".to_owned()] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_over_stays_so() {
        for end in [CrawlState::Finished, CrawlState::Cancelled] {
            let logged = logged([
                Record::opened(&crawl("a"), Terms::default()),
                Record::status(&crawl("a"), end),
                Record::status(&crawl("a"), CrawlState::Running),
            ]);
            assert_eq!(logged.crawls[&crawl("a")].status, end);
        }
    }

    #[test]
    fn a_host_is_blocked_until_it_is_unblocked() {
        let record = |host: &str, blocked| match blocked {
            true => Record::Blocked { host: host.to_owned() },
            false => Record::Unblocked { host: host.to_owned() },
        };
        let logged = logged([record("a", true), record("b", true), record("a", false)]);
        assert_eq!(logged.blocked, BTreeSet::from([HostKey::from_text("b")]));
    }
}
