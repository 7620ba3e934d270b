//! Limits on resources that callers keep open: streams, waits, connections.
//!
//! One rule divides them: **a caller gets another permit only if more are free than it holds already.** So the
//! first caller gets half of them, the next one half of the rest, and however many one asks for, another
//! still finds one. For viewers some permits count as taken: they are reserved for operators.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::identity::Identity;
use crate::limits::Caller;
use crate::problem::{Kind, Problem, RETRY_AFTER};

/// Permits of one kind.
pub(crate) struct Permits {
    /// The number of permits.
    all: usize,
    /// The number reserved for operators.
    kept: usize,
    /// The kind of resource, for people: `streams of the log`.
    what: &'static str,
    held: Mutex<HashMap<Caller, usize>>,
    freed: Notify,
}

/// A permit, held until it is dropped.
pub(crate) struct Permit {
    permits: Arc<Permits>,
    caller: Caller,
}

/// The reason why a caller gets no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The caller holds this many, and the rest is left for others.
    Share(usize),
    /// The free permits are reserved for operators.
    Kept,
    /// All are taken.
    Full,
}

impl Permits {
    pub(crate) fn new(all: usize, kept: usize, what: &'static str) -> Arc<Self> {
        Arc::new(Self { all, kept, what, held: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a permit for an authenticated caller.
    pub(crate) fn take(self: &Arc<Self>, identity: &Identity) -> Result<Permit, Problem> {
        let kept = if identity.is_operator() { 0 } else { self.kept };
        self.take_beside(kept, identity.caller()).map_err(|why| self.problem(identity, why))
    }

    /// Like [`Self::take`], but waits up to `longest` for a permit to become free.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        identity: &Identity,
        longest: Duration,
    ) -> Result<Permit, Problem> {
        let until = Instant::now() + longest;
        loop {
            // Before the attempt, so that a permit freed after it is not missed.
            let freed = self.freed.notified();
            match self.take(identity) {
                Err(problem) if timeout_at(until, freed).await.is_err() => return Err(problem),
                Err(_) => {}
                permit => return permit,
            }
        }
    }

    /// Takes a permit for any caller.
    pub(crate) fn take_as(self: &Arc<Self>, caller: &Caller) -> Result<Permit, Refused> {
        self.take_beside(0, caller)
    }

    fn take_beside(self: &Arc<Self>, kept: usize, caller: &Caller) -> Result<Permit, Refused> {
        let caller = caller.counted();
        let mut held = self.held.lock();
        let free = self.all - held.values().sum::<usize>();
        let own = held.get(&caller).copied().unwrap_or_default();
        may_take(own, free, kept)?;
        held.insert(caller.clone(), own + 1);
        Ok(Permit { permits: Arc::clone(self), caller })
    }

    fn problem(&self, identity: &Identity, why: Refused) -> Problem {
        let Self { all, kept, what, .. } = self;
        let name = identity.name();
        let (kind, detail) = match why {
            Refused::Share(held) => (
                Kind::TooManyRequests,
                format!("{name} has {held} {what}, and the rest are for others: end one of them"),
            ),
            Refused::Kept => (
                Kind::TooManyRequests,
                format!("{} {what} are open, and {kept} more are kept for operators: try again", all - kept),
            ),
            Refused::Full => (Kind::Unavailable, format!("all {all} {what} are taken: try again")),
        };
        Problem::new(kind, detail).retry_after(RETRY_AFTER)
    }
}

/// Whether a caller who holds `own` permits may take another one of `free`, of which `kept` are not for them.
fn may_take(own: usize, free: usize, kept: usize) -> Result<(), Refused> {
    match free.saturating_sub(kept) {
        _ if free == 0 => Err(Refused::Full),
        open if open > own => Ok(()),
        0 if own == 0 => Err(Refused::Kept),
        _ => Err(Refused::Share(own)),
    }
}

impl Permit {
    /// Whether it counts as this caller's.
    pub(crate) fn is_of(&self, caller: &Caller) -> bool {
        self.caller == caller.counted()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut held = self.permits.held.lock();
        if let Some(own) = held.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.caller);
            }
        }
        self.permits.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use axum::http::header::HOST;
    use trawl_common::settings;

    use super::*;
    use crate::access::Access;

    /// Takes permits for a caller of this name, with `kept` not for them, until refused.
    fn all_that(name: &str, permits: &Arc<Permits>, kept: usize) -> (Vec<Permit>, Refused) {
        let caller = Caller::Named(name.parse().unwrap());
        let mut got = Vec::new();
        loop {
            match permits.take_beside(kept, &caller) {
                Ok(permit) => got.push(permit),
                Err(why) => return (got, why),
            }
        }
    }

    #[test]
    fn who_asks_without_end_gets_half_and_leaves_something_to_the_next() {
        let permits = Permits::new(8, 2, "streams");
        let (first, why) = all_that("a", &permits, 0);
        assert_eq!((first.len(), why), (4, Refused::Share(4)));
        let (second, why) = all_that("b", &permits, 0);
        assert_eq!((second.len(), why), (2, Refused::Share(2)));
        let (third, _) = all_that("c", &permits, 0);
        assert_eq!(third.len(), 1);
        drop(first);
        assert!(all_that("d", &permits, 0).0.len() >= 2, "permits come back");
    }

    #[test]
    fn however_many_viewers_there_are_an_operator_finds_a_place() {
        let permits = Permits::new(8, 2, "streams");
        let viewers: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| all_that(name, &permits, 2)).into();
        assert_eq!(viewers.iter().map(|(got, _)| got.len()).sum::<usize>(), 6);
        assert_eq!(viewers[4].1, Refused::Kept);
        let (operator, _) = all_that("f", &permits, 0);
        assert_eq!(operator.len(), 1);
        let (last, why) = all_that("g", &permits, 0);
        assert_eq!((last.len(), why), (1, Refused::Full));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_gets_the_place_that_comes_free_and_gives_up_in_time() {
        let access = Access::new(&settings::Api::default(), "127.0.0.1:1".parse().unwrap()).unwrap();
        let headers = HeaderMap::from_iter([(HOST, "localhost".parse().unwrap())]);
        let identity = access.anyone(&headers, [127, 0, 0, 1].into()).unwrap().unwrap();
        let (permits, longest) = (Permits::new(2, 1, "examinations"), Duration::from_secs(10));
        let first = permits.wait(&identity, longest).await.unwrap();
        let refused = permits.wait(&identity, longest).await.err().unwrap();
        assert_eq!((refused.status().as_u16(), refused.seconds_to_wait()), (429, Some(RETRY_AFTER)));
        let end = async {
            tokio::time::sleep(longest / 2).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(permits.wait(&identity, longest), end);
        assert!(second.is_ok());
    }

    #[test]
    fn whoever_has_the_addresses_of_one_machine_is_one_caller() {
        let permits = Permits::new(8, 0, "connections");
        let from = |address: &str| permits.take_as(&Caller::Address(address.parse().unwrap()));
        let held: Vec<_> = (1..=9).map_while(|host| from(&format!("127.0.0.{host}")).ok()).collect();
        assert_eq!(held.len(), 4);
        assert!(from("::1").is_err());
        assert!(from("192.0.2.1").is_ok());
    }
}
