//! Calls on channels, and the broker's refusals.

use std::io;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lapin::options::QueueDeclareOptions;
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use tokio::time::timeout;
use tracing::warn;

use super::erased::Channel;

/// Time limit for any answer of the broker. After it, the broker counts as unavailable, even if its heartbeats
/// still come: a queue whose leader is lost, or a stalled node, answers nothing on a live connection.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Awaits the answer to a call, with a time limit; a timeout is logged. Every call on a connection or a channel
/// goes through this, so that none waits for ever, or silently.
pub(super) fn answered<'a, T: Send + 'a>(
    call: impl Future<Output = lapin::Result<T>> + Send + 'a,
) -> BoxFuture<'a, lapin::Result<T>> {
    let in_time = timeout(ANSWER_TIMEOUT, call).map(|answer| {
        answer.unwrap_or_else(|_| {
            let text = format!("no answer within {} s", ANSWER_TIMEOUT.as_secs());
            warn!("rabbitmq gives {text} on a connection that is open");
            Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
        })
    });
    in_time.boxed()
}

/// Closes a channel on which nobody waits: a failure changes nothing.
pub(super) async fn close(channel: &Channel) {
    let _ = answered(channel.close(200, "done".into())).await;
}

pub(super) fn durable() -> QueueDeclareOptions {
    QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() }
}

/// Returns whether the arguments differ. No other error says so: a queue whose node is down is "not found".
pub(super) fn is_precondition_failed(error: &lapin::Error) -> bool {
    is_soft(error, AMQPSoftError::PRECONDITIONFAILED)
}

pub(super) fn is_soft(error: &lapin::Error, soft: AMQPSoftError) -> bool {
    let lapin::ErrorKind::ProtocolError(protocol) = error.kind() else { return false };
    matches!(protocol.kind(), AMQPErrorKind::Soft(kind) if *kind == soft)
}
