//! A source on the web as bytes, with a limit on its server's total time.

use std::io::{self, Read};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::io::{StreamReader, SyncIoBridge};
use trawl_common::frontier::outcome::{Class, Failure};

/// A body as it arrives.
pub(crate) type Parts = BoxStream<'static, Result<Bytes, Failure>>;

/// Reads at least the first `most` bytes of a body, or all of a shorter one. Returns these bytes, and the
/// body that still includes them.
pub(crate) async fn peek(mut parts: Parts, most: usize) -> (Bytes, Parts) {
    let (mut start, mut failure) = (BytesMut::new(), None);
    while start.len() < most && failure.is_none() {
        match parts.next().await {
            Some(Ok(part)) => start.extend_from_slice(&part),
            Some(Err(met)) => failure = Some(Err(met)),
            None => break,
        }
    }
    let start = start.freeze();
    let read = stream::iter([Ok(start.clone())].into_iter().chain(failure));
    (start, read.chain(parts).boxed())
}

/// Returns a reader of the body for a thread for blocking work.
pub(crate) fn reader(parts: Parts) -> impl Read + Send {
    SyncIoBridge::new(StreamReader::new(parts.map_err(io::Error::other)))
}

/// The time that may still be spent waiting. Only waiting counts: the server is not to blame for a slow
/// reader.
pub(crate) struct TimeLeft {
    limit: Duration,
    left: Duration,
}

impl TimeLeft {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, left: limit }
    }

    /// Whether none is left.
    pub(crate) fn is_over(&self) -> bool {
        self.left.is_zero()
    }

    pub(crate) async fn wait<T>(
        &mut self,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        let limit = self.limit;
        let result = timeout(self.left, call).await.unwrap_or_else(|_| {
            let detail = format_args!("not at its end within {limit:?} (`producer.timeout`)").to_string();
            Err(Failure::new(Class::Timeout, detail))
        });
        self.left = self.left.saturating_sub(start.elapsed());
        result
    }
}

/// Returns `parts`, ending with an error once no time is left or the receiver of `wanted` is gone.
pub(crate) fn within<T: Send + 'static>(
    parts: impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin,
    time_left: TimeLeft,
    wanted: mpsc::Sender<T>,
) -> impl Stream<Item = Result<Bytes, Failure>> + Send {
    stream::try_unfold((parts, time_left, wanted), |(mut parts, mut time_left, wanted)| async {
        let part = tokio::select! {
            part = time_left.wait(parts.try_next()) => part?,
            () = wanted.closed() => None,
        };
        Ok(part.map(|part| (part, (parts, time_left, wanted))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const LIMIT: Duration = Duration::from_secs(10);

    /// Returns an endless stream of one part per second.
    fn drip() -> impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin {
        Box::pin(stream::repeat(()).then(|()| async {
            tokio::time::sleep(SECOND).await;
            Ok(Bytes::from_static(b"x"))
        }))
    }

    fn dripping(wanted: mpsc::Sender<()>) -> impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin {
        Box::pin(within(drip(), TimeLeft::new(LIMIT), wanted))
    }

    #[tokio::test(start_paused = true)]
    async fn what_drips_ends_when_its_time_is_up() {
        let (wanted, _keep) = mpsc::channel(1);
        let parts: Vec<_> = dripping(wanted).collect().await;
        let error = parts.last().unwrap().as_ref().unwrap_err();
        assert_eq!(error.to_string(), "timeout: not at its end within 10s (`producer.timeout`)");
        assert!((9..=11).contains(&parts.len()), "{}", parts.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_may_take_its_time() {
        let (wanted, _keep) = mpsc::channel(1);
        let mut parts = dripping(wanted);
        for _ in 0..5 {
            assert!(parts.next().await.unwrap().is_ok());
            tokio::time::sleep(10 * LIMIT).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_wants_any_more_ends_at_once() {
        let (wanted, unwanted) = mpsc::channel(1);
        let mut parts = dripping(wanted);
        assert!(parts.next().await.is_some());
        drop(unwanted);
        assert!(parts.next().await.is_none());
    }
}
