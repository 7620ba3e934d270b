//! The connection to a cluster.

use std::collections::HashMap;

use futures::future::try_join_all;
use redis::aio::ConnectionLike;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{
    MultipleNodeRoutingInfo, Route, RoutingInfo, SingleNodeRoutingInfo, Slot, SlotAddr,
};
use redis::{Arg, Cmd, InfoDict, Pipeline, RedisFuture, RedisResult, Value};

use crate::redis::Link;
use crate::redis::server::link::Connected;

/// A connection to the masters of a cluster.
struct Cluster {
    client: ClusterClient,
    connection: ClusterConnection,
}

/// Connects to a cluster.
pub(super) async fn open(client: ClusterClient) -> RedisResult<Link> {
    let connection = client.get_async_connection().await?;
    Ok(Link::new(Cluster { client, connection }))
}

impl Connected for Cluster {
    fn apart(&self) -> RedisFuture<'_, Link> {
        Box::pin(open(self.client.clone()))
    }

    fn send<'a>(&'a self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let mut connection = self.connection.clone();
        Box::pin(async move { connection.req_packed_command(command).await })
    }

    fn send_to<'a>(&'a self, slot: Slot, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let node = RoutingInfo::SingleNode(master(slot));
        let mut connection = self.connection.clone();
        Box::pin(async move { connection.route_command(command.clone(), node).await })
    }

    fn send_all<'a>(&'a self, pipeline: &'a Pipeline, _: usize, _: usize) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(by_slot(&self.connection, pipeline))
    }

    fn infos<'a>(&'a self, info: &'a Cmd) -> RedisFuture<'a, Vec<InfoDict>> {
        let masters = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
        let mut connection = self.connection.clone();
        Box::pin(async move {
            let answers = connection.route_command(info.clone(), masters).await?;
            let answers: HashMap<String, InfoDict> = redis::from_redis_value(answers)?;
            Ok(answers.into_values().collect())
        })
    }

    fn is_cluster(&self) -> bool {
        true
    }

    fn database(&self) -> i64 {
        self.connection.get_db()
    }
}

/// Returns the way to the master of a slot.
fn master(slot: Slot) -> SingleNodeRoutingInfo {
    SingleNodeRoutingInfo::SpecificNode(Route::with_slot(slot, SlotAddr::Master))
}

/// Sends each slot's commands as a separate pipeline, all at once; the answers come in the pipeline's order.
async fn by_slot(cluster: &ClusterConnection, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
    let parts = parts(pipeline);
    let answers = try_join_all(parts.iter().map(|part| {
        let mut cluster = cluster.clone();
        async move {
            let (pipeline, places) = (part.pipeline.clone(), part.places.len());
            cluster.route_pipeline(pipeline, 0, places, master(part.slot)).await
        }
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
