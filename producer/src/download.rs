//! A source on the web as bytes, with a limit on the time that its server takes for all of it.

use std::io::{self, Read};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::io::{StreamReader, SyncIoBridge};
use trawl_common::outcome::{Class, Failure};
use trawl_common::url::CanonicalUrl;
use trawl_web::Fetcher;

/// Asks for `url`, and returns its body to be read on a thread for blocking work. It fails once the server has taken
/// `limit`, or once the receiver of `wanted` is gone.
pub(crate) async fn open<T: Send + 'static>(
    url: &CanonicalUrl,
    fetcher: &Fetcher,
    limit: Duration,
    wanted: mpsc::Sender<T>,
) -> Result<impl Read + Send + use<T>, Failure> {
    let mut patience = Patience { limit, left: limit };
    let parts = patience.wait(fetcher.open(url)).await?;
    let parts = within(Box::pin(parts), patience, wanted);
    Ok(SyncIoBridge::new(StreamReader::new(Box::pin(parts.map_err(io::Error::other)))))
}

/// How long may still be waited. Only waiting counts: when it is the reader who is slow, the server is not to blame.
struct Patience {
    limit: Duration,
    left: Duration,
}

impl Patience {
    async fn wait<T>(&mut self, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
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

/// `parts` as long as there is patience, and somebody wants them.
fn within<T: Send + 'static>(
    parts: impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin,
    patience: Patience,
    wanted: mpsc::Sender<T>,
) -> impl Stream<Item = Result<Bytes, Failure>> + Send {
    stream::try_unfold((parts, patience, wanted), |(mut parts, mut patience, wanted)| async {
        let part = tokio::select! {
            part = patience.wait(parts.try_next()) => part?,
            () = wanted.closed() => None,
        };
        Ok(part.map(|part| (part, (parts, patience, wanted))))
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const LIMIT: Duration = Duration::from_secs(10);

    /// Parts that come one a second, without end.
    fn drip() -> impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin {
        Box::pin(stream::repeat(()).then(|()| async {
            tokio::time::sleep(SECOND).await;
            Ok(Bytes::from_static(b"x"))
        }))
    }

    fn dripping(wanted: mpsc::Sender<()>) -> impl Stream<Item = Result<Bytes, Failure>> + Send + Unpin {
        Box::pin(within(drip(), Patience { limit: LIMIT, left: LIMIT }, wanted))
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
