//! The connection to Redis: one server, or a cluster.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::try_join_all;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{
    MultipleNodeRoutingInfo, Route, RoutingInfo, SingleNodeRoutingInfo, Slot, SlotAddr,
};
use redis::{
    Arg, Client, Cmd, FromRedisValue, InfoDict, Pipeline, RedisFuture, RedisResult, ScriptInvocation, Value,
};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::text::printable;

use crate::redis::failed;

/// A connection to Redis, shared by its clones, that reconnects by itself. Commands in flight when it breaks fail.
///
/// On a cluster each command goes to the master of its key's slot, so a script must name its keys, all of one
/// slot. A pipeline may touch many slots: it is sent in parts, one per slot, and only commands of the same slot
/// keep their order. No pipeline is a transaction, because a full server would refuse even one that only reads.
#[derive(Clone)]
pub struct Link(Kind, Arc<Opener>);

/// Opens connections to one server or cluster.
pub(crate) enum Opener {
    Server(Client, ConnectionManagerConfig),
    Cluster(ClusterClient),
}

impl Opener {
    pub(crate) async fn open(self: Arc<Self>) -> RedisResult<Link> {
        let kind = match &*self {
            Self::Server(client, config) => {
                Kind::Server(client.get_connection_manager_with_config(config.clone()).await?)
            }
            Self::Cluster(client) => Kind::Cluster(client.get_async_connection().await?),
        };
        Ok(Link(kind, self))
    }
}

#[derive(Clone)]
enum Kind {
    Server(ConnectionManager),
    Cluster(ClusterConnection),
}

impl Link {
    /// Opens another connection to the same server or cluster.
    pub(crate) async fn apart(&self) -> Result<Self> {
        Arc::clone(&self.1).open().await.map_err(failed)
    }

    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.0, Kind::Cluster(_))
    }

    /// Runs a script.
    pub(crate) async fn run<T: FromRedisValue>(&self, call: &ScriptInvocation<'_>) -> Result<T> {
        call.invoke_async(&mut self.clone()).await.map_err(failed)
    }

    /// Runs a command.
    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        command.query_async(&mut self.clone()).await.map_err(failed)
    }

    /// Returns the value of a key, of at most `max` bytes. No more than that is read: anyone who may write to
    /// Redis could have put any number of bytes there.
    pub(crate) async fn value(&self, key: &str, max: usize) -> Result<Option<Vec<u8>>> {
        let mut read = redis::cmd("GETRANGE");
        // The end is inclusive: one extra byte shows that there are more.
        let value: Vec<u8> = self.query(read.arg(key).arg(0).arg(max)).await?;
        match value.len() {
            0 => Ok(None),
            bytes if bytes > max => {
                let text = format!(
                    "redis: the value of {} is larger than any that trawl writes",
                    printable(key, 200)
                );
                Err(Error::new(ErrorKind::Corrupt, text))
            }
            _ => Ok(Some(value)),
        }
    }

    /// Runs a command without a key on the server that has `key`.
    pub(crate) async fn query_at<T: FromRedisValue>(&self, key: &str, command: &Cmd) -> Result<T> {
        let Kind::Cluster(cluster) = &self.0 else { return self.query(command).await };
        let route = Route::with_slot(Slot::for_key(key.as_bytes()), SlotAddr::Master);
        let node = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(route));
        let answer = cluster.clone().route_command(command.clone(), node).await.map_err(failed)?;
        redis::from_redis_value(answer).map_err(|error| failed(error.into()))
    }

    /// Returns the run of each master's data (`scripts/record.lua`), in a stable order.
    pub(crate) async fn runs(&self) -> Result<String> {
        let mut info = redis::cmd("INFO");
        info.arg("server").arg("replication");
        let mut runs = match &self.0 {
            Kind::Server(_) => vec![run_of(&self.query::<InfoDict>(&info).await?)],
            Kind::Cluster(cluster) => {
                let masters = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
                let answers = cluster.clone().route_command(info, masters).await.map_err(failed)?;
                let answers: HashMap<String, InfoDict> =
                    redis::from_redis_value(answers).map_err(|error| failed(error.into()))?;
                answers.values().map(run_of).collect()
            }
        };
        runs.sort_unstable();
        Ok(runs.join(" "))
    }
}

fn run_of(info: &InfoDict) -> String {
    let text = |name| info.get::<String>(name).unwrap_or_default();
    format!("{}-{}", text("run_id"), text("master_replid"))
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match &mut self.0 {
            Kind::Server(server) => server.req_packed_command(command),
            Kind::Cluster(cluster) => cluster.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match &mut self.0 {
            Kind::Server(server) => server.req_packed_commands(pipeline, offset, count),
            Kind::Cluster(cluster) => Box::pin(by_slot(cluster, pipeline)),
        }
    }

    fn get_db(&self) -> i64 {
        match &self.0 {
            Kind::Server(server) => server.get_db(),
            Kind::Cluster(cluster) => cluster.get_db(),
        }
    }
}

/// Sends each slot's commands as a separate pipeline, all at once; the answers come in the pipeline's order.
async fn by_slot(cluster: &ClusterConnection, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
    let parts = parts(pipeline);
    let answers = try_join_all(parts.iter().map(|part| {
        let mut cluster = cluster.clone();
        let route = SingleNodeRoutingInfo::SpecificNode(Route::with_slot(part.slot, SlotAddr::Master));
        async move { cluster.route_pipeline(part.pipeline.clone(), 0, part.places.len(), route).await }
    }))
    .await?;
    let mut merged = vec![Value::Nil; pipeline.len()];
    for (part, answers) in parts.iter().zip(answers) {
        for (&place, answer) in part.places.iter().zip(answers) {
            merged[place] = answer;
        }
    }
    Ok(merged)
}

/// The commands of one slot, and their positions in the whole pipeline.
struct Part {
    slot: Slot,
    places: Vec<usize>,
    pipeline: Pipeline,
}

fn parts(pipeline: &Pipeline) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (place, command) in pipeline.cmd_iter().enumerate() {
        let slot = slot(command);
        let at = parts.iter().position(|part| part.slot == slot).unwrap_or_else(|| {
            parts.push(Part { slot, places: Vec::new(), pipeline: redis::pipe() });
            parts.len() - 1
        });
        parts[at].places.push(place);
        parts[at].pipeline.add_command(command.clone());
    }
    parts
}

/// Returns the slot of a command's first argument, which is the key in all commands that are pipelined here.
fn slot(command: &Cmd) -> Slot {
    match command.args_iter().nth(1) {
        Some(Arg::Simple(key)) => Slot::for_key(key),
        _ => Slot::for_key(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_is_parted_by_slot_and_each_part_keeps_its_order() {
        let mut pipeline = redis::pipe();
        pipeline.cmd("HSET").arg("workers:{a}").arg("seen").arg(1);
        pipeline.cmd("ZADD").arg("workers").arg(1).arg("a");
        pipeline.cmd("PEXPIRE").arg("workers:{a}").arg(15_000);
        let parts = parts(&pipeline);
        let places: Vec<&[usize]> = parts.iter().map(|part| &part.places[..]).collect();
        assert_eq!(places, [&[0, 2][..], &[1]]);
        let names: Vec<_> = parts[0].pipeline.cmd_iter().map(|command| command.args_iter().next()).collect();
        assert_eq!(names, [Some(Arg::Simple(&b"HSET"[..])), Some(Arg::Simple(&b"PEXPIRE"[..]))]);
    }
}
