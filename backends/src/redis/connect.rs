//! Opens the [`Link`] that the settings describe.

use std::time::Duration;

use redis::aio::ConnectionManagerConfig;
use redis::cluster::ClusterClient;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, RedisError, RedisResult};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::Redis;

use super::{Link, kind};

/// Within this time a server answers, or counts as away.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two tries to reach a server that is away.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Connects once; the connection mends itself from then on. Commands in flight when it breaks fail.
pub async fn connect(settings: &Redis) -> Result<Link> {
    let Redis { url, cluster } = settings;
    let invalid = |error: RedisError| Error::new(ErrorKind::Refused, format!("redis at {url}: {error}"));
    let info = url.reveal().into_connection_info().map_err(invalid)?;
    let opened = if *cluster { to_cluster(info).await } else { to_server(info).await };
    opened.map_err(|error| {
        let hint = "is it running there? (redis.url, REDIS_URL)";
        Error::new(kind(&error), format!("redis at {url}: {error}: {hint}"))
    })
}

async fn to_server(info: ConnectionInfo) -> RedisResult<Link> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
        .set_number_of_retries(1)
        .set_max_delay(MAX_PAUSE);
    let connection = Client::open(info)?.get_connection_manager_with_config(config).await?;
    Ok(Link::to_server(connection))
}

async fn to_cluster(info: ConnectionInfo) -> RedisResult<Link> {
    let client = ClusterClient::builder([info])
        .connection_timeout(PATIENCE)
        .response_timeout(PATIENCE)
        .min_retry_wait(50)
        .max_retry_wait(MAX_PAUSE.as_millis() as u64)
        .retries(4)
        .build()?;
    Ok(Link::to_cluster(client.get_async_connection().await?))
}
