//! The requests of a page that are under way. They show when it is at rest, which no script needs to say.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// Maximum number of requests of a page; further ones are refused.
const MAX_REQUESTS: u64 = 1_000;

/// A page is at rest when it has asked for nothing for this time: what a script does with an answer may lead to the
/// next request.
const QUIET_TIME: Duration = Duration::from_millis(500);

/// The time without a byte after which a page no longer waits for the answer to a request that was sent: it may be kept
/// open until there is news.
const LONG_POLL: Duration = Duration::from_secs(5);

/// Maximum time for a page, however long its requests wait for their slots.
const MAX_TIME: Duration = Duration::from_secs(600);

/// The page was not at rest in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overdue;

/// The requests of a page.
#[derive(Debug)]
pub(super) struct Activity {
    begun: Instant,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    begun: u64,
    open: HashMap<u64, Progress>,
    /// When the last request was over.
    last: Instant,
}

/// The progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// It waits for its slot.
    Waits,
    /// It was sent, and its last byte arrived at this time.
    Sent(Instant),
}

/// A request under way, until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    activity: Arc<Activity>,
    id: u64,
}

impl Activity {
    pub(super) fn new() -> Self {
        let state = State { begun: 0, open: HashMap::new(), last: Instant::now() };
        Self { begun: state.last, state: Mutex::new(state), changed: watch::Sender::default() }
    }

    /// Begins a request, unless the page has had too many.
    pub(super) fn begin(self: &Arc<Self>) -> Option<UnderWay> {
        let mut state = self.state.lock();
        if state.begun == MAX_REQUESTS {
            return None;
        }
        state.begun += 1;
        let id = state.begun;
        state.open.insert(id, Progress::Waits);
        drop(state);
        self.changed.send_replace(());
        Some(UnderWay { activity: Arc::clone(self), id })
    }

    /// Waits for something.
    ///
    /// # Errors
    /// Fails when that has taken longer than `limit`, not counting the time in which requests wait for slots, or the page
    /// has had its time.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        waiting: impl Future<Output = T>,
    ) -> Result<T, Overdue> {
        tokio::select! {
            done = waiting => Ok(done),
            () = self.spend(limit) => Err(Overdue),
            () = sleep_until(self.begun + MAX_TIME) => Err(Overdue),
        }
    }

    /// Records that something is done to the page, which may make it ask for more.
    pub(super) fn stir(&self) {
        self.state.lock().last = Instant::now();
    }

    /// Waits until the page is at rest.
    pub(super) async fn quiet(&self) {
        let mut changed = self.changed.subscribe();
        loop {
            match self.quiet_since().map(|since| since + QUIET_TIME) {
                Some(at) if at <= Instant::now() => return,
                Some(at) => tokio::select! {
                    () = sleep_until(at) => {}
                    _ = changed.changed() => {}
                },
                None => drop(changed.changed().await),
            }
        }
    }

    /// Returns since when the page waits for nothing, which may be yet to come; `None` if a request waits for its slot.
    fn quiet_since(&self) -> Option<Instant> {
        let state = self.state.lock();
        let ends = state.open.values().map(|progress| match progress {
            Progress::Waits => None,
            Progress::Sent(last) => Some(*last + LONG_POLL),
        });
        ends.chain([Some(state.last)]).try_fold(state.last, |latest, end| end.map(|end| latest.max(end)))
    }

    /// Returns when so much time has passed in which no request waited for its slot.
    async fn spend(&self, mut left: Duration) {
        let mut changed = self.changed.subscribe();
        loop {
            if self.is_waiting() {
                // The sender is this.
                let _ = changed.changed().await;
                continue;
            }
            let begun = Instant::now();
            tokio::select! {
                () = sleep(left) => return,
                _ = changed.changed() => left = left.saturating_sub(begun.elapsed()),
            }
        }
    }

    fn is_waiting(&self) -> bool {
        self.state.lock().open.values().any(|progress| *progress == Progress::Waits)
    }
}

impl UnderWay {
    /// Records that the request is sent, or that a part of its answer has arrived.
    pub(super) fn progress(&self) {
        let before = self.activity.state.lock().open.insert(self.id, Progress::Sent(Instant::now()));
        if before == Some(Progress::Waits) {
            self.activity.changed.send_replace(());
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.open.remove(&self.id);
        state.last = Instant::now();
        drop(state);
        self.activity.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::advance;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn activity() -> Arc<Activity> {
        Arc::new(Activity::new())
    }

    /// Returns the time until a page is at rest beside what `page` does.
    async fn rests_after(
        activity: &Arc<Activity>,
        page: impl Future<Output = ()>,
    ) -> Result<Duration, Overdue> {
        let begun = Instant::now();
        let resting = activity.within(LIMIT, activity.quiet());
        let page = async {
            page.await;
            pending::<()>().await;
        };
        // The page first: it asks for something before it is asked about.
        tokio::select! {
            biased;
            () = page => unreachable!("it never ends"),
            rested = resting => rested.map(|()| begun.elapsed()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_at_rest_a_while_after_its_last_answer() {
        let activity = activity();
        let page = async {
            let request = activity.begin().unwrap();
            request.progress();
            sleep(Duration::from_secs(2)).await;
            drop(request);
            sleep(QUIET_TIME / 2).await;
            drop(activity.begin());
        };
        assert_eq!(rests_after(&activity, page).await, Ok(Duration::from_secs(2) + QUIET_TIME * 3 / 2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_for_long_is_not_waited_for() {
        let activity = activity();
        let page = async {
            let request = activity.begin().unwrap();
            request.progress();
            sleep(Duration::from_secs(3)).await;
            request.progress();
            pending().await
        };
        assert_eq!(rests_after(&activity, page).await, Ok(Duration::from_secs(3) + LONG_POLL + QUIET_TIME));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_a_request_waits_for_its_slot_is_not_the_pages() {
        let activity = activity();
        let page = async {
            let request = activity.begin().unwrap();
            sleep(LIMIT * 2).await;
            request.progress();
        };
        assert_eq!(rests_after(&activity, page).await, Ok(LIMIT * 2 + QUIET_TIME));
        // The other has been at rest for long.
        let activity = self::activity();
        let page = async {
            let _request = activity.begin();
            pending().await
        };
        assert_eq!(rests_after(&activity, page).await, Err(Overdue), "not for ever");
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_never_rests_is_given_up() {
        let activity = activity();
        let page = async {
            loop {
                drop(activity.begin());
                sleep(QUIET_TIME / 2).await;
            }
        };
        let begun = Instant::now();
        assert_eq!(rests_after(&activity, page).await, Err(Overdue));
        assert_eq!(begun.elapsed(), LIMIT);
        advance(LIMIT).await;
        assert_eq!(activity.within(LIMIT, pending::<()>()).await, Err(Overdue), "it does not load");
    }

    #[tokio::test(start_paused = true)]
    async fn after_something_is_done_to_a_page_it_has_time_to_ask_for_more() {
        let activity = activity();
        let page = async {
            sleep(QUIET_TIME / 2).await;
            activity.stir();
        };
        assert_eq!(rests_after(&activity, page).await, Ok(QUIET_TIME * 3 / 2));
    }

    #[test]
    fn a_page_has_so_many_requests_and_no_more() {
        let activity = Arc::new(Activity::new());
        assert!((0..MAX_REQUESTS).all(|_| activity.begin().is_some()));
        assert!(activity.begin().is_none());
    }
}
