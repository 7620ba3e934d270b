//! Channels, and what the broker refuses on them.

use std::io;
use std::time::Duration;

use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use tokio::time::timeout;
use tracing::warn;

/// The time in which the broker answers whatever it is asked for. Past it, it counts as away, though its heartbeats may still come: a queue whose
/// leader is lost, or a node that stood still, answers nothing on a connection that lives.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The answer to a call, if it comes in time; otherwise the log says so. Every call on a connection or a channel goes through this, so that none
/// waits for ever, or in silence.
pub(super) async fn answered<T>(call: impl Future<Output = lapin::Result<T>>) -> lapin::Result<T> {
    timeout(ANSWER_TIMEOUT, call).await.unwrap_or_else(|_| {
        let text = format!("no answer within {} s", ANSWER_TIMEOUT.as_secs());
        warn!("rabbitmq gives {text} on a connection that is open");
        Err(io::Error::new(io::ErrorKind::TimedOut, text).into())
    })
}

/// Nobody waits on this channel: failing to close it changes nothing.
pub(super) async fn close(channel: &Channel) {
    let _ = answered(channel.close(200, "done".into())).await;
}

pub(super) fn durable() -> QueueDeclareOptions {
    QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() }
}

/// Only this says that the arguments differ: a queue whose node is away is "not found".
pub(super) fn is_precondition_failed(error: &lapin::Error) -> bool {
    is_soft(error, AMQPSoftError::PRECONDITIONFAILED)
}

pub(super) fn is_soft(error: &lapin::Error, soft: AMQPSoftError) -> bool {
    let lapin::ErrorKind::ProtocolError(protocol) = error.kind() else { return false };
    matches!(protocol.kind(), AMQPErrorKind::Soft(kind) if *kind == soft)
}
