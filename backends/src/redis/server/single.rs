//! The connection to a single server.

use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster_routing::Slot;
use redis::{Client, Cmd, InfoDict, Pipeline, RedisFuture, RedisResult, Value};

use crate::redis::Link;
use crate::redis::server::link::Connected;

/// A connection to one server.
struct Single {
    client: Client,
    config: ConnectionManagerConfig,
    connection: ConnectionManager,
}

/// Connects to a server.
pub(super) async fn open(client: Client, config: ConnectionManagerConfig) -> RedisResult<Link> {
    let connection = client.get_connection_manager_with_config(config.clone()).await?;
    Ok(Link::new(Single { client, config, connection }))
}

impl Connected for Single {
    fn apart(&self) -> RedisFuture<'_, Link> {
        Box::pin(open(self.client.clone(), self.config.clone()))
    }

    fn send<'a>(&'a self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut connection = self.connection.clone();
        Box::pin(async move { connection.req_packed_command(command).await })
    }

    fn send_to<'a>(&'a self, _: Slot, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.send(command)
    }

    fn send_all<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let mut connection = self.connection.clone();
        Box::pin(async move { connection.req_packed_commands(pipeline, offset, count).await })
    }

    fn infos<'a>(&'a self, info: &'a Cmd) -> RedisFuture<'a, Vec<InfoDict>> {
        Box::pin(async { Ok(vec![redis::from_redis_value(self.send(info).await?)?]) })
    }

    fn is_cluster(&self) -> bool {
        false
    }

    fn database(&self) -> i64 {
        self.connection.get_db()
    }
}
