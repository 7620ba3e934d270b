//! The state of a URL, the reason, and what happens next, in words.

use super::url::{PageOutcome, RobotsVerdict};
use super::{Workers, host};
use crate::frontier::crawl::CrawlState;
use crate::frontier::dead_letter::{Cause, DeadLetterEntry};
use crate::frontier::lane::Lane;
use crate::frontier::{Record, State, UrlState};
use crate::names::{CrawlRef, SpiderName};
use crate::ports::{HostState, Seen};
use crate::spider::item::Change;
use crate::spider::page_history::{NOT_MODIFIED, PageAnswer, Tally, Visited};
use crate::text::{counted, printable};
use crate::time::UnixMs;

/// Maximum length of an error that is repeated, in bytes.
const MAX_ERROR: usize = 300;

/// The state of a URL in a crawl.
pub(super) struct Words<'a> {
    pub(super) crawl: &'a CrawlRef,
    pub(super) status: CrawlState,
    pub(super) state: &'a UrlState,
    pub(super) dead_letter: Option<&'a DeadLetterEntry>,
    pub(super) schedule: Option<&'a HostState>,
    pub(super) robots: RobotsVerdict,
    pub(super) workers: &'a Workers,
    /// Maximum number of retries of a URL.
    pub(super) retries: u32,
    /// Whether that is the request's own number.
    pub(super) is_own: bool,
    pub(super) now: UnixMs,
}

impl Words<'_> {
    /// Returns sentences in the order in which a person asks: where, why, what next.
    pub(super) fn all(&self) -> Vec<String> {
        match (self.state, self.dead_letter) {
            (UrlState::Pending(record), _) => self.pending(record),
            (_, Some(note)) => self.failed(note),
            (UrlState::Unseen, None) => {
                vec![format!("The spider {} has not seen it, or has forgotten it.", self.crawl.spider)]
            }
            (UrlState::Ended, None) => ended(self.crawl, None),
        }
    }

    fn pending(&self, record: &Record) -> Vec<String> {
        let mut all = vec![self.place(record)];
        all.extend(self.host_words());
        match record.attempts {
            0 => {}
            attempts => all.push(format!(
                "{} failed so far; it is tried {} at most{}.",
                counted(attempts.into(), "attempt"),
                counted(u64::from(self.retries) + 1, "time"),
                if self.is_own { "" } else { ", unless its spider's [retry] says otherwise" }
            )),
        }
        all.extend(self.robots_words());
        if let Some(deadline) = record.deadline {
            all.push(format!("It is worth fetching until {deadline}; after that it expires."));
        }
        all.push(self.next(record));
        all
    }

    fn place(&self, record: &Record) -> String {
        let lane = queue(record.lane);
        match &record.state {
            State::New { since } => format!("Its message is on its way into {lane}, since {since}."),
            // It was parked by a pause, or it is in a state file, which does not store the time.
            State::Queued { since: UnixMs(0) } => format!("It waits in {lane} for a worker."),
            State::Queued { since } => format!("It waits in {lane} for a worker, since {since}."),
            State::Parked { until, .. } if *until <= self.now => {
                format!("It was put aside until {until}, and waits for a worker since then.")
            }
            State::Parked { until, .. } => {
                let why = if record.attempts > 0 { "after a failure" } else { "for its host" };
                format!("It is put aside until {until}, {why}.")
            }
            State::Held { by, since, has_started } => {
                let what = if *has_started { "fetches it" } else { "holds it until its host may be asked" };
                let loss = self.workers.loss(by).map(|loss| format!(" But {loss}.")).unwrap_or_default();
                format!("The worker {by} {what}, and confirmed that at {since}.{loss}")
            }
        }
    }

    fn host_words(&self) -> Option<String> {
        let words = host::keeps_waiting(self.schedule?, self.now)?;
        Some(format!("{words}."))
    }

    fn robots_words(&self) -> Option<String> {
        Some(
            match self.robots {
                RobotsVerdict::Allowed | RobotsVerdict::Ignored => return None,
                RobotsVerdict::Forbidden => "robots.txt forbids it.",
                RobotsVerdict::Unreadable => {
                    "Its robots.txt could not be read, which forbids everything for now."
                }
                RobotsVerdict::Unknown => "Its robots.txt is not known, and is asked for first.",
            }
            .to_owned(),
        )
    }

    fn next(&self, record: &Record) -> String {
        let is_blocked = self.schedule.is_some_and(|schedule| schedule.blocked.is_some());
        let nobody = self.workers.nobody();
        let what = match &record.state {
            _ if self.status == CrawlState::Paused => {
                format!("nothing before the crawl goes on: `trawl resume {}`", self.crawl.id)
            }
            _ if self.status.is_over() => {
                "it ends with its crawl, which is being cleared up after".to_owned()
            }
            State::Held { has_started: true, .. } => {
                "it is stored, tried again, or becomes a dead letter".to_owned()
            }
            _ if nobody.is_some() => format!("nothing, for {}", nobody.unwrap_or_default()),
            _ if is_blocked || self.robots == RobotsVerdict::Forbidden => {
                "it is skipped when it is due".to_owned()
            }
            State::Parked { until, .. } if *until > self.now => {
                let attempt = record.attempts + 1;
                match record.attempts {
                    0 => "a worker fetches it then, or puts it aside once more".to_owned(),
                    _ => format!("attempt {attempt} follows then"),
                }
            }
            _ => "a worker fetches it when it is due".to_owned(),
        };
        format!("Next: {what}.")
    }

    fn failed(&self, DeadLetterEntry { cause, .. }: &DeadLetterEntry) -> Vec<String> {
        let Cause { reason, class, status, error, attempts, failed_at, worker } = cause;
        let class = class.map(|class| format!(", {class}")).unwrap_or_default();
        let status = status.map(|status| format!(", HTTP {status}")).unwrap_or_default();
        let by = worker.as_ref().map(|worker| format!(" by {worker}")).unwrap_or_default();
        vec![
            format!("It is a dead letter since {failed_at}: {reason}{class}{status}."),
            format!(
                "It was tried {}{by}; the last error: {}",
                counted((*attempts).into(), "time"),
                printable(error, MAX_ERROR)
            ),
            "Next: nothing, unless `trawl dlq replay` sends it again.".to_owned(),
        ]
    }
}

/// Returns sentences about a URL that has ended and is no dead letter.
pub(super) fn ended(crawl: &CrawlRef, outcome: Option<PageOutcome>) -> Vec<String> {
    let how = match outcome {
        Some(PageOutcome::Done) => "It is done: this crawl has fetched it.".to_owned(),
        Some(PageOutcome::Skipped) => {
            "This crawl has left it out, as its server said that it had not changed.".to_owned()
        }
        None => format!(
            "It has ended: this crawl or another one of the spider {} has fetched it, or left it out. How is kept of dead letters, and of \
             the pages that were fetched last by a crawl whose dedup is not `spider`.",
            crawl.spider
        ),
    };
    vec![
        how,
        "Next: nothing, unless a recrawl fetches it (`--recrawl`), or `trawl seen forget` makes it new."
            .to_owned(),
    ]
}

/// Returns a sentence about the answer at a page's last visit, and what it gave.
fn answered(page: &Visited) -> Option<String> {
    let PageAnswer { status, links, landed } = page.answer.as_ref()?;
    let items = page.items.as_ref().map_or(0, Tally::total);
    let landed = landed.as_ref().map(|url| format!(", and it led to {}", printable(url.as_str(), MAX_ERROR)));
    let gave = format!("{} and {}", number(items, "item"), number(u64::from(*links), "link to follow"));
    Some(match *status {
        NOT_MODIFIED => {
            format!("Its server answered that it had not changed (304); before that it gave {gave}.")
        }
        status => format!("Its status was {status}{}. It gave {gave}.", landed.unwrap_or_default()),
    })
}

fn number(count: u64, what: &str) -> String {
    match (count, what.split_once(' ')) {
        (1, _) => format!("1 {what}"),
        (count, None) => format!("{count} {what}s"),
        (count, Some((noun, rest))) => format!("{count} {noun}s {rest}"),
    }
}

/// Returns sentences about a URL in a spider's memory.
pub(super) fn of_spider(spider: &SpiderName, seen: Seen, page: Option<&Visited>) -> Vec<String> {
    let mut all = vec![match seen {
        Seen::Never => format!("The spider {spider} has not seen it, or has forgotten it."),
        Seen::Ended => format!(
            "The spider {spider} has seen it: no later crawl takes it in, unless it is to fetch pages again."
        ),
        Seen::Pending => format!("The spider {spider} has it in a crawl that goes on."),
    }];
    if let Some(Visited { fetched_at, change, depth, .. }) = page {
        let change = match change {
            Change::New => "new",
            Change::Changed => "another than before",
            Change::Unchanged => "as before",
            Change::Gone => "gone",
        };
        all.push(format!(
            "Its page was fetched last at {fetched_at}, {} from the start; its content was {change}.",
            counted((*depth).into(), "link")
        ));
        all.extend(page.and_then(answered));
        all.push(format!("`--recrawl AGE` fetches it again when {fetched_at} is longer ago than AGE."));
    }
    all
}

/// Returns a lane by the name of its queue, as people find it in RabbitMQ.
fn queue(lane: Lane) -> &'static str {
    match lane {
        Lane::Priority => "the lane `priority`",
        Lane::Bulk => "the lane `bulk`",
        Lane::Task => "the lane `task`",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::frontier::outcome::{Class, Reason};
    use crate::ports::{Vanished, WorkerState};

    const NOW: UnixMs = UnixMs(1_700_000_000_000);

    fn workers() -> Workers {
        let living = WorkerState::idle("w1".parse().unwrap());
        let vanished = vec![Vanished { worker: "w2".parse().unwrap(), seen: NOW, in_flight: 1 }];
        Workers { living: vec![living], vanished, is_fleet: true, lease: Duration::from_secs(15) }
    }

    fn record(state: State, attempts: u32) -> UrlState {
        UrlState::Pending(Record { attempts, ..Record::new(state, Lane::Bulk, None) })
    }

    fn words(state: &UrlState, change: impl FnOnce(&mut Words<'_>)) -> String {
        words_with(state, None, change)
    }

    fn words_with(
        state: &UrlState,
        dead_letter: Option<&DeadLetterEntry>,
        change: impl FnOnce(&mut Words<'_>),
    ) -> String {
        let (crawl, workers) =
            (CrawlRef { id: "c1".parse().unwrap(), spider: "shop".parse().unwrap() }, workers());
        let mut words = Words {
            crawl: &crawl,
            status: CrawlState::Running,
            state,
            dead_letter,
            schedule: None,
            robots: RobotsVerdict::Allowed,
            workers: &workers,
            retries: 2,
            is_own: false,
            now: NOW,
        };
        change(&mut words);
        words.all().join("\n")
    }

    #[test]
    fn a_waiting_url_is_explained_with_its_queue_and_since_when() {
        let queued = record(State::Queued { since: NOW }, 0);
        assert_eq!(
            words(&queued, |_| {}),
            format!(
                "It waits in the lane `bulk` for a worker, since {NOW}.\nNext: a worker fetches it when it is due."
            )
        );
    }

    #[test]
    fn a_failed_url_is_explained_with_the_time_and_number_of_its_next_attempt() {
        let until = NOW.plus(Duration::from_secs(60));
        let parked = record(State::Parked { until, unconfirmed: None, in_pause: false }, 1);
        assert_eq!(
            words(&parked, |_| {}),
            format!(
                "It is put aside until {until}, after a failure.\n1 attempt failed so far; it is tried 3 times at most, unless its spider's [retry] says otherwise.\n\
                 Next: attempt 2 follows then."
            )
        );
    }

    #[test]
    fn a_url_of_a_vanished_worker_is_explained_with_who_takes_it_over() {
        let held = record(State::Held { by: "w2".parse().unwrap(), since: NOW, has_started: true }, 0);
        let text = words(&held, |_| {});
        assert!(
            text.starts_with(&format!("The worker w2 fetches it, and confirmed that at {NOW}. But ")),
            "{text}"
        );
        assert!(text.contains("others take over what it held within 15s"), "{text}");
    }

    #[test]
    fn in_a_pause_nothing_happens_and_what_is_forbidden_is_skipped() {
        let queued = record(State::Queued { since: NOW }, 0);
        let paused = words(&queued, |words| words.status = CrawlState::Paused);
        assert!(paused.ends_with("Next: nothing before the crawl goes on: `trawl resume c1`."), "{paused}");
        let forbidden = words(&queued, |words| words.robots = RobotsVerdict::Forbidden);
        assert!(
            forbidden.ends_with("robots.txt forbids it.\nNext: it is skipped when it is due."),
            "{forbidden}"
        );
    }

    #[test]
    fn a_dead_letter_is_explained_with_its_reason_and_how_to_replay_it() {
        let cause = Cause {
            class: Some(Class::Http),
            status: Some(503),
            attempts: 3,
            ..Cause::new(Reason::Retries, "the server\u{1b} answered 503", NOW)
        };
        let note = DeadLetterEntry::new(cause);
        let text = words_with(&UrlState::Ended, Some(&note), |_| {});
        assert!(text.contains(&format!("since {NOW}: retries, http, HTTP 503.")), "{text}");
        assert!(text.contains("tried 3 times; the last error: the server  answered 503"), "{text}");
        assert!(text.contains("`trawl dlq replay`"), "{text}");
    }

    #[test]
    fn a_url_that_ended_or_was_never_seen_is_explained() {
        assert!(words(&UrlState::Ended, |_| {}).contains("has fetched it, or left it out"));
        assert!(words(&UrlState::Unseen, |_| {}).contains("The spider shop has not seen it"));
    }
}
