//! One thread owns the state; all other threads send it commands.

pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod file_lock;
pub(crate) mod resuming;
pub(crate) mod schema;
pub(crate) mod transactional_map;

use std::iter;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, Transaction};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};
use tracing::debug;
use trawl_common::frontier::lane::Lane;
use trawl_common::ports::{Error, ErrorKind, Result};

use crate::embedded::admission::leases::Leases;
use crate::embedded::claim::dispatch::Dispatch;
use crate::embedded::crawls::quality::Watched;
use crate::embedded::records::holdings::{self, Holdings};
use crate::embedded::seen::Seen;
use crate::embedded::store::schema::State;

/// Maximum number of commands that share a transaction.
const MAX_GROUP: usize = 64;

/// State of the writer beyond the file. A new process starts without it.
#[derive(Default)]
pub(crate) struct Memory {
    /// Recently seen URLs.
    pub(crate) seen: Seen,
    /// The holders of records.
    pub(crate) holdings: Holdings,
    /// The discovery leases.
    pub(crate) leases: Leases,
    /// The positions from which to look for records that nobody holds.
    pub(crate) dispatch: Dispatch,
    /// The crawls that are judged while they run.
    pub(crate) watched: Watched,
}

impl Memory {
    /// Releases a record from its holder: any worker may have it next.
    pub(crate) fn let_go(&mut self, id: i64, lane: Lane) {
        self.holdings.let_go(id);
        self.dispatch.offer(id, lane);
    }

    /// Forgets a deleted record, which frees its holder's capacity.
    pub(crate) fn forget(&mut self, id: i64) {
        self.holdings.forget(id);
        self.dispatch.stir();
    }

    /// Forgets what is known of a crawl that is over.
    pub(crate) fn forget_crawl(&mut self, db: &Connection, crawl: i64) -> error::Result<()> {
        self.watched.forget(crawl);
        self.seen.forget(db, crawl)
    }

    fn savepoint(&self) -> Savepoint {
        Savepoint { holdings: self.holdings.savepoint(), leases: self.leases.savepoint() }
    }

    /// Brings the memory in line with a file whose changes since `savepoint` were undone: state that only the memory
    /// has is restored, and state of the file is read again.
    fn roll_back_to(&mut self, savepoint: Savepoint) {
        self.holdings.roll_back_to(savepoint.holdings);
        self.leases.roll_back_to(savepoint.leases);
        self.seen = Seen::default();
        self.dispatch.walk_again();
    }

    /// Makes all changes final, like those of the file.
    fn commit(&mut self) {
        self.holdings.commit();
        self.leases.commit();
    }
}

/// A point to which the memory can be rolled back.
#[derive(Clone, Copy)]
struct Savepoint {
    holdings: holdings::Savepoint,
    leases: transactional_map::Savepoint,
}

/// A message to the writer.
enum Command {
    /// Part of a transaction, answered when the transaction has succeeded or failed.
    Work(Work),
    /// A change to the memory alone, between two transactions.
    Note(Box<dyn FnOnce(&mut Memory) + Send>),
    /// The last command: all resources are released when this is dropped.
    Close(oneshot::Sender<()>),
}

type Work = Box<dyn FnOnce(&mut Transaction<'_>, &mut Memory) -> Answer + Send>;
type Answer = Box<dyn FnOnce(Result<()>)>;

/// The state, behind the one thread that reads and writes it.
///
/// The thread takes a command together with all others that are waiting by then, runs them in one transaction, commits,
/// and only then answers: under load many callers share the cost of a commit.
pub(crate) struct Store {
    commands: Option<mpsc::Sender<Command>>,
    writer: Option<JoinHandle<()>>,
    stirred: Arc<Notify>,
}

impl Store {
    /// Starts the writer on an open state file.
    pub(crate) fn start(state: State) -> Result<Self> {
        let (commands, waiting) = mpsc::channel();
        let stirred = Arc::new(Notify::new());
        let notify = stirred.clone();
        let writer = thread::Builder::new()
            .name("state".into())
            .spawn(move || write(state, Memory::default(), &waiting, &notify))
            .map_err(|error| Error::new(ErrorKind::Unavailable, format_args!("no thread: {error}")))?;
        Ok(Self { commands: Some(commands), writer: Some(writer), stirred })
    }

    /// Runs `work` on the state, all of it or nothing, and returns once its effect is committed.
    /// Cancelling the call does not stop the work.
    pub(crate) async fn call<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection, &mut Memory) -> error::Result<T> + Send + 'static,
    {
        answered(self.submit(work).await)
    }

    /// Like [`Store::call`], but returns at once; the result may be awaited later, or never.
    pub(crate) fn submit<T, W>(&self, work: W) -> oneshot::Receiver<Result<T>>
    where
        T: Send + 'static,
        W: FnOnce(&Connection, &mut Memory) -> error::Result<T> + Send + 'static,
    {
        let (answer, receiver) = oneshot::channel();
        let work: Work = Box::new(move |tx, memory| {
            let result = run(tx, memory, work);
            Box::new(move |committed: Result<()>| {
                // An error here means that the caller has gone.
                let _ = answer.send(result.and_then(|value| committed.map(|()| value)));
            })
        });
        self.send(Command::Work(work));
        receiver
    }

    /// Changes the memory alone. A failing transaction does not undo it.
    pub(crate) fn note<N: FnOnce(&mut Memory) + Send + 'static>(&self, note: N) {
        self.send(Command::Note(Box::new(note)));
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // An error here drops the command and its answer with it, which the receiver reports.
            let _ = commands.send(command);
        }
    }

    /// Runs all commands that were sent so far, and closes the file.
    pub(crate) async fn close(&self) {
        let (closed, when_closed) = oneshot::channel();
        self.send(Command::Close(closed));
        // It is never sent, only dropped.
        let _ = when_closed.await;
    }

    /// Completes when records may have become available after this call.
    pub(crate) fn stirred(&self) -> Notified<'_> {
        self.stirred.notified()
    }
}

impl Drop for Store {
    /// Ends the writer, which closes the file: SQLite then moves the log into it and deletes the log.
    fn drop(&mut self) {
        self.commands = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Returns the result of a submitted command. A missing answer means that the writer is gone.
pub(crate) fn answered<T>(answer: std::result::Result<Result<T>, oneshot::error::RecvError>) -> Result<T> {
    answer.unwrap_or_else(|_| Err(Error::new(ErrorKind::Unavailable, "the state file's writer has stopped")))
}

fn write(mut state: State, mut memory: Memory, commands: &mpsc::Receiver<Command>, stirred: &Notify) {
    let mut next = None;
    let mut closing = None;
    while let Some(command) = next.take().or_else(|| commands.recv().ok()) {
        match command {
            Command::Work(first) => {
                let rest = iter::from_fn(|| match commands.try_recv().ok()? {
                    Command::Work(work) => Some(work),
                    other @ (Command::Note(_) | Command::Close(_)) => {
                        next = Some(other);
                        None
                    }
                });
                transact(&mut state.db, &mut memory, iter::once(first).chain(rest).take(MAX_GROUP));
            }
            Command::Note(note) => {
                note(&mut memory);
                memory.commit();
            }
            Command::Close(closed) => {
                closing = Some(closed);
                break;
            }
        }
        if memory.dispatch.take_stirred() {
            stirred.notify_waiters();
        }
    }
    // A process that only reads keeps the log from being deleted, but not from being emptied.
    if let Err(error) = state.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        debug!(%error, "the log of the state file stays beside it");
    }
    drop(state);
    drop(closing);
}

/// Runs a group of commands in one transaction, and answers them.
fn transact(db: &mut Connection, memory: &mut Memory, group: impl Iterator<Item = Work>) {
    let (before, mut answers) = (memory.savepoint(), Vec::new());
    let committed = commit(db, memory, group, &mut answers).map_err(Error::from);
    match committed {
        Ok(()) => memory.commit(),
        Err(_) => memory.roll_back_to(before),
    }
    for answer in answers {
        answer(committed.clone());
    }
}

fn commit(
    db: &mut Connection,
    memory: &mut Memory,
    group: impl Iterator<Item = Work>,
    answers: &mut Vec<Answer>,
) -> error::Result<()> {
    let mut tx = db.transaction()?;
    for work in group {
        answers.push(work(&mut tx, memory));
        // Where SQLite cannot undo a single statement, as when the disk is full, it ends the whole transaction. Later
        // statements would be in no transaction.
        if tx.is_autocommit() {
            let message =
                "the state file: a change beside this one could not be written, and all were undone";
            return Err(Error::new(ErrorKind::Unavailable, message).into());
        }
    }
    Ok(tx.commit()?)
}

/// Runs one command in a savepoint of its own, so that it fails alone.
fn run<T>(
    tx: &mut Transaction<'_>,
    memory: &mut Memory,
    work: impl FnOnce(&Connection, &mut Memory) -> error::Result<T>,
) -> Result<T> {
    let before = memory.savepoint();
    let result = in_savepoint(tx, memory, work);
    if result.is_err() {
        memory.roll_back_to(before);
    }
    Ok(result?)
}

fn in_savepoint<T>(
    tx: &mut Transaction<'_>,
    memory: &mut Memory,
    work: impl FnOnce(&Connection, &mut Memory) -> error::Result<T>,
) -> error::Result<T> {
    let savepoint = tx.savepoint()?;
    let value = work(&savepoint, memory)?;
    savepoint.commit()?;
    Ok(value)
}
