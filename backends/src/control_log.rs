//! Orders about crawls and hosts, stored apart from Redis, which carries them out.
//!
//! A crawl's state is read and changed in Redis. Whatever cannot be derived from the messages in the queues is also
//! written to a RabbitMQ stream: the terms that a crawl was opened with, pauses, ends, blocked hosts. A store that has
//! lost its data, or the last second of it, restores them from there, so that limits hold and cancelled crawls stay
//! cancelled.
//!
//! The orders of one crawl or host are sorted by the instants that Redis gave them. Two people may issue orders at
//! once, and then their entries stand in the stream in either order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::{CrawlId, CrawlRef, SpiderName};
use trawl_common::ports::Terms;
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;

/// One entry of the stream, serialized as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    /// A crawl was opened, for the first time or again, with these terms.
    Opened {
        crawl: CrawlId,
        spider: SpiderName,
        #[serde(flatten)]
        terms: Terms,
        /// How reading the crawl's sources ended: absent until all were read or nobody reads them any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sources: Option<Sources>,
    },
    /// A crawl was paused, resumed, cancelled or finished.
    Status {
        crawl: CrawlId,
        spider: SpiderName,
        status: CrawlState,
        /// The instant of the order; absent for a finish.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<UnixMs>,
    },
    /// A host was blocked.
    Blocked {
        host: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<UnixMs>,
    },
    /// A host was unblocked.
    Unblocked {
        host: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<UnixMs>,
    },
    /// Later records are signed. The record says nothing else.
    Sealed,
}

/// How reading a crawl's sources ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sources {
    /// All were read to their end.
    Read,
    /// Some were not read to their end.
    Unread,
}

impl Record {
    pub(crate) fn opened(crawl: &CrawlRef, terms: Terms) -> Self {
        Self::discovered(crawl, terms, None)
    }

    /// Returns the record of an opened crawl whose sources are settled as `sources` says.
    pub(crate) fn discovered(crawl: &CrawlRef, terms: Terms, sources: Option<Sources>) -> Self {
        Self::Opened { crawl: crawl.id.clone(), spider: crawl.spider.clone(), terms, sources }
    }

    pub(crate) fn status(crawl: &CrawlRef, status: CrawlState, at: Option<UnixMs>) -> Self {
        Self::Status { crawl: crawl.id.clone(), spider: crawl.spider.clone(), status, at }
    }

    pub(crate) fn host(key: &HostKey, LoggedHost { is_blocked, ordered }: LoggedHost) -> Self {
        let (host, at) = (key.to_string(), Some(ordered).filter(|at| at.0 > 0));
        if is_blocked { Self::Blocked { host, at } } else { Self::Unblocked { host, at } }
    }
}

/// The number of pages done by each crawl that has a limit, by crawl id. Each entry of the stream `control.counts` has
/// all counts, so that stream keeps few entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) done: BTreeMap<String, u64>,
}

impl Counts {
    /// Merges another entry. Two processes may briefly write at once, so the larger count is the newer one.
    pub(crate) fn apply(&mut self, entry: Self) {
        for (crawl, done) in entry.done {
            let known = self.done.entry(crawl).or_default();
            *known = done.max(*known);
        }
    }
}

/// The state of a crawl according to its latest records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedCrawl {
    pub(crate) terms: Terms,
    pub(crate) status: CrawlState,
    /// The instant of the last order; zero if there was none.
    pub(crate) ordered: UnixMs,
    /// The number of pages done, as far as is known.
    pub(crate) done: u64,
    /// How reading its sources ended; `None` while they are read, and if unknown.
    pub(crate) sources: Option<Sources>,
}

impl LoggedCrawl {
    /// A running crawl without orders.
    pub(crate) fn running(terms: Terms) -> Self {
        Self { terms, status: CrawlState::Running, ordered: UnixMs(0), done: 0, sources: None }
    }
}

/// The last order about a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoggedHost {
    pub(crate) is_blocked: bool,
    /// The instant of that order; zero if there was none.
    pub(crate) ordered: UnixMs,
}

/// The state that follows from all records.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) crawls: BTreeMap<CrawlRef, LoggedCrawl>,
    pub(crate) hosts: BTreeMap<HostKey, LoggedHost>,
}

/// Returns the instant of an order if it is later than `last`. An order without an instant counts only if none came
/// later.
fn later(last: UnixMs, at: Option<UnixMs>) -> Option<UnixMs> {
    let at = at.unwrap_or(UnixMs(last.0 + 1));
    (at >= last).then_some(at)
}

impl Logged {
    /// Applies the next record.
    pub(crate) fn apply(&mut self, record: Record) {
        let unknown = LoggedCrawl::running(Terms::default());
        match record {
            Record::Opened { crawl, spider, terms, sources } => {
                let crawl = self.crawls.entry(CrawlRef { id: crawl, spider }).or_insert(unknown);
                *crawl = LoggedCrawl { terms, sources, ..*crawl };
            }
            Record::Status { crawl, spider, status, at } => {
                let crawl = self.crawls.entry(CrawlRef { id: crawl, spider }).or_insert(unknown);
                // A crawl that is over stays so.
                if !crawl.status.is_over()
                    && let Some(ordered) = later(crawl.ordered, at)
                {
                    *crawl = LoggedCrawl { status, ordered, ..*crawl };
                }
            }
            Record::Blocked { host, at } => self.order(&host, true, at),
            Record::Unblocked { host, at } => self.order(&host, false, at),
            Record::Sealed => {}
        }
    }

    fn order(&mut self, host: &str, is_blocked: bool, at: Option<UnixMs>) {
        let known = self.hosts.entry(HostKey::from_text(host)).or_default();
        if let Some(ordered) = later(known.ordered, at) {
            *known = LoggedHost { is_blocked, ordered };
        }
    }

    /// Applies the page counts of crawls.
    pub(crate) fn count(&mut self, counts: &Counts) {
        for (crawl, logged) in &mut self.crawls {
            logged.done = counts.done.get(crawl.id.as_str()).copied().unwrap_or_default();
        }
    }

    /// Whether there is a crawl that is not over and has a page limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.crawls.values().any(|crawl| crawl.terms.max_pages.is_some() && !crawl.status.is_over())
    }

    pub(crate) fn has_blocked(&self, host: &HostKey) -> bool {
        self.hosts.get(host).is_some_and(|host| host.is_blocked)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use trawl_common::format::parse_entry;

    use super::*;

    fn logged(records: impl IntoIterator<Item = Record>) -> Logged {
        let mut logged = Logged::default();
        for record in records {
            // As read from the stream.
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
            Record::status(&crawl("a"), CrawlState::Paused, Some(UnixMs(30))),
            Record::opened(&crawl("a"), terms(7)),
            Record::opened(&crawl("b"), terms(9)),
        ]);
        let (status, ordered) = (CrawlState::Paused, UnixMs(30));
        let expected = LoggedCrawl { status, ordered, ..LoggedCrawl::running(terms(7)) };
        assert_eq!(logged.crawls[&crawl("a")], expected);
        assert_eq!(logged.crawls[&crawl("b")].status, CrawlState::Running);
    }

    #[test]
    fn an_entry_of_a_newer_format_is_left_out_and_one_that_is_none_is_an_error() {
        let sealed = |more: &str| format!("{{\"record\":\"sealed\"{more}}}");
        let read = |text: String| parse_entry::<Record>(text.as_bytes());
        assert_eq!(read(sealed("")).unwrap(), Some(Record::Sealed));
        assert_eq!(read(sealed(",\"v\":1")).unwrap(), Some(Record::Sealed));
        assert_eq!(read(sealed(",\"v\":4")).unwrap(), None);
        assert_eq!(read("{\"record\":\"slowed\",\"v\":4}".to_owned()).unwrap(), None);
        for wrong in [sealed(",\"v\":\"new\""), "{\"record\":\"slowed\"}".to_owned(), "[]".to_owned()] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_came_of_sources_holds_until_a_crawl_is_opened_again() {
        let read = Record::discovered(&crawl("a"), Terms::default(), Some(Sources::Read));
        let opened = Record::opened(&crawl("a"), Terms::default());
        let sources = |records: [Record; 2]| logged(records).crawls[&crawl("a")].sources;
        assert_eq!(sources([opened.clone(), read.clone()]), Some(Sources::Read));
        assert_eq!(sources([read, opened]), None);
    }

    #[test]
    fn what_is_over_stays_so() {
        for end in [CrawlState::Finished, CrawlState::Cancelled] {
            let logged = logged([
                Record::opened(&crawl("a"), Terms::default()),
                Record::status(&crawl("a"), end, None),
                Record::status(&crawl("a"), CrawlState::Running, Some(UnixMs(30))),
            ]);
            assert_eq!(logged.crawls[&crawl("a")].status, end);
        }
    }

    /// Returns the resulting status and its instant.
    fn last(orders: &[(CrawlState, Option<u64>)]) -> (CrawlState, u64) {
        let logged =
            logged(orders.iter().map(|&(status, at)| Record::status(&crawl("a"), status, at.map(UnixMs))));
        let LoggedCrawl { status, ordered, .. } = logged.crawls[&crawl("a")];
        (status, ordered.0)
    }

    #[test]
    fn of_two_orders_the_one_that_redis_took_later_counts_wherever_it_stands() {
        use CrawlState::{Paused, Running};
        for orders in [[(Paused, Some(10)), (Running, Some(11))], [(Running, Some(11)), (Paused, Some(10))]] {
            assert_eq!(last(&orders), (Running, 11));
        }
        assert_eq!(
            last(&[(Running, Some(10)), (Paused, None)]),
            (Paused, 11),
            "an older program's comes after"
        );
        assert_eq!(last(&[(Paused, None), (Running, Some(10))]), (Running, 10));
    }

    #[test]
    fn a_host_is_blocked_until_it_is_unblocked() {
        let record = |host: &str, blocked| match blocked {
            true => Record::Blocked { host: host.to_owned(), at: Some(UnixMs(10)) },
            false => Record::Unblocked { host: host.to_owned(), at: Some(UnixMs(11)) },
        };
        let of = |host: &str, records| logged(records).has_blocked(&HostKey::from_text(host));
        assert!(of("a", [record("a", true), record("b", false)]));
        assert!(!of("a", [record("a", true), record("a", false)]));
        assert!(!of("a", [record("a", false), record("a", true)]), "it was lifted after that");
        assert!(!of("c", [record("a", true), record("b", true)]));
    }
}
