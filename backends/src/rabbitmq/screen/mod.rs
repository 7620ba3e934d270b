//! Screening the broker's frames before the client library reads them.
//!
//! The library decodes nested headers by recursion, without a limit, on a thread whose stack holds some 900
//! levels, while a frame has room for 26,000; and it drops a connection for names that are not UTF-8, which any
//! publisher may choose. The broker keeps such a message, so one of them would stop each worker that it is
//! delivered to. Screening turns it into a readable message of the same length: no message can end a connection.

mod frame;
mod runtime;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::io::{AsyncRead, AsyncWrite};
use parking_lot::Mutex;

pub use self::frame::MAX_DEPTH;
pub(super) use self::frame::UNREADABLE;
pub(super) use self::runtime::Screening;

/// Number of bytes read at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Size of a frame's kind, channel and length, in bytes.
const HEAD_BYTES: usize = 7;

/// The transport of frames: TCP, or TLS over it.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// The broker's version, as it was given when a connection was last opened. The client library does not expose it.
#[derive(Clone, Default)]
pub(super) struct ServerVersion(Arc<Mutex<Option<String>>>);

impl ServerVersion {
    /// Returns the version; `None` before there is a connection.
    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn set(&self, version: String) {
        *self.0.lock() = Some(version);
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
    /// Screens a connection, and stores the broker's version in `version`.
    pub(super) fn new(stream: Box<dyn ByteStream>, version: ServerVersion) -> Self {
        Self { stream, chunk: vec![0; CHUNK_BYTES].into(), screen: Screen::default(), version }
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

/// A stream of frames: heads and methods are held until they are complete, bodies are passed on as they come.
#[derive(Debug, Default)]
pub struct Screen {
    bytes: Vec<u8>,
    /// Number of bytes that were taken.
    taken: usize,
    /// Number of bytes that may be taken.
    clean: usize,
    /// Number of the following bytes that belong to a frame that needs no screening.
    passing: usize,
    /// The broker's version, if it has just been read.
    version: Option<String>,
}

impl Screen {
    /// Adds received bytes.
    pub fn put(&mut self, arrived: &[u8]) {
        self.bytes.drain(..self.taken);
        self.clean -= self.taken;
        self.taken = 0;
        self.bytes.extend_from_slice(arrived);
        while self.advance() {}
    }

    /// Takes screened bytes, as many as fit, and returns their number.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.clean - self.taken);
        into[..count].copy_from_slice(&self.bytes[self.taken..self.taken + count]);
        self.taken += count;
        count
    }

    /// Screens the next step; returns whether there was one.
    fn advance(&mut self) -> bool {
        let held = &mut self.bytes[self.clean..];
        if self.passing > 0 {
            let passed = self.passing.min(held.len());
            self.clean += passed;
            self.passing -= passed;
            return passed > 0;
        }
        let Some((head, rest)) = held.split_at_mut_checked(HEAD_BYTES) else { return false };
        let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
        // Includes the byte that ends the frame.
        let whole = HEAD_BYTES + size + 1;
        match frame::Kind::from_byte(head[0]) {
            Some(kind) if rest.len() > size => {
                if let Some(version) = kind.screen(&mut rest[..size]) {
                    self.version = Some(version);
                }
                self.clean += whole;
                true
            }
            Some(_) => false,
            // A broker may answer with its protocol in place of frames, and then ends the connection.
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
