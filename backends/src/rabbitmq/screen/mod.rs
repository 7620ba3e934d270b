//! What the broker sends, before the client library reads it.
//!
//! The library decodes nested headers by recursion, without a limit, on a thread whose stack holds some 900 levels, and a
//! frame has room for 26,000; and it gives up a connection for names that are not UTF-8, which any publisher may choose. The
//! broker keeps such a message, so one of them would stop each worker that it is delivered to. Here it becomes one that can be
//! read, of the same length: nothing that a message holds ends a connection.

mod frame;
mod runtime;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures::io::{AsyncRead, AsyncWrite};

pub use self::frame::{DEEPEST, UNREADABLE};
pub(super) use self::runtime::Screening;

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// Kind, channel and length of a frame.
const HEAD: usize = 7;

/// What frames travel over: TCP, or TLS over it.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// The broker's version, as it said when a connection was opened last. The client library keeps that to itself.
#[derive(Clone, Default)]
pub(super) struct ServerVersion(Arc<Mutex<Option<String>>>);

impl ServerVersion {
    /// The version; `None` before there is a connection.
    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, version: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
    }
}

/// A connection whose frames are screened.
pub(super) struct Screened {
    stream: Box<dyn ByteStream>,
    chunk: Box<[u8]>,
    screen: Screen,
    version: ServerVersion,
}

impl Screened {
    /// Notes the broker's version in `version`.
    pub(super) fn new(stream: Box<dyn ByteStream>, version: ServerVersion) -> Self {
        Self { stream, chunk: vec![0; CHUNK].into(), screen: Screen::default(), version }
    }
}

impl AsyncRead for Screened {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, chunk, screen, version } = self.get_mut();
        loop {
            let taken = screen.take(into);
            if taken > 0 || into.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            match ready!(Pin::new(&mut *stream).poll_read(context, chunk))? {
                0 => return Poll::Ready(Ok(0)),
                read => screen.put(&chunk[..read]),
            }
            if let Some(said) = screen.version.take() {
                version.set(said);
            }
        }
    }
}

impl AsyncWrite for Screened {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, from)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, from)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_close(context)
    }
}

/// A stream of frames on their way: heads and methods are held until they are whole, bodies are passed on as they come.
#[derive(Debug, Default)]
pub struct Screen {
    bytes: Vec<u8>,
    /// Up to here they were taken.
    taken: usize,
    /// Up to here they may be.
    clean: usize,
    /// So many of those that follow belong to a frame that needs no screening.
    passing: usize,
    /// The broker's version, when it has just been read.
    version: Option<String>,
}

impl Screen {
    /// Adds what has arrived.
    pub fn put(&mut self, arrived: &[u8]) {
        self.bytes.drain(..self.taken);
        self.clean -= self.taken;
        self.taken = 0;
        self.bytes.extend_from_slice(arrived);
        while self.advance() {}
    }

    /// Takes what is screened, as much as fits, and returns how much that is.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.clean - self.taken);
        into[..count].copy_from_slice(&self.bytes[self.taken..self.taken + count]);
        self.taken += count;
        count
    }

    /// Whether it came a step further.
    fn advance(&mut self) -> bool {
        let held = &mut self.bytes[self.clean..];
        if self.passing > 0 {
            let passed = self.passing.min(held.len());
            self.clean += passed;
            self.passing -= passed;
            return passed > 0;
        }
        let Some((head, rest)) = held.split_at_mut_checked(HEAD) else { return false };
        let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
        // With the byte that ends it.
        let whole = HEAD + size + 1;
        match frame::Kind::of(head[0]) {
            Some(kind) if rest.len() > size => {
                if let Some(version) = kind.screen(&mut rest[..size]) {
                    self.version = Some(version);
                }
                self.clean += whole;
                true
            }
            Some(_) => false,
            // Instead of frames the broker answers with its protocol, and then ends the connection.
            None if head[0] == b'A' => {
                self.passing = usize::MAX;
                true
            }
            None => {
                self.passing = whole;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests;
