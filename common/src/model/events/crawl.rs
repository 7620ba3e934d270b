//! Events of a crawl.

use serde::{Serialize, Serializer};

use crate::frontier::crawl::{CrawlState, CrawlStats};
use crate::frontier::notes;
use crate::frontier::unmet::unmet;
use crate::text::counted;
use crate::time::UnixMs;

/// The kinds of events that subscribers are notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum EventKind {
    /// It was opened for the first time.
    Started,
    /// None of its URLs has ended for a while.
    Stalled,
    /// A sink of it is away, or no worker can start its program ([`CrawlStats::troubles`]).
    Degraded,
    /// Too many of its URLs fail.
    Failing,
    /// It is paused, as its spider's log-in keeps failing ([`CrawlStats::held`]).
    Lapsed,
    /// It is paused, as its last pages yield too little ([`QualityWindow`](crate::frontier::quality::QualityWindow)); or
    /// it has finished, and its pages yielded no items, or not a required field ([`CrawlStats::has_lost_items`]), or
    /// less than its spider expects ([`unmet`]).
    Quality,
    /// It has finished without any result ([`CrawlStats::empty`]).
    Empty,
    /// It has finished.
    Finished,
    /// It was cancelled, and nothing is left of it.
    Cancelled,
}

impl EventKind {
    /// Whether this is the last event of a crawl.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled)
    }
}

/// An event of a crawl. A repeated event has the same id.
#[derive(Clone, Debug, PartialEq)]
pub struct CrawlEvent {
    /// The kind of event.
    pub kind: EventKind,
    /// The time of the event.
    pub at: UnixMs,
    /// The crawl's stats when the event was created.
    pub stats: CrawlStats,
}

impl CrawlEvent {
    /// Creates the event that a crawl was opened.
    pub fn started(stats: CrawlStats) -> Self {
        Self { kind: EventKind::Started, at: stats.started, stats }
    }

    /// Creates the event of the crawl's end; `None` if it is not over.
    pub fn ended(stats: CrawlStats) -> Option<Self> {
        let kind = match stats.status {
            CrawlState::Finished => EventKind::Finished,
            CrawlState::Cancelled => EventKind::Cancelled,
            CrawlState::Pending | CrawlState::Running | CrawlState::Paused => return None,
        };
        Some(Self { kind, at: stats.period().to, stats })
    }

    /// Returns the events of a crawl that is over: that it lost its items, yields too little or is empty, if so, and
    /// then its end.
    pub fn of_end(stats: CrawlStats) -> impl Iterator<Item = Self> {
        let end = Self::ended(stats);
        let amiss = |kind, is_so: fn(&CrawlStats) -> bool| {
            end.clone().filter(|end| is_so(&end.stats)).map(|end| Self { kind, ..end })
        };
        let quality = amiss(EventKind::Quality, |stats| {
            stats.status == CrawlState::Finished && (stats.has_lost_items() || !unmet(stats).is_empty())
        });
        let empty = amiss(EventKind::Empty, |stats| stats.empty);
        quality.into_iter().chain(empty).chain(end)
    }

    /// Returns sentences about what is amiss with the crawl, and the next step.
    fn notes(&self) -> Vec<String> {
        let CrawlStats { crawl, pending, .. } = &self.stats;
        let stalled = (self.kind == EventKind::Stalled).then(|| {
            let urls = counted(*pending, "URL");
            format!(
                "crawl {crawl} has {urls} left, and none ends; `trawl status {crawl}` says what it waits for"
            )
        });
        stalled.into_iter().chain(notes::notes(&self.stats)).collect()
    }

    /// The name of the event, which is its routing key: `crawl.finished`.
    pub fn name(&self) -> String {
        match self.kind {
            EventKind::Lapsed => "session.lapsed".to_owned(),
            kind => format!("crawl.{kind}"),
        }
    }

    /// The id of the event, equal for all copies of it. A crawl may stall, be degraded, or be held more than once.
    pub fn id(&self) -> String {
        let Self { kind, stats, .. } = self;
        match kind {
            EventKind::Stalled | EventKind::Lapsed => {
                format!("{}.{kind}.{}", stats.crawl, stats.counts.ended())
            }
            EventKind::Quality if stats.held.is_some() => {
                format!("{}.{kind}.{}", stats.crawl, stats.counts.ended())
            }
            EventKind::Degraded => format!("{}.{kind}.{}", stats.crawl, self.at.0),
            _ => format!("{}.{kind}", stats.crawl),
        }
    }
}

impl Serialize for CrawlEvent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Body<'a> {
            id: String,
            r#type: String,
            time: String,
            #[serde(flatten)]
            stats: &'a CrawlStats,
            notes: Vec<String>,
        }
        let Self { at, stats, .. } = self;
        Body { id: self.id(), r#type: self.name(), time: at.to_string(), stats, notes: self.notes() }
            .serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::frontier::crawl::Counts;
    use crate::names::CrawlRef;

    fn stats(status: CrawlState) -> CrawlStats {
        let crawl = CrawlRef { id: "c1".parse().unwrap(), spider: "docs".parse().unwrap() };
        CrawlStats {
            counts: Counts { admitted: 4, done: 3, ..Counts::default() },
            seconds: 1.5,
            ..CrawlStats::empty(crawl, status, UnixMs(1_700_000_000_000))
        }
    }

    #[test]
    fn an_event_has_its_kind_time_crawl_and_stats() {
        let event = CrawlEvent::ended(stats(CrawlState::Finished)).unwrap();
        let body = serde_json::to_value(&event).unwrap();
        for (key, value) in [
            ("id", json!("c1.finished")),
            ("type", json!("crawl.finished")),
            ("time", json!("2023-11-14T22:13:21.500Z")),
            ("crawl", json!("c1")),
            ("spider", json!("docs")),
            ("done", json!(3)),
        ] {
            assert_eq!(body[key], value, "{key}");
        }
    }

    #[test]
    fn only_a_crawl_that_is_over_has_ended() {
        assert_eq!(CrawlEvent::ended(stats(CrawlState::Running)), None);
        assert_eq!(CrawlEvent::ended(stats(CrawlState::Cancelled)).unwrap().name(), "crawl.cancelled");
    }

    #[test]
    fn that_nothing_came_of_a_crawl_is_told_before_its_end() {
        let names =
            |stats: CrawlStats| CrawlEvent::of_end(stats).map(|event| event.name()).collect::<Vec<_>>();
        let nothing = CrawlStats { counts: Counts::default(), ..stats(CrawlState::Finished) };
        assert_eq!(names(nothing.concluded()), ["crawl.empty", "crawl.finished"]);
        assert_eq!(names(stats(CrawlState::Finished).concluded()), ["crawl.finished"]);
    }

    #[test]
    fn that_a_crawl_lost_its_items_is_told_where_its_pages_cannot_have_had_any() {
        let names = |status, reasons: &[(&str, u64)]| {
            let reasons = reasons.iter().map(|(reason, number)| ((*reason).to_owned(), *number)).collect();
            let stats = CrawlStats { reasons, ..stats(status) }.concluded();
            CrawlEvent::of_end(stats).map(|event| event.name()).collect::<Vec<_>>()
        };
        let lost = ("done:without_items", 20);
        assert_eq!(names(CrawlState::Finished, &[lost]), ["crawl.quality", "crawl.finished"]);
        assert_eq!(names(CrawlState::Finished, &[("done:without_items", 19)]), ["crawl.finished"]);
        assert_eq!(names(CrawlState::Finished, &[lost, ("items:offer", 1)]), ["crawl.finished"]);
        assert_eq!(names(CrawlState::Finished, &[lost, ("skipped:unchanged", 9)]), ["crawl.finished"]);
        assert_eq!(names(CrawlState::Cancelled, &[lost]), ["crawl.cancelled"]);
        let lacking = |number| ("without:product.price", number);
        let quality = ["crawl.quality", "crawl.finished"];
        assert_eq!(names(CrawlState::Finished, &[lacking(3), ("with:list.price", 12)]), quality);
        assert_eq!(names(CrawlState::Finished, &[lacking(2)]), ["crawl.finished"]);
        assert_eq!(
            names(CrawlState::Finished, &[lacking(60), ("with:product.price", 1)]),
            ["crawl.finished"]
        );
    }

    #[test]
    fn each_time_that_a_crawl_stalls_is_an_event_of_its_own() {
        let stalled = |done| {
            let stats =
                CrawlStats { counts: Counts { done, ..Counts::default() }, ..stats(CrawlState::Running) };
            CrawlEvent { kind: EventKind::Stalled, at: UnixMs(0), stats }.id()
        };
        assert_eq!(stalled(3), stalled(3));
        assert_ne!(stalled(3), stalled(4));
    }
}
