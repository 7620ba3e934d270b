//! Connections whose owner is not known yet, for programs that serve callers.
//!
//! Anybody can open connections and send nothing. A time limit alone does not help, because all places stay taken
//! until it is over. So when places run out, the oldest of these connections ends, and a caller that identifies
//! itself at once gets through.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The newcomers, each with the place that it takes.
pub struct Newcomers<P>(Mutex<Waiting<P>>);

struct Waiting<P> {
    next: u64,
    /// The newcomers, by the order in which they came.
    all: BTreeMap<u64, (P, CancellationToken)>,
}

impl<P> Default for Newcomers<P> {
    fn default() -> Self {
        Self(Mutex::new(Waiting { next: 0, all: BTreeMap::new() }))
    }
}

/// A connection that is a newcomer until it leaves.
pub struct Newcomer<P> {
    newcomers: Arc<Newcomers<P>>,
    number: u64,
    ended: CancellationToken,
}

impl<P> Newcomers<P> {
    /// Adds a connection that has got `place`.
    pub fn enter(self: &Arc<Self>, place: P) -> Newcomer<P> {
        let ended = CancellationToken::new();
        let mut waiting = self.0.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.all.insert(number, (place, ended.clone()));
        Newcomer { newcomers: Arc::clone(self), number, ended }
    }

    /// Ends the oldest newcomer whose place `is` accepts. The place is free when this returns; `false` if there is
    /// none.
    pub fn end_oldest(&self, is: impl Fn(&P) -> bool) -> bool {
        let mut waiting = self.0.lock();
        let oldest = waiting.all.iter().find(|(_, (place, _))| is(place)).map(|(number, _)| *number);
        let Some((place, ended)) = oldest.and_then(|oldest| waiting.all.remove(&oldest)) else {
            return false;
        };
        drop(waiting);
        drop(place);
        ended.cancel();
        true
    }

    fn remove(&self, number: u64) -> Option<P> {
        self.0.lock().all.remove(&number).map(|(place, _)| place)
    }
}

impl<P> Newcomer<P> {
    /// Notes that the owner of the connection is known: it is no longer ended in favour of others. Returns its
    /// place, once, if it was not ended before.
    pub fn leave(&self) -> Option<P> {
        self.newcomers.remove(self.number)
    }

    /// Returns when the connection is to end, because another one needs the place.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl<P> Drop for Newcomer<P> {
    fn drop(&mut self) {
        self.newcomers.remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_of_a_kind_ends_and_whoever_is_known_stays() {
        let newcomers = Arc::new(Newcomers::default());
        let [known, other, first, second] = ["a", "b", "a", "a"].map(|kind| newcomers.enter(kind));
        assert_eq!((known.leave(), known.leave()), (Some("a"), None));
        assert!(newcomers.end_oldest(|kind| *kind == "a"));
        first.ended().await;
        assert_eq!(first.leave(), None);
        drop(second);
        assert!(!newcomers.end_oldest(|kind| *kind == "a"), "it has ended by itself");
        assert!(newcomers.end_oldest(|_| true));
        other.ended().await;
    }
}
