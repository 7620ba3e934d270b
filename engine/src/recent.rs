//! The latest admissions of a session. A store that is started anew after a crash may have lost its last second: what
//! had been admitted in it, and had come to an end that no other server knows of, would then be known to nobody.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use trawl_common::ports::NewWork;

use crate::records::Run;

/// Time between two looks for another run of the store.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The latest writes that a store may lose in a crash: Redis writes its file each second, and may be a second late.
const UNSYNCED: Duration = Duration::from_secs(3);

/// The admissions since the last look at the store, and shortly before.
pub(crate) struct Recent(Mutex<State>);

struct State {
    /// The run in which all earlier admissions are known.
    run: Run,
    /// The latest admissions, the oldest first.
    admitted: VecDeque<(Instant, Vec<NewWork>)>,
}

impl Recent {
    pub(crate) fn new(run: Run) -> Self {
        Self(Mutex::new(State { run, admitted: VecDeque::new() }))
    }

    /// Records what was admitted just now.
    pub(crate) fn note(&self, admitted: Vec<NewWork>) {
        if !admitted.is_empty() {
            self.0.lock().admitted.push_back((Instant::now(), admitted));
        }
    }

    /// Returns what a store that is in this run may have lost.
    pub(crate) fn lost_in(&self, run: &Run) -> Vec<NewWork> {
        let state = self.0.lock();
        let admitted = || state.admitted.iter().flat_map(|(_, admitted)| admitted.iter().cloned());
        if state.run == *run { Vec::new() } else { admitted().collect() }
    }

    /// Records that the store was in this run at an instant, and knows what was lost.
    pub(crate) fn note_run(&self, run: Run, at: Instant) {
        let mut state = self.0.lock();
        let unsafe_for = if state.run == run { UNSYNCED } else { Duration::ZERO };
        let is_safe = |(admitted, _): &&(Instant, Vec<NewWork>)| *admitted + unsafe_for < at;
        let safe = state.admitted.iter().take_while(is_safe).count();
        state.admitted.drain(..safe);
        state.run = run;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;
    use trawl_common::frontier::lane::Lane;

    use super::*;

    fn run(number: u8) -> Run {
        Run(number.to_string())
    }

    fn page(number: u8) -> NewWork {
        let url: trawl_common::web::url::CanonicalUrl =
            format!("http://site.example/{number}").parse().unwrap();
        NewWork::seed(url, Lane::Bulk)
    }

    /// Returns what is lost in a run that the store is in now, and known again at once.
    fn lost(recent: &Recent, number: u8) -> Vec<NewWork> {
        let lost = recent.lost_in(&run(number));
        recent.note_run(run(number), Instant::now());
        lost
    }

    #[tokio::test(start_paused = true)]
    async fn another_run_may_lack_what_was_admitted_shortly_before_its_predecessor_was_seen_last() {
        let recent = Recent::new(run(1));
        for number in 0..10 {
            recent.note(vec![page(number)]);
            advance(Duration::from_secs(1)).await;
            assert_eq!(lost(&recent, 1), []);
        }
        // However long it is away.
        advance(Duration::from_secs(100)).await;
        assert_eq!(recent.lost_in(&run(2)), [7, 8, 9].map(page));
        assert_eq!(lost(&recent, 2), [7, 8, 9].map(page), "until it is known again");
        assert_eq!(lost(&recent, 3), []);
    }
}
