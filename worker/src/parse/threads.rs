//! Threads for work that may panic or never end.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tracing::{error, info, warn};

/// How long one piece of work may take from when its thread begins it.
pub(super) const LONGEST: Duration = Duration::from_secs(10);

/// The most threads that are replaced while they are late. Each keeps a core busy and a page in memory: beyond this
/// number the worker goes on with fewer threads, in the worst case none, until one comes back.
const MOST_LATE: isize = 8;

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The work panicked, with this message.
    Panicked(String),
    /// It took longer than [`LONGEST`], and may still run.
    Overdue,
}

impl Lost {
    /// What a panic said.
    pub(super) fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked(text.unwrap_or("no message").to_owned())
    }
}

/// Does a piece of work; says whether anybody still wanted the answer.
type Task = Box<dyn FnOnce() -> bool + Send>;

/// A fixed number of threads behind a bounded queue. They end when this is dropped and their work is done.
pub(super) struct Threads {
    queue: mpsc::Sender<Task>,
    crew: Arc<Crew>,
}

impl Threads {
    /// Starts `number` threads.
    pub(super) fn start(number: usize) -> io::Result<Self> {
        let (queue, tasks) = mpsc::channel(number);
        let crew = Arc::new(Crew { tasks: Mutex::new(tasks), counts: Mutex::default() });
        for _ in 0..number {
            crew.hire()?;
        }
        Ok(Self { queue, crew })
    }

    /// Does `work` on one of the threads, as soon as one is free. It should end soon when its flag is set: then nobody
    /// waits for it any more, and another thread has taken the place of its own.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let given_up = Arc::new(AtomicBool::new(false));
        let (begin, begun) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let mut wait =
            Wait { answered, is_over: false, given_up: Arc::clone(&given_up), crew: Arc::clone(&self.crew) };
        let task: Task = Box::new(move || {
            let _ = begin.send(());
            let result = catch_unwind(AssertUnwindSafe(|| work(&given_up)));
            answer.send(result.map_err(|panic| Lost::of(&*panic))).is_ok()
        });
        if self.queue.send(task).await.is_err() || begun.await.is_err() {
            unreachable!("the crew keeps the queue open, and a thread that takes a task begins it");
        }
        let answer = timeout(LONGEST, &mut wait.answered).await;
        wait.is_over = answer.is_ok();
        answer.map_or(Err(Lost::Overdue), |answer| answer.unwrap_or(Err(Lost::Overdue)))
    }
}

/// Waits for one answer. Dropped before it came, it tells the work to end and has its thread replaced.
struct Wait<T> {
    answered: oneshot::Receiver<Result<T, Lost>>,
    is_over: bool,
    given_up: Arc<AtomicBool>,
    crew: Arc<Crew>,
}

impl<T> Drop for Wait<T> {
    fn drop(&mut self) {
        self.answered.close();
        // An answer that came just before means a thread in time; after this none can come.
        if !self.is_over && self.answered.try_recv().is_err() {
            self.given_up.store(true, Ordering::Relaxed);
            self.crew.replace();
        }
    }
}

/// What the threads share.
struct Crew {
    tasks: Mutex<mpsc::Receiver<Task>>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Threads at work that nobody waits for. A thread that comes back before its replacement is counted makes it
    /// negative for a moment.
    late: isize,
    /// Of these, those that were not replaced.
    missing: usize,
}

impl Crew {
    fn hire(self: &Arc<Self>) -> io::Result<()> {
        let crew = Arc::clone(self);
        std::thread::Builder::new().name("parse".to_owned()).spawn(move || crew.serve()).map(drop)
    }

    fn serve(&self) {
        loop {
            let task = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
            let Some(task) = task else { return };
            let was_in_time = task();
            if !was_in_time && !self.takes_back() {
                return;
            }
        }
    }

    /// Puts a thread in the place of one that is late, unless too many are.
    fn replace(self: &Arc<Self>) {
        let mut counts = self.counts();
        counts.late += 1;
        let late = counts.late;
        let hired = if late <= MOST_LATE { self.hire() } else { Err(io::Error::other("too many are late")) };
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

    /// Whether a thread that comes back late is still needed.
    fn takes_back(&self) -> bool {
        let mut counts = self.counts();
        counts.late -= 1;
        let is_needed = counts.missing > 0;
        counts.missing = counts.missing.saturating_sub(1);
        info!(late = counts.late, missing = counts.missing, "a late thread has come back");
        is_needed
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as blocking;

    use futures::future::join_all;

    use super::*;

    /// Work that ends when the sender is dropped, whatever its flag says.
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
        let panicked = threads.run(|_| -> u8 { panic!("at {}", 7) }).await;
        assert_eq!(panicked, Err(Lost::Panicked("at 7".to_owned())));
        assert_eq!(threads.run(|_| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn more_work_than_threads_waits_and_is_done() {
        let threads = Threads::start(2).unwrap();
        let answers = join_all((0..100).map(|number| threads.run(move |_| number))).await;
        assert!(answers.into_iter().eq((0..100).map(Ok)));
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_overruns_is_told_and_its_thread_replaced() {
        let threads = Threads::start(1).unwrap();
        let (tell, told) = oneshot::channel();
        let (free, held) = blocking::channel::<()>();
        let overrun = threads.run(move |given_up| {
            while !given_up.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let _ = tell.send(());
            let _ = held.recv();
        });
        assert_eq!(overrun.await, Err(Lost::Overdue));
        told.await.unwrap();
        // With the clock stopped, time would pass at once.
        tokio::time::resume();
        assert_eq!(threads.run(|_| 7).await, Ok(7));
        drop(free);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_nobody_waits_for_is_told() {
        let threads = Threads::start(1).unwrap();
        let (tell, told) = oneshot::channel();
        let mut run = Box::pin(threads.run(move |given_up| {
            while !given_up.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let _ = tell.send(());
        }));
        assert!(futures::poll!(&mut run).is_pending());
        drop(run);
        told.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_thread_work_waits_until_a_late_one_comes_back() {
        let threads = Threads::start(1).unwrap();
        let mut all = Vec::new();
        for _ in 0..=MOST_LATE {
            let (free, work) = stuck();
            all.push(free);
            assert_eq!(threads.run(work).await, Err(Lost::Overdue));
        }
        assert_eq!(threads.crew.counts().missing, 1);
        tokio::time::resume();
        let mut waiting = Box::pin(threads.run(|_| 7));
        assert!(futures::poll!(&mut waiting).is_pending());
        all.pop();
        assert_eq!(waiting.await, Ok(7));
        assert_eq!(threads.crew.counts().missing, 0);
    }
}
