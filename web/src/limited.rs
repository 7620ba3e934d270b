//! Readers with a limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// More bytes than allowed.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("larger than allowed")]
pub(super) struct TooLarge;

/// A reader that fails once it has returned more than its limit. Unpacking may run for long without waiting, so each
/// call counts against the task's budget, and time limits hold.
pub(super) struct Limited<R> {
    inner: R,
    left: u64,
}

impl<R> Limited<R> {
    pub(super) fn new(inner: R, limit: u64) -> Self {
        Self { inner, left: limit }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Limited<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        budget.made_progress();
        let read = (buf.filled().len() - before) as u64;
        self.left = self.left.checked_sub(read).ok_or_else(|| io::Error::other(TooLarge))?;
        Poll::Ready(Ok(()))
    }
}

/// Whether an error comes from what a decoder reads, and not from the decoder.
pub(super) fn is_from_below(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<reqwest::Error>() || cause.is::<TooLarge>())
}
