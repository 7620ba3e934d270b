//! Threads for work that may panic or never end.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{error, info, warn};

/// Maximum time for one piece of work, from when its thread starts it.
pub(super) const PARSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of late threads that are replaced. Each keeps a core busy and a page in memory: beyond this
/// number the worker continues with fewer threads, in the worst case none, until one comes back.
const MOST_LATE: isize = 8;

/// The reason why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The work panicked, with this message.
    Panicked(String),
    /// It took longer than [`PARSE_TIMEOUT`], and may still run.
    Overdue,
}

impl Lost {
    /// Returns the message of a panic.
    pub(super) fn new(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked(text.unwrap_or("no message").to_owned())
    }
}

/// The cost of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// Like most pages.
    Light,
    /// Much more: at most half of the threads do such work.
    Heavy,
}

/// Does a piece of work. Returns whether the thread is still part of the pool: `false` if the caller has
/// stopped waiting for the answer.
type Task = Box<dyn FnOnce() -> bool + Send>;

/// A fixed number of threads and their queue. They end when this is dropped and their work is done.
pub(super) struct Threads(Arc<Pool>);

impl Threads {
    /// Starts `number` threads.
    pub(super) fn start(number: usize) -> io::Result<Self> {
        let queue = Queue { heavy_places: (number / 2).max(1), ..Queue::default() };
        let pool = Pool { queue: Mutex::new(queue), changed: Condvar::new(), counts: Mutex::default() };
        let pool = Arc::new(pool);
        for _ in 0..number {
            pool.spawn_thread()?;
        }
        Ok(Self(pool))
    }

    /// Runs `work` on one of the threads, as soon as one is free. It should end soon when its flag is set:
    /// the caller has stopped waiting then, and another thread has replaced its own.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        weight: Weight,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let given_up = Arc::new(AtomicBool::new(false));
        let (begin, begun) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let pool = Arc::clone(&self.0);
        let mut wait = Wait { begun, has_begun: false, answered, is_over: false, weight, given_up, pool };
        let given_up = Arc::clone(&wait.given_up);
        let task: Task = Box::new(move || {
            if begin.send(()).is_err() {
                return true;
            }
            let result = catch_unwind(AssertUnwindSafe(|| work(&given_up)));
            answer.send(result.map_err(|panic| Lost::new(&*panic))).is_ok()
        });
        self.0.add(weight, task);
        wait.has_begun = (&mut wait.begun).await.is_ok();
        let answer = timeout(PARSE_TIMEOUT, &mut wait.answered).await;
        wait.is_over = answer.is_ok();
        answer.map_or(Err(Lost::Overdue), |answer| answer.unwrap_or(Err(Lost::Overdue)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.queue.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

/// Waits for one answer. If it is dropped before, it tells the work to end and has its thread replaced.
struct Wait<T> {
    begun: oneshot::Receiver<()>,
    has_begun: bool,
    answered: oneshot::Receiver<Result<T, Lost>>,
    is_over: bool,
    weight: Weight,
    given_up: Arc<AtomicBool>,
    pool: Arc<Pool>,
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        // After this, work that has not started will not start.
        self.begun.close();
        if !self.has_begun && self.begun.try_recv().is_err() {
            return;
        }
        self.answered.close();
        // If an answer came just before, the thread is in time; after this none can come.
        if !self.is_over && self.answered.try_recv().is_err() {
            self.given_up.store(true, Ordering::Relaxed);
            self.pool.replace(self.weight);
        }
    }
}

/// The shared state of the threads.
struct Pool {
    queue: Mutex<Queue>,
    /// Signalled when there is work, or room for heavy work, or no more work to come.
    changed: Condvar,
    counts: Mutex<Counts>,
}

/// The waiting work.
#[derive(Default)]
struct Queue {
    light: VecDeque<Task>,
    heavy: VecDeque<Task>,
    /// The number of further pieces of heavy work that may start.
    heavy_places: usize,
    is_closed: bool,
}

impl Queue {
    fn take(&mut self) -> Option<(Weight, Task)> {
        if let Some(task) = self.light.pop_front() {
            return Some((Weight::Light, task));
        }
        let task = if self.heavy_places > 0 { self.heavy.pop_front() } else { None }?;
        self.heavy_places -= 1;
        Some((Weight::Heavy, task))
    }
}

#[derive(Default)]
struct Counts {
    /// Threads at work without a caller. Negative for a moment if a thread comes back before its replacement
    /// is counted.
    late: isize,
    /// The number of these that were not replaced.
    missing: usize,
}

impl Pool {
    fn spawn_thread(self: &Arc<Self>) -> io::Result<()> {
        let pool = Arc::clone(self);
        std::thread::Builder::new().name("parse".to_owned()).spawn(move || pool.serve()).map(drop)
    }

    fn add(&self, weight: Weight, task: Task) {
        let mut queue = self.queue.lock();
        match weight {
            Weight::Light => queue.light.push_back(task),
            Weight::Heavy => queue.heavy.push_back(task),
        }
        drop(queue);
        self.changed.notify_one();
    }

    /// Waits for the next piece of work; returns `None` when there will be none.
    fn next(&self) -> Option<(Weight, Task)> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(next) = queue.take() {
                return Some(next);
            }
            if queue.is_closed {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }

    fn serve(&self) {
        while let Some((weight, task)) = self.next() {
            if task() {
                self.release(weight);
            } else if !self.takes_back() {
                return;
            }
        }
    }

    /// Records the end of a piece of work, so that another may start.
    fn release(&self, weight: Weight) {
        if weight == Weight::Heavy {
            self.queue.lock().heavy_places += 1;
            self.changed.notify_one();
        }
    }

    /// Replaces a late thread, unless too many are late.
    fn replace(self: &Arc<Self>, weight: Weight) {
        self.release(weight);
        let mut counts = self.counts.lock();
        counts.late += 1;
        let late = counts.late;
        let hired =
            if late <= MOST_LATE { self.spawn_thread() } else { Err(io::Error::other("too many are late")) };
        match hired {
            Ok(()) => {
                warn!(late, "a page is still being parsed when nobody waits for it; its thread is replaced")
            }
            Err(error) => {
                counts.missing += 1;
                error!(late, missing = counts.missing, %error, "a thread that parses is late and not replaced");
            }
        }
    }

    /// Whether a late thread that comes back is still needed.
    fn takes_back(&self) -> bool {
        let mut counts = self.counts.lock();
        counts.late -= 1;
        let is_needed = counts.missing > 0;
        counts.missing = counts.missing.saturating_sub(1);
        info!(late = counts.late, missing = counts.missing, "a late thread has come back");
        is_needed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as blocking;

    use futures::future::join_all;

    use super::*;

    /// Returns work that ends only when the sender is dropped, whatever its flag says.
    fn stuck() -> (blocking::Sender<()>, impl FnOnce(&AtomicBool) + Send) {
        let (free, held) = blocking::channel();
        let work = move |_: &AtomicBool| {
            let _ = held.recv();
        };
        (free, work)
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_and_its_thread_goes_on() {
        let threads = Threads::start(1).unwrap();
        let panicked = threads.run(Weight::Light, |_| -> u8 { panic!("at {}", 7) }).await;
        assert_eq!(panicked, Err(Lost::Panicked("at 7".to_owned())));
        assert_eq!(threads.run(Weight::Light, |_| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn more_work_than_threads_waits_and_is_done() {
        let threads = Threads::start(2).unwrap();
        let answers = join_all((0..100).map(|number| threads.run(Weight::Light, move |_| number))).await;
        assert!(answers.into_iter().eq((0..100).map(Ok)));
    }

    #[tokio::test]
    async fn heavy_work_leaves_half_of_the_threads_to_what_is_light() {
        let threads = Threads::start(4).unwrap();
        let (free, held) = (0..3).map(|_| stuck()).unzip::<_, _, Vec<_>, Vec<_>>();
        let mut heavy: Vec<_> =
            held.into_iter().map(|work| Box::pin(threads.run(Weight::Heavy, work))).collect();
        for work in &mut heavy {
            assert!(futures::poll!(work).is_pending());
        }
        assert_eq!(threads.run(Weight::Light, |_| 7).await, Ok(7));
        drop(free);
        assert!(join_all(heavy).await.into_iter().all(|done| done == Ok(())));
    }

    #[tokio::test]
    async fn work_that_is_not_wanted_any_more_before_it_begins_is_not_done() {
        let threads = Threads::start(1).unwrap();
        let (free, work) = stuck();
        let mut first = Box::pin(threads.run(Weight::Light, work));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(threads.run(Weight::Light, |_| panic!("done nevertheless")));
        assert!(futures::poll!(&mut second).is_pending());
        drop(second);
        drop(free);
        assert_eq!((first.await, threads.run(Weight::Light, |_| 7).await), (Ok(()), Ok(7)));
        assert_eq!(threads.0.counts.lock().late, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_overruns_is_told_and_its_thread_replaced() {
        let threads = Threads::start(1).unwrap();
        let (sender, receiver) = oneshot::channel();
        let (free, held) = blocking::channel::<()>();
        let overrun = threads.run(Weight::Light, move |given_up| {
            while !given_up.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let _ = sender.send(());
            let _ = held.recv();
        });
        assert_eq!(overrun.await, Err(Lost::Overdue));
        receiver.await.unwrap();
        // While the clock is paused, a timeout would fire at once.
        tokio::time::resume();
        assert_eq!(threads.run(Weight::Light, |_| 7).await, Ok(7));
        drop(free);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_nobody_waits_for_knows_it() {
        let threads = Threads::start(1).unwrap();
        let (begin, begun) = oneshot::channel();
        let (sender, receiver) = oneshot::channel();
        let mut run = Box::pin(threads.run(Weight::Light, move |given_up| {
            let _ = begin.send(());
            while !given_up.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let _ = sender.send(());
        }));
        assert!(futures::poll!(&mut run).is_pending());
        begun.await.unwrap();
        drop(run);
        receiver.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_thread_work_waits_until_a_late_one_comes_back() {
        let threads = Threads::start(1).unwrap();
        let mut all = Vec::new();
        for _ in 0..=MOST_LATE {
            let (free, work) = stuck();
            all.push(free);
            assert_eq!(threads.run(Weight::Light, work).await, Err(Lost::Overdue));
        }
        assert_eq!(threads.0.counts.lock().missing, 1);
        tokio::time::resume();
        let mut waiting = Box::pin(threads.run(Weight::Light, |_| 7));
        assert!(futures::poll!(&mut waiting).is_pending());
        all.pop();
        assert_eq!(waiting.await, Ok(7));
        assert_eq!(threads.0.counts.lock().missing, 0);
    }
}
