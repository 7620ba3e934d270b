//! Connections to the broker.

use std::time::Duration;

use lapin::{Connection, ConnectionProperties};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::ServerUrl;

/// Within this time a broker accepts a connection, or counts as away.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens one connection, named so that the management page shows whose it is.
pub(super) async fn open(url: &ServerUrl, name: &str) -> Result<Connection> {
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let connecting = tokio::time::timeout(PATIENCE, Connection::connect(url.reveal(), properties));
    match connecting.await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => {
            let hint = "is it running there? (rabbitmq.url, RABBITMQ_URL)";
            Err(Error::new(kind(&error), format!("rabbitmq at {url}: {error}: {hint}")))
        }
        Err(_) => {
            let text = format!("rabbitmq at {url}: no answer within {} s", PATIENCE.as_secs());
            Err(Error::new(ErrorKind::Unavailable, text))
        }
    }
}

/// An error on an open connection.
pub(super) fn failed(error: lapin::Error) -> Error {
    Error::new(kind(&error), format!("rabbitmq: {error}"))
}

fn kind(error: &lapin::Error) -> ErrorKind {
    use lapin::ErrorKind as Lapin;
    use lapin::protocol::{AMQPErrorKind, AMQPHardError, AMQPSoftError};
    match error.kind() {
        Lapin::ProtocolError(protocol) => match protocol.kind() {
            AMQPErrorKind::Soft(AMQPSoftError::ACCESSREFUSED | AMQPSoftError::PRECONDITIONFAILED) => {
                ErrorKind::Refused
            }
            AMQPErrorKind::Hard(AMQPHardError::NOTALLOWED) => ErrorKind::Refused,
            _ => ErrorKind::Unavailable,
        },
        _ => ErrorKind::Unavailable,
    }
}
