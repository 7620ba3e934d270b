//! The frontier, the host schedules and the response cache on Redis.
//!
//! Every transition is one Lua script, bounded to 500 URLs, whose keys share one slot. All clocks are
//! the server's.

mod books;
mod cache;
mod control;
mod frontier;
mod hear;
mod hosts;
mod keys;
mod scripts;
mod sweep;

use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, IntoConnectionInfo, RedisError, ServerErrorKind};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::ServerUrl;

pub use cache::RedisCache;
pub use frontier::RedisFrontier;
pub use hosts::RedisHosts;

/// Within this time a server answers, or counts as away.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connects once; the connection mends itself from then on. Commands in flight when it breaks fail.
pub async fn connect(url: &ServerUrl) -> Result<ConnectionManager> {
    let invalid = |error: RedisError| Error::new(ErrorKind::Refused, format!("redis at {url}: {error}"));
    let info = url.reveal().into_connection_info().map_err(invalid)?;
    let client = Client::open(info).map_err(invalid)?;
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
        .set_number_of_retries(1)
        .set_max_delay(Duration::from_millis(500));
    let manager = client.get_connection_manager_with_config(config).await;
    manager.map_err(|error| {
        let hint = "is it running there? (redis.url, REDIS_URL)";
        Error::new(kind(&error), format!("redis at {url}: {error}: {hint}"))
    })
}

fn kind(error: &RedisError) -> ErrorKind {
    match error.kind() {
        redis::ErrorKind::AuthenticationFailed | redis::ErrorKind::InvalidClientConfig => ErrorKind::Refused,
        redis::ErrorKind::UnexpectedReturnType => ErrorKind::Corrupt,
        redis::ErrorKind::Server(ServerErrorKind::NoPerm) => ErrorKind::Refused,
        redis::ErrorKind::Server(ServerErrorKind::ResponseError) if error.code() == Some("WRONGTYPE") => {
            ErrorKind::Corrupt
        }
        _ => ErrorKind::Unavailable,
    }
}

fn failed(error: RedisError) -> Error {
    Error::new(kind(&error), format!("redis: {error}"))
}
