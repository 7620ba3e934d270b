//! The transitions, in the order of the table in `docs/states.md`.
//!
//! Each is total: it handles a call in any state, and changes nothing if the caller has no right to. An unseen URL
//! that becomes pending counts as admitted, and a pending one that ends adds to the counter of its end; nothing
//! else changes a counter.

use std::time::Duration;

use super::answer::{ClaimReply, MAX_STARTS, StartReply, Taken};
use super::context::{Context, Watermark};
use super::end::{End, Finished};
use super::record::{EARLY, Record, State, UrlState};
use crate::frontier::crawl::CrawlState;
use crate::frontier::lane::Lane;
use crate::frontier::message::Message;
use crate::frontier::outcome::Terminal;
use crate::frontier::source_queue::SourceQueue;
use crate::names::WorkerId;
use crate::time::UnixMs;

impl UrlState {
    /// Returns the state of a URL without a record, for a request of it. It depends not on what its spider has
    /// seen, but on when the URL was last requested or fetched: within `again` it counts as ended. An instant in
    /// the future means that the clock was set back, and is ignored.
    pub fn requested(asked: Option<UnixMs>, again: Duration, now: UnixMs) -> Self {
        match asked {
            Some(asked) if asked <= now && now < asked.plus(again) => Self::Ended,
            Some(_) | None => Self::Unseen,
        }
    }

    /// **Admit:** a source names the URL, or a page links to it. `has_space` says whether its host may have more
    /// URLs in the crawl. A URL that was seen is never left out.
    pub fn admit(
        &mut self,
        lane: Lane,
        deadline: Option<UnixMs>,
        has_space: bool,
        context: &Context,
    ) -> Taken {
        match self {
            Self::Pending(_) | Self::Ended => Taken::Seen,
            Self::Unseen if !has_space => Taken::LeftOut,
            Self::Unseen => {
                *self = Self::Pending(Record::new(State::New { since: context.now }, lane, deadline));
                Taken::New
            }
        }
    }

    /// **Admit links:** returns whether a page's links are taken in: `worker` may name them as long as it holds
    /// the page.
    pub fn takes_links(&self, worker: &WorkerId, context: &Context) -> bool {
        let is_held = matches!(self, Self::Pending(record) if record.is_held_by(worker));
        is_held && !context.status.is_over()
    }

    /// **Confirm:** a queue has stored a message of the URL, which waits until `wake` if it is snoozed. One that the
    /// record does not wait for, as it was sent before, says nothing.
    pub fn confirm(&mut self, wake: Option<UnixMs>) {
        let Self::Pending(record) = self else { return };
        match (&mut record.state, wake) {
            (State::New { since }, None) => record.state = State::Queued { since: *since },
            (State::Parked { until, unconfirmed, .. }, Some(wake)) if *until == wake => *unconfirmed = None,
            (State::New { .. } | State::Parked { .. } | State::Queued { .. } | State::Held { .. }, _) => {}
        }
    }

    /// **Claim:** a worker that does not hold the URL has received a message for it.
    ///
    /// An unseen URL is admitted. If the store had forgotten the crawl, the message is requeued once, so that the
    /// store knows everything that is queued before all of it is fetched.
    pub fn claim(&mut self, worker: &WorkerId, message: &Message, context: &Context) -> ClaimReply {
        if context.status.is_over() {
            return ClaimReply::Drop;
        }
        match self {
            Self::Ended => ClaimReply::Drop,
            Self::Pending(record) => record.claim(worker, message.wake, context),
            Self::Unseen => {
                let queued = State::Queued { since: context.now };
                let mut record = Record::new(queued, message.lane, message.deadline);
                let reply = match context.is_recovering {
                    true => ClaimReply::SendAgain,
                    false => record.claim(worker, message.wake, context),
                };
                *self = Self::Pending(record);
                reply
            }
        }
    }

    /// **Extend:** a worker goes on holding the URL. If the store has forgotten the URL, it is admitted again,
    /// held by the worker. If the worker had lost it because its lease lapsed, the worker is alive after all, so
    /// its start does not count. Returns whether the worker holds it.
    pub fn extend(&mut self, worker: &WorkerId, message: &Message, context: &Context) -> bool {
        if context.status.is_over() {
            return false;
        }
        match self {
            Self::Ended => false,
            Self::Unseen => {
                let held = State::Held { by: worker.clone(), since: context.now, has_started: false };
                *self = Self::Pending(Record::new(held, message.lane, message.deadline));
                true
            }
            Self::Pending(record) => match &mut record.state {
                State::Held { by, since, .. } if by == worker => {
                    *since = context.now;
                    true
                }
                _ => {
                    record.withdraw_start(worker);
                    false
                }
            },
        }
    }

    /// **Start:** a worker is about to fetch the URL. If the crawl is paused, the worker lets the URL go.
    pub fn start(&mut self, worker: &WorkerId, context: &Context) -> StartReply {
        let Some(record) = self.held_by(worker) else { return StartReply::Lost };
        match context.status {
            CrawlState::Running => record.start(context),
            CrawlState::Paused => {
                record.state = State::let_go(context.now);
                StartReply::Lost
            }
            CrawlState::Pending | CrawlState::Finished | CrawlState::Cancelled => StartReply::Lost,
        }
    }

    /// **Park:** a worker snoozes the URL until an instant, perhaps because it `failed`. Returns whether it held
    /// the URL, or has parked it by the same call before, of which the answer was lost.
    pub fn park(&mut self, worker: &WorkerId, until: UnixMs, failed: bool, context: &Context) -> bool {
        let Some(record) = self.held_by(worker) else {
            let Self::Pending(record) = self else { return false };
            return matches!(record.state, State::Parked { until: parked_until, unconfirmed: Some(_), .. } if parked_until == until);
        };
        record.end_start();
        record.state = State::Parked { until, unconfirmed: Some(context.now), in_pause: false };
        record.attempts += u32::from(failed);
        true
    }

    /// **Release:** a worker gives the URL back.
    pub fn release(&mut self, worker: &WorkerId, context: &Context) {
        if let Some(record) = self.held_by(worker) {
            record.end_start();
            record.state = State::Queued { since: context.now };
        }
    }

    /// **Finish:** a worker gives the URL its terminal state. Pages beyond the crawl's limit are never counted as
    /// done, even if the store forgot how many had begun.
    pub fn finish(
        &mut self,
        worker: &WorkerId,
        terminal: Terminal,
        why: Option<&'static str>,
        context: &Context,
    ) -> Finished {
        if self.held_by(worker).is_some() {
            *self = Self::Ended;
            return Finished::Now(match terminal {
                Terminal::Done if context.is_full() => End::beyond_limit(),
                _ => End::new(terminal, why),
            });
        }
        match self {
            Self::Ended => Finished::Before,
            Self::Unseen if context.status.is_over() => Finished::Before,
            Self::Unseen | Self::Pending(_) => Finished::NotHeld,
        }
    }

    /// **Sweep:** a URL that was lost becomes new. Returns whether it was lost, so that its message has to be sent
    /// again.
    pub fn sweep(&mut self, watermark: impl Fn(SourceQueue) -> Watermark, context: &Context) -> bool {
        let Self::Pending(record) = self else { return false };
        let is_lost = record.is_lost(watermark, context);
        if is_lost {
            record.lapse();
            record.state = State::New { since: context.now };
        }
        is_lost
    }

    /// Returns the record, if `worker` holds it.
    fn held_by(&mut self, worker: &WorkerId) -> Option<&mut Record> {
        match self {
            Self::Pending(record) if record.is_held_by(worker) => Some(record),
            Self::Unseen | Self::Pending(_) | Self::Ended => None,
        }
    }
}

impl Record {
    /// **Claim** of a pending URL. `wake` is the time for which the received message was snoozed, if it was.
    pub fn claim(&mut self, worker: &WorkerId, wake: Option<UnixMs>, context: &Context) -> ClaimReply {
        match &self.state {
            State::Held { by, since, .. }
                if by != worker && !self.state.has_lapsed(context.now, context.possession()) =>
            {
                return ClaimReply::Wait { until: UnixMs(since.plus(context.possession()).0 + 1) };
            }
            State::Parked { until, unconfirmed, in_pause: false } if *until > context.now.plus(EARLY) => {
                // Keep the message that the record waits for, and any as long as that one may not be there; but not a
                // copy of another.
                return if wake == Some(*until) || unconfirmed.is_some() {
                    ClaimReply::Wait { until: *until }
                } else {
                    ClaimReply::Drop
                };
            }
            _ => {}
        }
        if !self.is_held_by(worker) {
            self.lapse();
        }
        if context.status == CrawlState::Paused {
            let until = context.now.plus(context.pause_wait);
            self.state = State::let_go(until);
            return ClaimReply::Wait { until };
        }
        self.state = State::Held { by: worker.clone(), since: context.now, has_started: false };
        if context.is_full() {
            return ClaimReply::Full;
        }
        ClaimReply::Take { attempts: self.attempts, starts: self.starts, deadline: self.deadline }
    }

    /// Checks the limit before the starts: once a crawl has done all that it may, everything left is skipped, and
    /// a later crawl may find even a suspect. Poison takes no page of the limit, so it does not wait for one.
    fn start(&mut self, context: &Context) -> StartReply {
        let State::Held { has_started, .. } = &mut self.state else { return StartReply::Lost };
        if *has_started {
            return StartReply::Go;
        }
        if context.is_full() {
            return StartReply::Full;
        }
        if self.starts >= MAX_STARTS {
            return StartReply::Poison;
        }
        if !self.has_begun && context.pages_left.is_some_and(|pages_left| pages_left.begun >= pages_left.left)
        {
            return StartReply::Awaited;
        }
        *has_started = true;
        self.has_begun = true;
        self.starts += 1;
        StartReply::Go
    }

    fn is_lost(&self, watermark: impl Fn(SourceQueue) -> Watermark, context: &Context) -> bool {
        let is_stale = |since: UnixMs| since.plus(context.lost_after) <= context.now;
        let is_missing = |since: UnixMs, source| {
            let Watermark { delivered, lost_before } = watermark(source);
            // Even a queue that lost nothing may have delivered the message a moment ago: a worker may be about to
            // claim it.
            since.plus(context.lost_after) < delivered || since < lost_before
        };
        match &self.state {
            State::New { since } => is_stale(*since),
            State::Queued { since } => is_missing(*since, self.lane.into()),
            State::Parked { in_pause: true, .. } if context.status == CrawlState::Running => true,
            State::Parked { until, unconfirmed, .. } => {
                unconfirmed.is_some_and(is_stale) || is_missing(*until, SourceQueue::Due)
            }
            State::Held { .. } => self.state.has_lapsed(context.now, context.possession()),
        }
    }
}
