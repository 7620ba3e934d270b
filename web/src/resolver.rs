//! The system's resolver, and whether it answers at all. A name that it cannot tell of because nobody answers it is not the name's fault.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use dns_lookup::{AddrInfoHints, LookupError, LookupErrorKind, SockType, getaddrinfo};
use futures::FutureExt;
use futures::future::BoxFuture;
use rustix::io::Errno;
use tokio::sync::{Mutex, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

/// A name that every resolver knows of, though it has no address: the root.
const ROOT: &str = ".";

/// A resolver that says nothing of the root for this long does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A lookup that has no thread after this time gets none.
const THREAD: Duration = Duration::from_secs(3);

/// How long it is remembered whether it answers.
const REMEMBERED: Duration = Duration::from_secs(2);

/// Whether the resolver answered of the root, and when it was asked last.
static ANSWERS: Mutex<Option<(Instant, bool)>> = Mutex::const_new(None);

/// No name can be looked up on this machine.
#[derive(Debug, thiserror::Error)]
#[error("the resolver of this machine gives no answer about any name: see /etc/resolv.conf, and the network")]
pub(super) struct NoResolver;

/// Finds out the addresses of a name. An error of a name that has none is of another kind than [`NoResolver`].
pub(super) fn lookup(name: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    async move {
        match look(name).await? {
            Err(error) if is_unanswered(&error) && !is_answering().await => Err(io::Error::other(NoResolver)),
            Err(error) => Err(error.into()),
            Ok(found) => Ok(found),
        }
    }
    .boxed()
}

/// Whether the resolver answers at all, as of now or lately.
pub(super) async fn is_answering() -> bool {
    let mut known = ANSWERS.lock().await;
    if let Some((when, is_answering)) = *known
        && when.elapsed() < REMEMBERED
    {
        return is_answering;
    }
    let root = timeout(PATIENCE, look(ROOT.to_owned())).await;
    let is_answering = matches!(&root, Ok(Ok(answer)) if !answer.as_ref().is_err_and(is_unanswered));
    *known = Some((Instant::now(), is_answering));
    is_answering
}

/// Asks the system on a thread for blocking work. The outer error is that there is none.
async fn look(name: String) -> io::Result<Result<Vec<SocketAddr>, LookupError>> {
    let (begins, begun) = oneshot::channel();
    let looking = spawn_blocking(move || {
        let _ = begins.send(());
        let hints = AddrInfoHints { socktype: SockType::Stream.into(), ..AddrInfoHints::default() };
        let found = getaddrinfo(Some(&name), None, Some(hints))?;
        Ok(found.flatten().map(|found| found.sockaddr).collect())
    });
    if timeout(THREAD, begun).await.is_err() {
        return Err(Errno::AGAIN.into());
    }
    looking.await.map_err(io::Error::other)
}

/// Whether the resolver got no answer about a name, from nobody or from those who know.
fn is_unanswered(error: &LookupError) -> bool {
    matches!(error.kind(), LookupErrorKind::Again | LookupErrorKind::Fail)
}
