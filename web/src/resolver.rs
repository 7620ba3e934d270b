//! The system's resolver, and whether it answers at all. If it does not, a failed lookup is not the name's fault.

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

/// The DNS root, which every resolver knows, though it has no address.
const ROOT: &str = ".";

/// Time after which a resolver that has not answered about the root counts as down.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Time that a lookup waits for a thread.
const THREAD_TIMEOUT: Duration = Duration::from_secs(3);

/// Time that the state of the resolver is cached.
const CACHE_TTL: Duration = Duration::from_secs(2);

/// The time of the last check, and whether the resolver answered.
static ANSWERS: Mutex<Option<(Instant, bool)>> = Mutex::const_new(None);

/// The resolver of this machine answers about no name.
#[derive(Debug, thiserror::Error)]
#[error("the resolver of this machine gives no answer about any name: see /etc/resolv.conf, and the network")]
pub(super) struct NoResolver;

/// Looks up the addresses of a name. If the resolver is down the error holds [`NoResolver`].
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

/// Whether the resolver answers at all, from the cache or by asking it about the root.
pub(super) async fn is_answering() -> bool {
    let mut known = ANSWERS.lock().await;
    if let Some((when, is_answering)) = *known
        && when.elapsed() < CACHE_TTL
    {
        return is_answering;
    }
    let root = timeout(PROBE_TIMEOUT, look(ROOT.to_owned())).await;
    let is_answering = matches!(&root, Ok(Ok(answer)) if !answer.as_ref().is_err_and(is_unanswered));
    *known = Some((Instant::now(), is_answering));
    is_answering
}

/// Asks the system on a thread for blocking work. The outer error means that no thread was free.
async fn look(name: String) -> io::Result<Result<Vec<SocketAddr>, LookupError>> {
    let (begins, begun) = oneshot::channel();
    let looking = spawn_blocking(move || {
        let _ = begins.send(());
        let hints = AddrInfoHints { socktype: SockType::Stream.into(), ..AddrInfoHints::default() };
        let found = getaddrinfo(Some(&name), None, Some(hints))?;
        Ok(found.flatten().map(|found| found.sockaddr).collect())
    });
    if timeout(THREAD_TIMEOUT, begun).await.is_err() {
        return Err(Errno::AGAIN.into());
    }
    looking.await.map_err(io::Error::other)
}

/// Whether the lookup got no answer, from the resolver or from the name servers it asked.
fn is_unanswered(error: &LookupError) -> bool {
    matches!(error.kind(), LookupErrorKind::Again | LookupErrorKind::Fail)
}
