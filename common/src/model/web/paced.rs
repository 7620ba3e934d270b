//! A connection whose other side has to read at a minimum pace, for programs that serve callers.
//!
//! A limit on each wait alone is not enough: a caller that reads a little just before it ends keeps a connection,
//! and the resources behind it, for ever. So waits add up, and bytes that are read reduce the sum.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Minimum number of bytes read in a second while more wait to be read: less than the slowest networks give.
const MIN_BYTES_PER_SECOND: u32 = 4 * 1024;

/// The time that a caller has kept data waiting, less the time that the bytes they read make up for.
struct Debt {
    owed: Duration,
    most: Duration,
}

impl Debt {
    fn waited(&mut self, time: Duration) {
        self.owed += time;
    }

    fn took(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.owed = self.owed.saturating_sub(Duration::from_secs(1) * bytes / MIN_BYTES_PER_SECOND);
    }

    /// Returns how much longer the data may wait.
    fn left(&self) -> Duration {
        self.most.saturating_sub(self.owed)
    }
}

/// A connection that ends when its caller owes too much. Time counts only while data waits to be read.
pub struct Paced<S> {
    stream: S,
    debt: Debt,
    /// The time since when data waits.
    since: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
}

impl<S> Paced<S> {
    /// Creates a connection that ends when its caller has read nothing for `most`, or too little for longer.
    pub fn new(stream: S, most: Duration) -> Self {
        let debt = Debt { owed: Duration::ZERO, most };
        Self { stream, debt, since: None, alarm: Box::pin(sleep(most)) }
    }

    /// Accounts for the result of an attempt to send.
    fn sent(&mut self, cx: &mut Context<'_>, sent: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match sent {
            Poll::Ready(sent) => {
                if let Some(since) = self.since.take() {
                    self.debt.waited(since.elapsed());
                }
                self.debt.took(*sent.as_ref().unwrap_or(&0));
                Poll::Ready(sent)
            }
            Poll::Pending => {
                if self.since.is_none() {
                    let now = Instant::now();
                    self.since = Some(now);
                    self.alarm.as_mut().reset(now + self.debt.left());
                }
                ready!(self.alarm.as_mut().poll(cx));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the caller reads too slowly")))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.sent(cx, sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.sent(cx, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const STALL: Duration = Duration::from_secs(30);

    /// Sends without end what `caller` reads as it likes; says after how long that failed.
    async fn sending_to(caller: impl AsyncFnOnce(DuplexStream)) -> Option<Duration> {
        let (near, far) = duplex(MIN_BYTES_PER_SECOND as usize);
        let mut paced = Paced::new(near, STALL);
        let begun = Instant::now();
        let sending = async {
            while paced.write_all(&[0; 1024]).await.is_ok() {}
            begun.elapsed()
        };
        tokio::select! {
            failed = sending => Some(failed),
            () = caller(far) => None,
        }
    }

    /// Reads a number of bytes at an interval, for an hour.
    async fn reading(mut far: DuplexStream, bytes: usize, every: Duration) {
        let until = Instant::now() + Duration::from_secs(3600);
        while Instant::now() < until {
            tokio::time::sleep(every).await;
            if far.read_exact(&mut vec![0; bytes]).await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_a_few_bytes_before_each_wait_ends_is_cut_off_all_the_same() {
        let failed = sending_to(async |far| reading(far, 10, Duration::from_secs(29)).await).await.unwrap();
        assert!(failed < 2 * STALL, "{failed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_but_steadily_is_served_for_as_long_as_it_takes() {
        let failed = sending_to(async |far| reading(far, 4096, Duration::from_secs(1)).await).await;
        assert_eq!(failed, None);
        let failed = sending_to(async |far| reading(far, 2048, Duration::from_secs(1)).await).await;
        assert!(failed.is_some_and(|failed| failed > STALL), "{failed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_has_nothing_to_say_costs_its_caller_nothing() {
        let (near, mut far) = duplex(1024);
        let mut paced = Paced::new(near, STALL);
        for _ in 0..10 {
            paced.write_all(b"event").await.unwrap();
            far.read_exact(&mut [0; 5]).await.unwrap();
            tokio::time::sleep(4 * STALL).await;
        }
    }
}
