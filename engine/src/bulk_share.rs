//! Decides how many URLs of the bulk lane are handed out while others return late.
//!
//! Each queue has a window of its own, so a worker whose window for returning URLs is used up would go on with new ones.
//! If a page links to thousands of hosts that do not exist, each new URL soon returns as well, and those of hosts that
//! keep their pace wait behind them.

use std::time::Duration;

use tokio::time::Instant;
use trawl_common::frontier::ladder::{LATE, MAX_LATE};

/// Number of URLs that the mean lateness is of, approximately.
const OF: u32 = 32;

/// Time after which new URLs are held back no longer if none has returned.
const HOLD: Duration = Duration::from_secs(1);

/// Number of URLs that return for each new one meanwhile.
const PER_NEW: u32 = 8;

/// The share of the bulk lane.
#[derive(Debug, Default)]
pub(crate) struct BulkShare {
    /// The mean lateness of the last URLs that have returned.
    late: Duration,
    /// When the last of them did.
    last: Option<Instant>,
    /// Number of URLs that have returned since the last new one.
    returned: u32,
}

impl BulkShare {
    /// Records that a URL has returned, so much later than it was due.
    pub(crate) fn note_returned(&mut self, late: Duration, now: Instant) {
        self.late = (self.late * (OF - 1) + late.min(MAX_LATE)) / OF;
        self.last = Some(now);
        self.returned = self.returned.saturating_add(1);
    }

    /// Records that a new URL was taken.
    pub(crate) fn note_new(&mut self) {
        self.returned = 0;
    }

    /// Whether a new URL may be taken.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.held_until(now).is_none() || self.returned >= PER_NEW
    }

    /// The time until which new URLs are held back; `None` if they are not.
    pub(crate) fn held_until(&self, now: Instant) -> Option<Instant> {
        self.last.filter(|_| self.late >= LATE).map(|last| last + HOLD).filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_urls_are_held_back_to_one_in_nine_while_others_return_late() {
        let (mut share, now) = (BulkShare::default(), Instant::now());
        let may_take = |share: &mut BulkShare, at| {
            let taken = (0..100).take_while(|_| share.has_room(at)).count();
            share.note_new();
            taken
        };
        assert_eq!(may_take(&mut share, now), 100);
        (0..50).for_each(|_| share.note_returned(Duration::from_millis(100), now));
        assert_eq!(may_take(&mut share, now), 100, "none was late");
        share.note_returned(2 * LATE, now);
        assert_eq!(may_take(&mut share, now), 100, "one alone was late");
        (0..100).for_each(|_| share.note_returned(2 * LATE, now));
        share.note_new();
        assert_eq!(may_take(&mut share, now), 0);
        let new = (0..80).map(|_| {
            share.note_returned(2 * LATE, now);
            let has_room = share.has_room(now);
            if has_room {
                share.note_new();
            }
            usize::from(has_room)
        });
        assert_eq!(new.sum::<usize>(), 10);
        assert_eq!(may_take(&mut share, now + HOLD), 100, "none has returned for a second");
        (0..100).for_each(|_| share.note_returned(Duration::ZERO, now));
        assert_eq!(may_take(&mut share, now), 100, "they are in time again");
    }
}
