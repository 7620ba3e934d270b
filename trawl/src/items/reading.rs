//! Reads the stream and writes lines, and keeps track of the position.

use std::io;
use std::ops::ControlFlow;

use futures::FutureExt;
use tracing::{debug, warn};
use trawl_backends::rabbitmq::{ItemStream, StreamEntry, StreamReader, StreamStart};
use trawl_cli::{Fail, Outcome, counted};
use trawl_common::backoff::Backoff;
use trawl_common::exit::Exit;
use trawl_common::health::Health;
use trawl_common::ports;
use trawl_common::spider::item::Item;

use super::args::{Args, Wanted};
use super::place::Bookmark;
use super::recent::Recent;
use super::rows::Rows;

/// Maximum number of messages after which lines are flushed and acknowledged; the prefetch is less than twice this
/// number.
const BATCH: usize = 64;

/// One run of the command.
pub(super) struct Reading<'a> {
    args: &'a Args,
    wanted: &'a Wanted,
    stream: &'a ItemStream,
    bookmark: Option<Bookmark>,
    rows: Box<dyn Rows>,
    health: Health,
    recent: Recent,
    /// The offset of the next message, if known.
    next: Option<u64>,
    /// The offset at which to end; `None` for no end, with `--follow`.
    end: Option<u64>,
    written: u64,
    /// The number of messages that are not items.
    strange: u64,
}

/// The reason why reading stops.
#[derive(Debug, thiserror::Error)]
enum Stop {
    /// All requested items were read.
    #[error("all items were read")]
    Done,
    /// The connection broke, or a server is unavailable: continue from `next`.
    #[error(transparent)]
    Lost(#[from] ports::Error),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

impl<'a> Reading<'a> {
    /// Creates a reading from the offset `place`, or else from the start in `args`.
    pub(super) fn new(
        args: &'a Args,
        wanted: &'a Wanted,
        stream: &'a ItemStream,
        place: Option<u64>,
        rows: Box<dyn Rows>,
    ) -> Self {
        Self {
            args,
            wanted,
            stream,
            next: place,
            bookmark: None,
            rows,
            health: Health::default(),
            recent: Recent::default(),
            end: None,
            written: 0,
            strange: 0,
        }
    }

    /// Stores its position in this bookmark.
    pub(super) fn with_bookmark(self, bookmark: Option<Bookmark>) -> Self {
        Self { bookmark, ..self }
    }

    /// Sets an offset at which to end, if not earlier.
    pub(super) fn until(self, end: Option<u64>) -> Self {
        Self { end, ..self }
    }

    /// Reads and writes until everything is done; continues after a broken connection.
    pub(super) async fn run(mut self) -> Outcome {
        if self.read_to_end().await?.is_break() {
            return Ok(Exit::Ok);
        }
        self.warn_of_losses();
        match &self.wanted.crawl {
            Some(id) if self.written == 0 && !self.wanted.is_known => {
                return Err(Fail::usage(format!(
                    "no crawl {id}: `trawl status` lists them. Nor is an item of it in the stream"
                )));
            }
            // A bookmark may be at the end already.
            Some(id) if self.written == 0 && self.bookmark.is_none() => anstream::eprintln!(
                "no item of crawl {id} is in the stream: `trawl spider check` shows to which sinks its spider's items go"
            ),
            _ => {}
        }
        self.rows.unknown().map_or(Ok(Exit::Ok), |message| Err(Fail::usage(message)))
    }

    /// Reads everything, and returns the end offset.
    pub(super) async fn read_all(mut self) -> Result<Option<u64>, Fail> {
        // No output is written.
        let _ = self.read_to_end().await?;
        Ok(self.end)
    }

    /// Reads to the end. Breaks if the output's reader is gone.
    async fn read_to_end(&mut self) -> Result<ControlFlow<()>, Fail> {
        let mut reader = self.open().await?;
        loop {
            match self.read(&mut reader).await {
                Stop::Done => {
                    self.keep_place().await?;
                    return Ok(ControlFlow::Continue(()));
                }
                // The reader of the pipe is gone, which is not a failure.
                Stop::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(ControlFlow::Break(()));
                }
                Stop::Output(error) => return Err(Fail::run(format!("cannot write: {error}"))),
                Stop::Lost(error) if error.is_temporary() => {
                    warn!(%error, "the stream broke off; going on from there");
                    reader = self.reopen().await?;
                }
                Stop::Lost(error) => return Err(error.into()),
            }
        }
    }

    /// Retries until the stream can be read.
    async fn reopen(&mut self) -> Result<StreamReader, ports::Error> {
        let mut backoff = Backoff::default();
        loop {
            backoff.pause().await;
            match self.open().await {
                Err(error) if error.is_temporary() => debug!(%error, "not yet"),
                result => return result,
            }
        }
    }

    /// Opens the stream; starts with the first message if it is not the stream that was read before.
    async fn open(&mut self) -> Result<StreamReader, ports::Error> {
        let reader = self.stream.read(self.from()).await?;
        let end = reader.end();
        if !self.args.follow {
            self.end = Some(self.end.map_or(end, |before| before.min(end)));
        }
        if self.next.is_some_and(|next| next > end) {
            warn!("the stream was begun anew; reading it from its first item");
            let reader = self.stream.read(StreamStart::First).await?;
            self.next = Some(0);
            return Ok(reader);
        }
        match self.from() {
            StreamStart::Next => self.next = Some(end),
            // Beyond the end there is nothing; only `--follow` waits for it.
            StreamStart::Offset(offset) if !self.args.follow => self.next = Some(offset),
            _ => {}
        }
        Ok(reader)
    }

    fn from(&self) -> StreamStart {
        self.next.map_or(self.args.from.0, StreamStart::Offset)
    }

    async fn read(&mut self, reader: &mut StreamReader) -> Stop {
        loop {
            if let Err(stop) = self.batch(reader).await {
                return stop;
            }
        }
    }

    /// Reads the available messages, at least one, and flushes the output.
    async fn batch(&mut self, reader: &mut StreamReader) -> Result<(), Stop> {
        if self.is_done() {
            return Err(Stop::Done);
        }
        let mut last = reader.next().await?;
        self.take(&last)?;
        for _ in 1..BATCH {
            if self.is_done() {
                break;
            }
            let Some(entry) = reader.next().now_or_never() else { break };
            last = entry?;
            self.take(&last)?;
        }
        self.rows.flush()?;
        self.keep_place().await?;
        Ok(reader.done(&last).await?)
    }

    async fn keep_place(&self) -> ports::Result<()> {
        match (&self.bookmark, self.next) {
            (Some(bookmark), Some(next)) => {
                self.health.retry("keeping the place", || bookmark.put(next)).await
            }
            _ => Ok(()),
        }
    }

    fn is_done(&self) -> bool {
        let has_all = self.end.is_some_and(|end| self.next.is_some_and(|next| next >= end));
        has_all || self.args.limit.is_some_and(|limit| self.written >= limit)
    }

    /// Writes one message, if it is a requested item.
    fn take(&mut self, entry: &StreamEntry) -> io::Result<()> {
        let is_past = self.end.is_some_and(|end| entry.offset >= end);
        self.next = Some(if is_past { self.end.unwrap_or_default() } else { entry.offset + 1 });
        let Some(body) = entry.body.as_deref().filter(|_| !is_past) else { return Ok(()) };
        // Anyone may publish, and a message with line feeds between its parts is not from a worker.
        let item = serde_json::from_slice::<Item>(body).ok().filter(|_| !body.contains(&b'\n'));
        let Some(item) = item else {
            self.strange += 1;
            return Ok(());
        };
        if self.wanted.takes(&item) && self.recent.is_new(&format!("{} {}", item.crawl, item.id)) {
            self.rows.write(&item, body)?;
            self.written += 1;
        }
        Ok(())
    }

    fn warn_of_losses(&self) {
        if self.strange > 0 {
            anstream::eprintln!(
                "warning: left out of the stream: {} that are no items",
                counted(self.strange, "message")
            );
        }
        if let Some(message) = self.rows.left_out() {
            anstream::eprintln!("warning: {message}");
        }
    }
}
