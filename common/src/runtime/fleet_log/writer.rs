//! Writing to the log in the background: no page waits for an entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::backoff::Backoff;
use crate::logs::{LogEntry, LogLevel, LogMessage};
use crate::names::WorkerId;
use crate::ports::{Error, ErrorKind, History, Logs, Result};

/// Maximum number of entries that wait to be written.
const MAX_WAITING: usize = 4_096;

/// Maximum number of entries written in one call.
const MAX_BATCH: usize = 512;

/// The wait for more entries after the first of a batch. With [`MAX_BATCH`], it bounds what one process writes in a
/// second.
const LINGER: Duration = Duration::from_millis(500);

/// Time limit for one call.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Minimum time between two reports, in a process's own log, that the log cannot be written.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Writes entries to the log, each to all of its targets.
///
/// [`LogWriter::write`] returns at once. Entries that come faster than they can be written, or while the log is
/// unavailable for long, are dropped, and an entry reports their number.
#[derive(Clone, Debug)]
pub struct LogWriter {
    worker: WorkerId,
    targets: Arc<[Queue]>,
}

/// The entries that wait for one target.
#[derive(Debug)]
struct Queue {
    sender: mpsc::Sender<LogEntry>,
    left_out: Arc<AtomicU64>,
}

/// The targets of a writer's entries. They have to be [run](LogTargets::run) in the background.
pub struct LogTargets(Vec<Target>);

struct Target {
    place: Place,
    entries: mpsc::Receiver<LogEntry>,
    left_out: Arc<AtomicU64>,
    worker: WorkerId,
    /// When it was last reported that it cannot be written.
    complained: Option<Instant>,
}

enum Place {
    Log(Arc<dyn Logs>),
    History(Arc<dyn History>),
}

impl LogWriter {
    /// Creates a writer of this process to the log, and to the history if one keeps the log.
    pub fn new(
        worker: &WorkerId,
        log: Option<Arc<dyn Logs>>,
        history: Option<Arc<dyn History>>,
    ) -> (Self, LogTargets) {
        let places = log.map(Place::Log).into_iter().chain(history.map(Place::History));
        let (queues, targets): (Vec<_>, Vec<_>) = places.map(|place| queue(place, worker)).unzip();
        (Self { worker: worker.clone(), targets: queues.into() }, LogTargets(targets))
    }

    /// Returns whether there are any targets.
    pub fn is_on(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Returns the process.
    pub fn worker(&self) -> &WorkerId {
        &self.worker
    }

    /// Returns an entry of this process with the current time.
    pub fn entry(&self, level: LogLevel, message: impl Into<LogMessage>) -> LogEntry {
        LogEntry::new(&self.worker, level, message)
    }

    /// Returns a function that writes entries of this process.
    pub fn reporter(&self) -> impl Fn(LogLevel, String) + Send + Sync + 'static {
        let writer = self.clone();
        move |level, message| writer.write(writer.entry(level, message))
    }

    /// Queues an entry for writing.
    pub fn write(&self, entry: LogEntry) {
        let Some((last, others)) = self.targets.split_last() else { return };
        others.iter().for_each(|target| target.push(entry.clone()));
        last.push(entry);
    }

    /// Queues an entry, and waits for free space in the queue if necessary: for the last entry of a process.
    pub async fn write_or_wait(&self, entry: LogEntry) {
        for target in &*self.targets {
            // Closed only when the target is gone.
            let _ = target.sender.send(entry.clone()).await;
        }
    }
}

fn queue(place: Place, worker: &WorkerId) -> (Queue, Target) {
    let (sender, entries) = mpsc::channel(MAX_WAITING);
    let left_out = Arc::<AtomicU64>::default();
    let queue = Queue { sender, left_out: Arc::clone(&left_out) };
    (queue, Target { place, entries, left_out, worker: worker.clone(), complained: None })
}

impl Queue {
    fn push(&self, entry: LogEntry) {
        if self.sender.try_send(entry).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl LogTargets {
    /// Writes entries as they come until `stop`, and then the remaining ones, if that is possible at once.
    pub async fn run(self, stop: CancellationToken) {
        let targets = self.0.into_iter().map(|target| target.run(stop.clone()));
        let mut running: JoinSet<()> = targets.collect();
        // A panic of one target was reported where it happened, and affects only the log.
        while running.join_next().await.is_some() {}
    }
}

impl Target {
    async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while stop.run_until_cancelled(self.gather(&mut batch)).await == Some(true) {
            self.write(&mut batch, &stop).await;
        }
        loop {
            while batch.len() < MAX_BATCH
                && let Ok(entry) = self.entries.try_recv()
            {
                batch.push(entry);
            }
            let is_last = batch.len() < MAX_BATCH;
            self.write(&mut batch, &stop).await;
            if is_last {
                break;
            }
        }
    }

    /// Waits for entries, and a moment longer for more. Returns whether any came. If the call is cancelled, the
    /// entries in the batch stay there.
    async fn gather(&mut self, batch: &mut Vec<LogEntry>) -> bool {
        if self.entries.recv_many(batch, MAX_BATCH).await == 0 {
            return false;
        }
        sleep(LINGER).await;
        while batch.len() < MAX_BATCH
            && let Ok(entry) = self.entries.try_recv()
        {
            batch.push(entry);
        }
        true
    }

    /// Writes a batch, trying again while the log is unavailable. Once the process is to stop, or if no other try
    /// would help, the batch is dropped after the first try.
    async fn write(&mut self, batch: &mut Vec<LogEntry>, stop: &CancellationToken) {
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        let entries = batch.len() as u64;
        if left_out > 0 {
            let what = format!("entries left out of this log, as it could not keep up: {left_out}");
            batch.push(LogEntry::new(&self.worker, LogLevel::Warn, what));
        }
        let mut backoff = Backoff::default();
        while !batch.is_empty() {
            let error = match timeout(WRITE_TIMEOUT, self.place.append(batch)).await {
                Ok(Ok(())) => break,
                Ok(Err(error)) => error,
                Err(_) => {
                    Error::new(ErrorKind::Unavailable, format_args!("no answer within {WRITE_TIMEOUT:?}"))
                }
            };
            self.complain(&error);
            let may_mend = error.is_temporary() && !stop.is_cancelled();
            if !may_mend || stop.run_until_cancelled(backoff.pause()).await.is_none() {
                self.left_out.fetch_add(entries + left_out, Ordering::Relaxed);
                break;
            }
        }
        batch.clear();
    }

    fn complain(&mut self, error: &Error) {
        if self.complained.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
            self.complained = Some(Instant::now());
            warn!(%error, "cannot write the fleet's log: entries may be left out of it");
        }
    }
}

impl Place {
    async fn append(&self, entries: &[LogEntry]) -> Result<()> {
        match self {
            Self::Log(log) => log.append(entries).await,
            Self::History(history) => history.keep_logs(entries).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use tokio::task::JoinHandle;

    use super::*;
    use crate::ports::{LogPart, LogPlace};

    /// A log in memory with answers that the test sets.
    #[derive(Default)]
    struct Memory {
        written: Mutex<Vec<String>>,
        calls: AtomicU64,
        fails: Mutex<Option<ErrorKind>>,
    }

    #[async_trait]
    impl Logs for Memory {
        async fn append(&self, entries: &[LogEntry]) -> Result<()> {
            self.calls.fetch_add(1, Ordering::Relaxed);
            if let Some(kind) = *self.fails.lock().unwrap() {
                return Err(Error::new(kind, "not now"));
            }
            let texts = entries.iter().map(|entry| entry.message.to_string());
            self.written.lock().unwrap().extend(texts);
            Ok(())
        }

        async fn before(&self, _: LogPlace, _: usize) -> Result<LogPart> {
            unreachable!("it is written alone")
        }

        async fn after(&self, _: LogPlace, _: usize) -> Result<LogPart> {
            unreachable!("it is written alone")
        }
    }

    struct Fixture {
        log: Arc<Memory>,
        writer: LogWriter,
        stop: CancellationToken,
        running: JoinHandle<()>,
    }

    impl Fixture {
        fn new(fails: Option<ErrorKind>) -> Self {
            let log = Arc::new(Memory::default());
            *log.fails.lock().unwrap() = fails;
            let (writer, targets) = LogWriter::new(&"w".parse().unwrap(), Some(log.clone()), None);
            let stop = CancellationToken::new();
            let running = tokio::spawn(targets.run(stop.clone()));
            Self { log, writer, stop, running }
        }

        fn write(&self, numbers: std::ops::Range<usize>) {
            for number in numbers {
                self.writer.write(self.writer.entry(LogLevel::Info, number.to_string()));
            }
        }

        /// Returns the written entries, once the writer has stopped.
        async fn stopped(self) -> Vec<String> {
            self.stop.cancel();
            self.running.await.unwrap();
            self.log.written.lock().unwrap().clone()
        }
    }

    fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|number| number.to_string()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn entries_are_written_together_and_in_their_order() {
        let fixture = Fixture::new(None);
        fixture.write(0..3);
        sleep(LINGER / 2).await;
        fixture.write(3..6);
        sleep(LINGER).await;
        assert_eq!(*fixture.log.written.lock().unwrap(), numbers(0..6));
        assert_eq!(fixture.log.calls.load(Ordering::Relaxed), 1);
        assert!(fixture.stopped().await.len() == 6);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_logged_before_the_end_is_written() {
        let fixture = Fixture::new(None);
        fixture.write(0..MAX_BATCH * 2 + 1);
        assert_eq!(fixture.stopped().await, numbers(0..MAX_BATCH * 2 + 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_is_away_is_waited_for_and_what_there_is_no_place_for_is_counted() {
        let fixture = Fixture::new(Some(ErrorKind::Unavailable));
        fixture.write(0..1);
        sleep(LINGER * 2).await;
        let begun = Instant::now();
        fixture.write(1..MAX_WAITING + 6);
        assert_eq!(begun.elapsed(), Duration::ZERO, "nobody waits");
        *fixture.log.fails.lock().unwrap() = None;
        sleep(Duration::from_secs(60)).await;
        let mut written = fixture.stopped().await;
        let index = written.iter().position(|text| text.ends_with("could not keep up: 5")).unwrap();
        written.remove(index);
        assert_eq!(written, numbers(0..MAX_WAITING + 1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_no_waiting_mends_costs_entries_and_what_comes_then_is_written() {
        let fixture = Fixture::new(Some(ErrorKind::Corrupt));
        fixture.write(0..3);
        sleep(LINGER * 2).await;
        assert_eq!(fixture.log.calls.load(Ordering::Relaxed), 1);
        *fixture.log.fails.lock().unwrap() = None;
        fixture.write(3..4);
        let written = fixture.stopped().await;
        assert_eq!((&*written[0], written[1].ends_with(": 3")), ("3", true), "{written:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_waits_for_no_log_that_is_away() {
        let fixture = Fixture::new(Some(ErrorKind::Unavailable));
        fixture.write(0..MAX_BATCH * 3);
        sleep(LINGER * 2).await;
        let begun = Instant::now();
        assert!(fixture.stopped().await.is_empty());
        assert!(begun.elapsed() < Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_entry_is_written_however_many_wait() {
        let fixture = Fixture::new(None);
        fixture.write(0..MAX_WAITING * 2);
        fixture.writer.write_or_wait(fixture.writer.entry(LogLevel::Info, "ended")).await;
        let written = fixture.stopped().await;
        assert!(written.contains(&"ended".to_owned()) && written.len() > MAX_WAITING, "{}", written.len());
    }
}
