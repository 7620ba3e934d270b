//! Channels, and what the broker refuses on them.

use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};

/// Nobody waits on this channel: failing to close it changes nothing.
pub(super) async fn close(channel: &Channel) {
    let _ = channel.close(200, "done".into()).await;
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
