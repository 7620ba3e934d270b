//! The clusters that `scripts/cluster` starts: three nodes of RabbitMQ, and three masters of Redis with a replica each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use trawl_common::settings::{Node, RabbitMq, Redis, ServerUrl};

/// Returns the Redis Cluster, found through any of its nodes.
///
/// # Panics
/// If no cluster is named: a test must not pass because it could not run.
pub fn redis() -> Redis {
    let (url, nodes) = (ServerUrl::new(var("REDIS_CLUSTER_URL")), nodes("REDIS_CLUSTER_NODES"));
    Redis { url, cluster: true, nodes, ..Redis::default() }
}

/// Returns the Redis Cluster over TLS, with the authority of the tests.
///
/// # Panics
/// As [`redis()`].
pub fn redis_tls() -> Redis {
    let url = ServerUrl::new(var("REDIS_CLUSTER_TLS_URL"));
    Redis { url, cluster: true, ca: Some(authority()), ..Redis::default() }
}

/// Returns the Redis that is in no cluster, over TLS.
///
/// # Panics
/// As [`redis()`].
pub fn redis_alone_tls() -> Redis {
    Redis { url: ServerUrl::new(var("REDIS_TLS_URL")), ca: Some(authority()), ..Redis::default() }
}

/// Returns the first node of RabbitMQ over TLS.
///
/// # Panics
/// As [`redis()`].
pub fn rabbitmq_tls() -> RabbitMq {
    RabbitMq { url: ServerUrl::new(var("RABBITMQ_TLS_URL")), ca: Some(authority()), ..RabbitMq::default() }
}

/// Returns the other nodes of RabbitMQ.
///
/// # Panics
/// As [`redis()`].
pub fn rabbitmq_nodes() -> Vec<Node> {
    nodes("RABBITMQ_NODES")
}

/// Returns the path of the certificate of the authority that signed those of all servers here. They are only valid for
/// 127.0.0.1.
///
/// # Panics
/// As [`redis()`].
pub fn authority() -> PathBuf {
    var("CLUSTER_CA").into()
}

/// Returns the address of the node `mq1@localhost`, `mq2@localhost` or `mq3@localhost`: `host:port`.
///
/// # Panics
/// As [`redis()`], and if there is no such node.
pub fn address_of(node: &str) -> Node {
    let number: usize =
        node.strip_prefix("mq").and_then(|rest| rest[..1].parse().ok()).expect("a node is named mq<n>");
    let url = url::Url::parse(&var("RABBITMQ_URL")).expect("RABBITMQ_URL is a URL");
    let first = format!("127.0.0.1:{}", url.port().expect("it has a port"));
    let all: Vec<Node> =
        std::iter::once(first.parse().expect("it is a node")).chain(rabbitmq_nodes()).collect();
    all[number - 1].clone()
}

/// Returns the port of each node of the Redis Cluster.
pub(crate) fn redis_ports() -> Vec<u16> {
    let first = url::Url::parse(&var("REDIS_CLUSTER_URL")).expect("REDIS_CLUSTER_URL is a URL");
    let others = var("REDIS_CLUSTER_NODES");
    let port = |node: &str| node.rsplit(':').next().and_then(|port| port.parse().ok());
    let others = others.split(',').map(|node| port(node).expect("each is host:port"));
    std::iter::once(first.port().expect("it has a port")).chain(others).collect()
}

/// Returns the folder with the settings of the Redis node at this port.
pub(crate) fn folder_of(port: u16) -> PathBuf {
    let number = redis_ports().iter().position(|known| *known == port).expect("it is in the cluster");
    Path::new(&var("CLUSTER_DIR")).join(format!("redis{}", number + 1))
}

/// Kills a node of RabbitMQ or Redis, like a power cut.
///
/// # Panics
/// As [`redis()`], and if it is not running.
pub fn kill(node: &str) {
    let name = node.split('@').next().unwrap_or(node);
    let file = Path::new(&var("CLUSTER_DIR")).join(format!("{name}.pid"));
    let group = fs::read_to_string(&file).expect("the node was started by scripts/cluster");
    let killed = Command::new("kill").args(["-KILL", "--", &format!("-{}", group.trim())]).status();
    assert!(killed.expect("kill can be run").success(), "{node} does not run");
}

fn nodes(name: &str) -> Vec<Node> {
    var(name).split(',').map(|node| node.parse().expect("each is host:port")).collect()
}

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run these tests with scripts/cluster-test, which starts the clusters")
    })
}
