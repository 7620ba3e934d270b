//! The arithmetic that spaces requests to one host: the generic cell rate algorithm as a virtual schedule, with
//! a limit of requests in flight, back-offs that the host asks for, and a waitlist for requests whose slot is too far
//! ahead to reserve.
//!
//! The Redis scripts over `host.lua` do the same, and a test makes the same calls to both and compares what they leave.

mod backoff;
mod slot;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::backoff::{Backoff, BackoffTerms, FORGIVEN_AFTER};
pub use self::slot::{Slot, SlotRequest, Standing};
use crate::time::UnixMs;

/// The pace at which a host may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pace {
    /// The time between two requests; zero for as fast as the host answers.
    pub interval: Duration,
    /// Number of requests that may follow each other without a gap after a quiet time; at least 1.
    pub burst: u32,
    /// Maximum number of requests in flight; zero for no limit.
    pub concurrency: u32,
}

impl Pace {
    /// No limit at all.
    pub const UNLIMITED: Self = Self { interval: Duration::ZERO, burst: 1, concurrency: 0 };

    /// Returns this pace with at least `delay` between two requests.
    #[must_use]
    pub fn slowed(self, delay: Duration) -> Self {
        if delay > self.interval { Self { interval: delay, burst: 1, ..self } } else { self }
    }

    /// Returns the minimum time after its instant for which a reserved slot is honoured. A host that is slow for
    /// its pace has a longer interval.
    pub fn honoured(self) -> Duration {
        Duration::from_micros(honoured(micros(self.interval)))
    }

    /// Returns the time for which a slot is good after it was granted. It is limited even without a rate: the host
    /// may have been blocked meanwhile, or may have asked for a back-off.
    pub fn grace(self) -> Duration {
        if self.interval.is_zero() {
            return UNPACED_GRACE;
        }
        let least = if self.interval < QUANTUM { QUANTUM } else { GRACE };
        (self.interval / TOLERANCE as u32).max(least)
    }

    /// Returns the time after its grant at which a request is sent. Whatever delays it for less makes no gap
    /// shorter.
    pub(crate) fn send_delay(self) -> Duration {
        if self.interval < QUANTUM { Duration::ZERO } else { (self.interval / 8).clamp(GRACE, QUANTUM) }
    }

    /// Returns the minimum time from a request that is sent `late` to the grant of the next one, if the schedule
    /// has to know: later than its delay by so much that the gap to the next one might be too short.
    pub fn next_after(self, late: Duration) -> Option<Duration> {
        let is_late = self.interval >= QUANTUM && late > self.send_delay() + self.interval / TOLERANCE as u32;
        is_late.then(|| Duration::from_micros(step(micros(self.interval))).saturating_sub(self.send_delay()))
    }
}

/// Slots further ahead than this are not reserved, so that a cancelled backlog blocks nobody.
pub const HORIZON: Duration = Duration::from_secs(30);

/// A request in the waitlist comes back this long before its slot, so that the host never waits for it.
pub const LEAD: Duration = Duration::from_secs(15);

/// While requests of the waitlist come back as they should, slots are reserved at least this far ahead. If they
/// are not, the waitlist is gone: its URLs were cancelled, or finished elsewhere.
pub const REACH: Duration = Duration::from_millis(7_500);

/// The precision of timers: a request that comes this little before its slot is on time.
pub const EARLY: Duration = Duration::from_millis(2);

/// Minimum wait before asking again when the limit of requests in flight is reached.
pub const MIN_STEP: Duration = Duration::from_millis(5);

/// Requests may be granted closer than the interval by this fraction of it, a sixteenth, so that the others catch up
/// after a late one. One that is sent later after its grant than others by as much again is reported
/// ([`Schedule::sent_late`]). So no two requests are sent closer than 85 % of the interval.
pub const TOLERANCE: u64 = 16;

/// The precision of timers, schedulers and round trips. A rate with a shorter interval is kept over this time, not
/// from each request to the next: requests late by less catch up.
pub const QUANTUM: Duration = Duration::from_millis(50);

/// A slot is honoured for this fraction of the interval, a half, or for [`QUANTUM`] if that is longer than the
/// interval.
pub const HONOURED: u64 = 2;

/// The time for which a granted slot is good at least, however short the interval.
const GRACE: Duration = Duration::from_millis(15);

/// The time for which a granted slot is good without a rate.
pub(crate) const UNPACED_GRACE: Duration = Duration::from_secs(1);

/// One host's schedule, in microseconds so that fast rates do not round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The theoretical arrival time of the next request, by the reserved slots.
    pub next: u64,
    /// The earliest arrival time of the next request, by the requests sent, which may have been late for their
    /// slots.
    pub taken: u64,
    /// The end of the waitlist of requests without a reservation.
    pub line: u64,
    /// The duration of a recent request, from slot to answer; zero if unknown.
    pub latency: u64,
    /// The requests in flight, if their number is limited.
    pub in_flight: Vec<SentRequest>,
    /// The latest back-off.
    pub backoff: Backoff,
    /// Whether an operator blocked this host.
    pub is_blocked: bool,
    /// The time of the last change.
    pub at: u64,
}

/// A request in flight, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRequest {
    /// The id of the request.
    pub token: u64,
    /// The time when it was sent.
    pub since: u64,
    /// The time from which it no longer counts, ended or not.
    pub until: u64,
}

impl Schedule {
    /// Reserves a slot at `now` for one URL, or uses the one that it holds.
    ///
    /// A held slot is honoured until half of the interval has passed ([`HONOURED`]), unless the host backed off
    /// since then; after that it is void, and the URL asks like any other. A late request delays those after it,
    /// so that the host's rate is kept.
    pub fn reserve(&mut self, request: &SlotRequest, now: u64) -> Slot {
        self.go_back(now);
        self.in_flight.retain(|sent| sent.until > now && sent.token != request.token);
        if self.is_blocked {
            return Slot::Blocked;
        }
        let interval = self.interval(request.pace);
        let earliest = self.earliest(request.pace, interval);
        if let Some(held) = request.held.map(from_ms).filter(|&held| self.honours(held, interval, now)) {
            let slot = held.max(earliest);
            return if slot > now + micros(EARLY) { reserved(slot, now) } else { self.enter(request, now) };
        }
        let slot = self.first_free(request.pace, interval, now).max(earliest);
        if slot < now + micros(REACH) && self.line > 0 {
            (self.line, self.at) = (0, now);
        }
        if request.deadline.is_some_and(|deadline| from_ms(deadline) < slot) {
            return Slot::TooLate;
        }
        if slot > now + micros(HORIZON) && request.standing == Standing::Aside {
            let wait = Duration::from_micros(slot - now) - HORIZON;
            return Slot::Later { wait, turn: UnixMs(slot / 1_000) };
        }
        let turn = request.standing.turn().filter(|&turn| turn > slot && turn <= self.line);
        if slot > now + micros(HORIZON) || turn.is_some_and(|turn| turn > now + micros(LEAD + REACH)) {
            return self.join_waitlist(request, turn, slot, interval, now);
        }
        let answer = if slot > now { reserved(slot, now) } else { self.enter(request, now) };
        if slot > now || answer == Slot::Now {
            self.next = self.next.max(now).max(self.backoff.until).max(earliest) + interval;
            self.at = now;
        }
        answer
    }

    /// Extends the request `token`: it counts as in flight for `lapse` from `now`.
    pub fn stay(&mut self, token: u64, lapse: Duration, now: u64) {
        self.go_back(now);
        for sent in self.in_flight.iter_mut().filter(|sent| sent.token == token) {
            sent.until = now + micros(lapse);
            self.at = now;
        }
    }

    /// Records that a request was sent late at `now`: the next one comes `after` that at the earliest.
    pub fn sent_late(&mut self, after: Duration, now: u64) {
        self.go_back(now);
        self.taken = self.taken.max(now + micros(after));
        self.at = now;
    }

    /// Ends the request `token`. If the host answered it without asking for a back-off, its series of refusals
    /// ends.
    pub fn leave(&mut self, token: u64, is_welcome: bool, now: u64) {
        self.go_back(now);
        if is_welcome && now >= self.backoff.until {
            self.backoff.strikes = 0;
        }
        if let Some(at) = self.in_flight.iter().position(|sent| sent.token == token) {
            let sent = self.in_flight.swap_remove(at);
            let took = now.saturating_sub(sent.since);
            self.latency = if self.latency == 0 { took } else { (self.latency * 7 + took) / 8 };
        }
    }

    /// Starts a back-off that the host asked for. A current one can only be prolonged. Returns its end.
    pub fn push_back(&mut self, terms: &BackoffTerms, now: u64) -> u64 {
        self.go_back(now);
        let BackoffTerms { base, jitter, most, .. } = *terms;
        let asked = terms.asked.filter(|wait| !wait.is_zero()).map(|wait| micros(wait.min(most)));
        let Backoff { until, strikes, .. } = self.backoff;
        if now < until {
            self.backoff.until = until.max(now + asked.unwrap_or_default());
        } else {
            let strikes = if now > self.backoff.forgiven() { 0 } else { strikes };
            self.backoff = if let Some(asked) = asked {
                Backoff { since: now, until: now + asked, strikes }
            } else {
                let doubled = base.min(most) * (1 << strikes.min(16));
                let wait = doubled.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 2.0).min(most);
                Backoff { since: now, until: now + micros(wait), strikes: strikes.saturating_add(1) }
            };
        }
        self.next = self.next.max(self.backoff.until);
        self.at = now;
        self.backoff.until
    }

    /// Blocks the host: nothing is requested from it any more.
    pub fn block(&mut self, now: u64) {
        self.go_back(now);
        self.is_blocked = true;
    }

    /// Lifts a block and a back-off. Returns whether there was either.
    pub fn unblock(&mut self, now: u64) -> bool {
        self.go_back(now);
        let was = self.is_blocked || self.backoff.until > now;
        if self.next <= self.backoff.until {
            self.next = 0;
        }
        self.backoff = Backoff::default();
        self.is_blocked = false;
        was
    }

    /// Returns whether this schedule makes no difference any more at `now`.
    pub fn is_past(&self, now: u64) -> bool {
        let forgiven = if self.backoff.until == 0 { 0 } else { self.backoff.forgiven() };
        !self.is_blocked
            && self.next.max(self.taken).max(self.line).max(forgiven) <= now
            && self.in_flight.iter().all(|sent| sent.until <= now)
    }

    /// Moves every instant back if `now` is earlier than the last change, which means that the clock was set back.
    /// Otherwise the host would not be asked until the old time.
    fn go_back(&mut self, now: u64) {
        let by = self.at.saturating_sub(now);
        if by > 0 {
            let Backoff { since, until, .. } = &mut self.backoff;
            let in_flight = self.in_flight.iter_mut().flat_map(|sent| [&mut sent.since, &mut sent.until]);
            for instant in
                [&mut self.next, &mut self.taken, &mut self.line, since, until].into_iter().chain(in_flight)
            {
                *instant = instant.saturating_sub(by);
            }
            self.at = now;
        }
    }

    /// Returns the first instant that is free for another request. Without a rate, any is.
    fn first_free(&self, pace: Pace, interval: u64, now: u64) -> u64 {
        let burst = interval * u64::from(pace.burst.max(1) - 1);
        let next = if pace.interval.is_zero() { 0 } else { self.next.saturating_sub(burst) };
        now.max(next).max(self.backoff.until)
    }

    /// Returns the first instant at which another request is not too early after those that were sent. Without a
    /// rate, any is.
    fn earliest(&self, pace: Pace, interval: u64) -> u64 {
        let burst = step(interval) * u64::from(pace.burst.max(1) - 1);
        let quantum = if interval < micros(QUANTUM) { micros(QUANTUM) } else { 0 };
        if pace.interval.is_zero() { 0 } else { self.taken.saturating_sub(burst + quantum) }
    }

    fn honours(&self, held: u64, interval: u64, now: u64) -> bool {
        now <= held.saturating_add(honoured(interval))
            && held >= self.backoff.until
            && held <= now + 2 * micros(HORIZON)
    }

    /// Lets a request be sent. At the limit of requests in flight, reserves a slot for the time when one of them
    /// should have ended.
    fn enter(&mut self, request: &SlotRequest, now: u64) -> Slot {
        let concurrency = request.pace.concurrency as usize;
        if concurrency > 0 && self.in_flight.len() >= concurrency {
            let interval = self.interval(request.pace);
            // If none has ended for a while, it may take as long again. Waiting requests should not ask all the
            // time.
            let youngest = self.in_flight.iter().map(|sent| sent.since).max().unwrap_or(now);
            let wait = now.saturating_sub(youngest).max(micros(MIN_STEP));
            let slot = self.next.max(now + interval.max(wait)).min(now + micros(HORIZON));
            self.next = self.next.max(slot + interval.max(wait / u64::from(request.pace.concurrency)));
            self.at = now;
            return reserved(slot, now);
        }
        self.taken = self.taken.max(now) + step(self.interval(request.pace));
        self.at = now;
        if concurrency > 0 {
            self.in_flight.push(SentRequest {
                token: request.token,
                since: now,
                until: now + micros(request.lapse),
            });
        }
        Slot::Now
    }

    /// Keeps the position at `turn` in the waitlist, or joins its end. A position after the deadline ends the URL
    /// only if the waitlist was still there when the URL came back.
    fn join_waitlist(
        &mut self,
        request: &SlotRequest,
        turn: Option<u64>,
        slot: u64,
        interval: u64,
        now: u64,
    ) -> Slot {
        let known = turn.is_some();
        let turn = turn.unwrap_or(self.line.max(slot));
        match request.deadline.is_some_and(|deadline| from_ms(deadline) < turn) {
            true if known => return Slot::TooLate,
            false if !known => (self.line, self.at) = (turn + interval, now),
            _ => {}
        }
        let wait = Duration::from_micros(turn - now).saturating_sub(LEAD);
        Slot::Later { wait, turn: UnixMs(turn / 1_000) }
    }

    /// Returns the time between two requests: by the pace, and long enough for the limit in flight (Little's law).
    fn interval(&self, pace: Pace) -> u64 {
        let busy = if pace.concurrency > 0 { self.latency / u64::from(pace.concurrency) } else { 0 };
        micros(pace.interval).max(busy)
    }
}

/// Returns the time after its instant for which a slot is honoured.
fn honoured(interval: u64) -> u64 {
    if interval < micros(QUANTUM) { micros(QUANTUM) } else { interval / HONOURED }
}

/// Returns the minimum time between two requests while late ones catch up.
fn step(interval: u64) -> u64 {
    interval - interval / TOLERANCE
}

fn reserved(slot: u64, now: u64) -> Slot {
    Slot::Reserved { wait: Duration::from_micros(slot - now), at: UnixMs(slot.div_ceil(1_000)) }
}

fn micros(duration: Duration) -> u64 {
    duration.as_micros() as u64
}

fn from_ms(instant: UnixMs) -> u64 {
    instant.0.saturating_mul(1_000)
}
