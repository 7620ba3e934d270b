//! Opens the [`Link`] that the settings describe.

use std::time::Duration;

use redis::ErrorKind::InvalidClientConfig;
use redis::aio::{ConnectionLike, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, InfoDict, IntoConnectionInfo};
use redis::{RedisError, RedisResult, TlsCertificates};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::Redis;

use crate::redis::server::{cluster, single};
use crate::redis::{Link, kind};
use crate::tls::{self, Authority};

/// Time limit for an answer; after it, a server counts as unavailable.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time without an acknowledgement after which a connection is opened anew. Without it, calls would wait for a
/// machine that lost its power.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum pause between two tries to reach a server.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Connects once; from then on the connection reconnects by itself. Commands in flight when it breaks fail.
pub async fn connect(settings: &Redis) -> Result<Link> {
    let url = &settings.url;
    let authority = settings.ca.as_deref().map(|path| Authority::read("redis.ca", path)).transpose()?;
    let certificates =
        TlsCertificates { client_tls: None, root_cert: authority.map(|authority| authority.pem) };
    let opened = if settings.cluster {
        to_cluster(settings, certificates).await
    } else {
        to_server(settings, certificates).await
    };
    let link = opened
        .map_err(|error| Error::new(kind(&error), format!("redis at {url}: {error}{}", hint(&error))))?;
    if !settings.cluster && is_cluster_node(&mut link.clone()).await == Some(true) {
        let text = format!("redis at {url} is a node of a Redis Cluster: set redis.cluster = true");
        return Err(Error::new(ErrorKind::Refused, text));
    }
    Ok(link)
}

fn hint(error: &RedisError) -> &'static str {
    if tls::is_refusal(error) {
        ": is its certificate from whom this machine, or redis.ca, trusts, and for this name?"
    } else if kind(error) == ErrorKind::Unavailable {
        ": is it running there? (redis.url, REDIS_URL)"
    } else {
        ""
    }
}

async fn to_server(settings: &Redis, certificates: TlsCertificates) -> RedisResult<Link> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(TIMEOUT))
        .set_response_timeout(Some(TIMEOUT))
        .set_number_of_retries(1)
        .set_max_delay(MAX_PAUSE);
    single::open(client(settings, certificates)?, config).await
}

async fn to_cluster(settings: &Redis, certificates: TlsCertificates) -> RedisResult<Link> {
    let seeds = settings.nodes.iter().map(|node| settings.url.at(node));
    let seeds = std::iter::once(settings.url.clone()).chain(seeds);
    let seeds: Vec<ConnectionInfo> =
        seeds.map(|url| url.reveal().into_connection_info()).collect::<RedisResult<_>>()?;
    let builder = ClusterClient::builder(seeds)
        .connection_timeout(TIMEOUT)
        .response_timeout(TIMEOUT)
        .min_retry_wait(50)
        .max_retry_wait(MAX_PAUSE.as_millis() as u64)
        .retries(4)
        .tcp_settings(tcp());
    let builder = if settings.url.is_tls() { builder.certs(certificates.clone()) } else { builder };
    match cluster::open(builder.build()?).await {
        Ok(link) => Ok(link),
        // The error says only that no node could be reached; a plain connection gives the reason.
        Err(error) => Err(why_not(settings, certificates).await.unwrap_or(error)),
    }
}

/// Returns the reason why the first node cannot be used to discover the cluster, if it can be found out.
async fn why_not(settings: &Redis, certificates: TlsCertificates) -> Option<RedisError> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(Some(TIMEOUT));
    let client = client(settings, certificates).ok()?;
    match client.get_multiplexed_async_connection_with_config(&config).await {
        Err(error) => Some(error),
        Ok(mut connection) => (is_cluster_node(&mut connection).await == Some(false))
            .then(|| (InvalidClientConfig, "it is in no cluster: set redis.cluster = false").into()),
    }
}

fn client(settings: &Redis, certificates: TlsCertificates) -> RedisResult<Client> {
    let info = settings.url.reveal().into_connection_info()?.set_tcp_settings(tcp());
    if settings.url.is_tls() { Client::build_with_tls(info, certificates) } else { Client::open(info) }
}

fn tcp() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(SILENCE_TIMEOUT / 3).with_interval(SILENCE_TIMEOUT / 3);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(SILENCE_TIMEOUT);
    settings
}

/// Returns whether the server evicts entries when its memory is full, as a cache of responses should.
pub async fn evicts(link: &Link) -> bool {
    eviction(link).await.is_some()
}

/// Returns the policy by which the server evicts entries when its memory is full; `None` if it does not, or does
/// not say.
pub(crate) async fn eviction(link: &Link) -> Option<String> {
    eviction_in(&redis::cmd("INFO").arg("memory").query_async(&mut link.clone()).await.ok()?)
}

/// Likewise, by what the server says of its memory.
pub(crate) fn eviction_in(info: &InfoDict) -> Option<String> {
    let is_bounded = info.get::<u64>("maxmemory").is_some_and(|limit| limit > 0);
    info.get::<String>("maxmemory_policy").filter(|policy| is_bounded && policy != "noeviction")
}

/// Returns whether the server is part of a cluster; `None` if it refuses the question.
async fn is_cluster_node(connection: &mut impl ConnectionLike) -> Option<bool> {
    let info: InfoDict = redis::cmd("INFO").arg("cluster").query_async(connection).await.ok()?;
    info.get::<u8>("cluster_enabled").map(|enabled| enabled == 1)
}
