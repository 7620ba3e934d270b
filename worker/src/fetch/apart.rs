//! On which threads something is fetched: on the worker's own, or on those apart (`Threads`), where an answer that keeps a thread
//! busy keeps waiting only what may do so itself.
//!
//! The way there and back costs CPU. So what is known to be quick is fetched on the worker's own threads, and as long as nothing has
//! kept these busy, so is the first page of a domain of which nothing is known. What is under way there when they come late to
//! what is due may be the cause: it is given up, and asked for again apart. Where they come late because the machine is busy with
//! something else, or stood still, nothing is given up: the process has used little CPU then.

use std::pin::pin;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, timeout};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_web::Fetcher;

use crate::shared::Shared;
use crate::spiders::Loaded;

/// How often to look whether something keeps threads busy, while an answer takes its time.
const LOOK: Duration = Duration::from_millis(100);

/// They do what is due later than this only if something does.
const LATE: Duration = Duration::from_millis(150);

/// A process that something keeps busy has used this part of its time at least, even where others have all processors busy too.
const BUSY: u32 = 5;

/// So much later is asked for what was given up.
const AWAY: Duration = Duration::from_secs(2);

/// What `ask` comes to on the threads that are right for a domain; or when to ask again, as it was given up.
pub(crate) async fn ask<T>(
    shared: &Shared,
    spider: &Loaded,
    domain: HostKey,
    ask: impl AsyncFnOnce(&Fetcher) -> T,
) -> Result<T, UnixMs> {
    if !shared.domains.is_trusted(&domain) {
        return Ok(ask(&spider.apart).await);
    }
    let answer = unless_busy(ask(&spider.fetcher), cpu_time).await;
    answer.ok_or_else(|| {
        shared.domains.kept_busy(domain);
        UnixMs::now().plus(AWAY)
    })
}

/// What `call` comes to, unless it takes its time and its threads come late to what is due, busy with something, twice in a row.
/// `cpu_time` is what the process has used of its processors so far. It costs a system call, which quick pages are spared: of the first
/// look it is not known.
async fn unless_busy<T>(call: impl Future<Output = T>, cpu_time: impl Fn() -> Duration) -> Option<T> {
    let mut call = pin!(call);
    let (mut was_late, mut used) = (false, None);
    loop {
        let begun = Instant::now();
        if let Ok(result) = timeout(LOOK, &mut call).await {
            return Some(result);
        }
        let (passed, used_now) = (begun.elapsed(), cpu_time());
        let was_starved = used.is_some_and(|used| used_now.saturating_sub(used) < passed / BUSY);
        let is_late = passed > LOOK + LATE && !was_starved;
        if was_late && is_late {
            return None;
        }
        (was_late, used) = (is_late, Some(used_now));
    }
}

fn cpu_time() -> Duration {
    // Never before it began.
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::task::yield_now;
    use tokio::time::{advance, sleep};

    use super::*;

    /// The CPU time of a process that has kept one of its processors busy since now.
    fn busy() -> impl Fn() -> Duration {
        let begun = Instant::now();
        move || begun.elapsed()
    }

    /// That of a process that only now and then had one.
    fn starved() -> impl Fn() -> Duration {
        let begun = Instant::now();
        move || begun.elapsed() / (BUSY * 2)
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_its_time_goes_on_while_its_threads_are_in_time() {
        let slow = sleep(LOOK * 100);
        assert_eq!(unless_busy(slow, busy()).await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_its_time_is_given_up_when_its_threads_come_late_twice_in_a_row() {
        let call = tokio::spawn(unless_busy(pending::<()>(), busy()));
        for _ in 0..2 {
            yield_now().await;
            assert!(!call.is_finished());
            advance(LOOK + LATE * 2).await;
        }
        assert_eq!(call.await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_when_they_come_late_because_the_machine_is_busy_with_something_else() {
        let call = tokio::spawn(unless_busy(pending::<()>(), starved()));
        for _ in 0..5 {
            yield_now().await;
            advance(LOOK + LATE * 2).await;
        }
        yield_now().await;
        assert!(!call.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_when_they_come_late_once_now_and_then() {
        let call = tokio::spawn(unless_busy(pending::<()>(), busy()));
        for late in [LATE * 2, Duration::ZERO, LATE * 2, Duration::ZERO] {
            yield_now().await;
            advance(LOOK + late).await;
        }
        yield_now().await;
        assert!(!call.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_there_by_then_counts_however_late() {
        let call = tokio::spawn(unless_busy(sleep(LOOK * 2), busy()));
        for _ in 0..2 {
            yield_now().await;
            advance(LOOK + LATE * 2).await;
        }
        assert_eq!(call.await.unwrap(), Some(()));
    }
}
