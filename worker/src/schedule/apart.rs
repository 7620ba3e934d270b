//! The choice of threads for a fetch: the worker's own, or separate ones (`Threads`), where a response that
//! keeps a thread busy delays only fetches that may do the same.
//!
//! Handing work to other threads costs CPU time. So domains known to be quick are fetched on the worker's own
//! threads, and, as long as nothing has kept these busy, so is the first page of an unknown domain. If these
//! threads fall behind their timers, the fetches in progress there may be the cause: they are aborted, and
//! repeated on the separate threads. If they fall behind because the machine is busy with something else, or
//! was suspended, nothing is aborted: the process has used little CPU time then.

use std::pin::pin;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::{Instant, timeout};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_web::Fetcher;

use super::domains::Domains;
use crate::spiders::LoadedSpider;

/// Interval at which to check for busy threads, while a response takes its time.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A timer that fires later than this shows that the threads are busy.
const MAX_TIMER_DELAY: Duration = Duration::from_millis(150);

/// A busy process has used at least this fraction of its time as CPU time, even if other processes keep all
/// processors busy too.
const BUSY_FRACTION: u32 = 5;

/// Delay before an aborted fetch is repeated.
const RETRY_DELAY: Duration = Duration::from_secs(2);

/// Runs `ask` on the threads that suit a domain. Returns the time at which to repeat it if it was aborted.
pub(crate) async fn ask<T>(
    domains: &Domains,
    spider: &LoadedSpider,
    domain: HostKey,
    ask: impl AsyncFnOnce(&Fetcher) -> T,
) -> Result<T, UnixMs> {
    if !domains.is_trusted(&domain) {
        return Ok(ask(&spider.apart).await);
    }
    let answer = unless_busy(ask(&spider.fetcher), cpu_time).await;
    answer.ok_or_else(|| {
        domains.kept_busy(domain);
        UnixMs::now().plus(RETRY_DELAY)
    })
}

/// Returns the result of `call`, or `None` if it takes its time and its threads are late twice in a row
/// because they are busy. `cpu_time` returns the CPU time that the process has used so far. It costs a system
/// call, which quick pages are spared, so the usage before the first check is unknown.
async fn unless_busy<T>(call: impl Future<Output = T>, cpu_time: impl Fn() -> Duration) -> Option<T> {
    let mut call = pin!(call);
    let (mut was_late, mut used) = (false, None);
    loop {
        let begun = Instant::now();
        if let Ok(result) = timeout(CHECK_INTERVAL, &mut call).await {
            return Some(result);
        }
        let (passed, used_now) = (begun.elapsed(), cpu_time());
        let was_starved = used.is_some_and(|used| used_now.saturating_sub(used) < passed / BUSY_FRACTION);
        let is_late = passed > CHECK_INTERVAL + MAX_TIMER_DELAY && !was_starved;
        if was_late && is_late {
            return None;
        }
        (was_late, used) = (is_late, Some(used_now));
    }
}

fn cpu_time() -> Duration {
    // Never before the process started.
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::task::yield_now;
    use tokio::time::{advance, sleep};

    use super::*;

    /// The CPU time of a process that has kept one processor busy since now.
    fn busy() -> impl Fn() -> Duration {
        let begun = Instant::now();
        move || begun.elapsed()
    }

    /// The CPU time of a process that rarely had a processor.
    fn starved() -> impl Fn() -> Duration {
        let begun = Instant::now();
        move || begun.elapsed() / (BUSY_FRACTION * 2)
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_its_time_goes_on_while_its_threads_are_in_time() {
        let slow = sleep(CHECK_INTERVAL * 100);
        assert_eq!(unless_busy(slow, busy()).await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_its_time_is_given_up_when_its_threads_come_late_twice_in_a_row() {
        let call = tokio::spawn(unless_busy(pending::<()>(), busy()));
        for _ in 0..2 {
            yield_now().await;
            assert!(!call.is_finished());
            advance(CHECK_INTERVAL + MAX_TIMER_DELAY * 2).await;
        }
        assert_eq!(call.await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_when_they_come_late_because_the_machine_is_busy_with_something_else() {
        let call = tokio::spawn(unless_busy(pending::<()>(), starved()));
        for _ in 0..5 {
            yield_now().await;
            advance(CHECK_INTERVAL + MAX_TIMER_DELAY * 2).await;
        }
        yield_now().await;
        assert!(!call.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_when_they_come_late_once_now_and_then() {
        let call = tokio::spawn(unless_busy(pending::<()>(), busy()));
        for late in [MAX_TIMER_DELAY * 2, Duration::ZERO, MAX_TIMER_DELAY * 2, Duration::ZERO] {
            yield_now().await;
            advance(CHECK_INTERVAL + late).await;
        }
        yield_now().await;
        assert!(!call.is_finished());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_there_by_then_counts_however_late() {
        let call = tokio::spawn(unless_busy(sleep(CHECK_INTERVAL * 2), busy()));
        for _ in 0..2 {
            yield_now().await;
            advance(CHECK_INTERVAL + MAX_TIMER_DELAY * 2).await;
        }
        assert_eq!(call.await.unwrap(), Some(()));
    }
}
