//! A master of the Redis Cluster that `scripts/cluster` starts, with its replica. Either can take over from the other.

use std::time::Duration;

use redis::{Cmd, FromRedisValue, RedisResult, Value, cmd};
use tokio::time::{sleep, timeout};

use crate::cluster;
use crate::faults::private::{POLL_INTERVAL, Server, script};

/// Time in ms after which the cluster takes a master that does not answer for dead.
const NODE_TIMEOUT: u64 = 2000;

/// Maximum time of a manual failover.
const ORDER: Duration = Duration::from_secs(1);

/// The two nodes that hold a key, each by its port.
pub struct Shard {
    master: u16,
    replica: u16,
}

impl Shard {
    /// Returns the nodes that hold `key`.
    ///
    /// # Panics
    /// If the cluster does not answer.
    pub async fn new(key: &str) -> Self {
        type Range = (u16, u16, Vec<Value>, Vec<Value>);
        let any = cluster::redis_ports()[0];
        let slot: u16 = ask(any, cmd("CLUSTER").arg("KEYSLOT").arg(key)).await.expect("a key has a slot");
        let ranges: Vec<Range> = ask(any, cmd("CLUSTER").arg("SLOTS")).await.expect("all have a replica");
        let range = ranges.into_iter().find(|(first, last, ..)| (*first..=*last).contains(&slot));
        let (_, _, master, replica) = range.expect("every slot is served");
        let port = |node: &[Value]| u16::from_redis_value_ref(&node[1]).expect("a node has a port");
        Self { master: port(&master), replica: port(&replica) }
    }

    /// Makes the replica take over by a manual failover, with all data of the master.
    ///
    /// # Panics
    /// If it does not.
    pub async fn fail_over(&mut self) {
        // Repeated, as the master ignores its replica until it knows it.
        let mut order = cmd("CLUSTER");
        order.arg("FAILOVER");
        loop {
            let _: RedisResult<()> = ask(self.replica, &order).await;
            if timeout(ORDER, self.await_promotion()).await.is_ok() {
                break;
            }
        }
        self.await_replica(self.master).await;
        std::mem::swap(&mut self.master, &mut self.replica);
    }

    /// Cuts the replica off from the master's further writes.
    ///
    /// # Panics
    /// If the master refuses.
    pub async fn cut_replication(&self) {
        // No replica may ask for a copy any more, and the existing one is cut off.
        let () =
            ask(self.master, cmd("ACL").arg("SETUSER").arg("default").arg("-psync")).await.expect("it may");
        let cut: u64 =
            ask(self.master, cmd("CLIENT").arg("KILL").arg("TYPE").arg("replica")).await.expect("it may");
        assert_eq!(cut, 1, "the master has one replica");
    }

    /// Kills the master with `kill -9`, waits until its replica is promoted, and restarts the old master as the replica
    /// of the new one.
    ///
    /// # Panics
    /// If the cluster does not do so.
    pub async fn kill_master(&mut self) {
        for port in cluster::redis_ports() {
            let mut set = cmd("CONFIG");
            set.arg("SET").arg("cluster-node-timeout").arg(NODE_TIMEOUT);
            let () = ask(port, &set).await.expect("a node takes it");
        }
        let folder = cluster::folder_of(self.master);
        cluster::kill(&folder.file_name().expect("it has a name").to_string_lossy());
        // Not before: it comes back empty, and the cluster would take that for the data.
        self.await_promotion().await;
        let mut command = script(["exec", "redis-server"]);
        command.arg(folder.join("redis.conf")).kill_on_drop(false);
        Server::default().start(command, &folder).expect("the node starts again");
        self.await_replica(self.master).await;
        std::mem::swap(&mut self.master, &mut self.replica);
    }

    async fn await_promotion(&self) {
        while role(self.replica).await.is_none_or(|(role, _)| role != "master") {
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until the node at `port` is a connected replica.
    async fn await_replica(&self, port: u16) {
        while role(port)
            .await
            .is_none_or(|(role, link)| role != "slave" || link.as_deref() != Some("connected"))
        {
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// Returns the role of a node, and for a replica the state of its link to its master; `None` while it does not answer.
async fn role(port: u16) -> Option<(String, Option<String>)> {
    let role: Vec<Value> = ask(port, &cmd("ROLE")).await.ok()?;
    let text = |at: usize| role.get(at).and_then(|value| String::from_redis_value_ref(value).ok());
    Some((text(0)?, text(3)))
}

async fn ask<T: FromRedisValue>(port: u16, command: &Cmd) -> RedisResult<T> {
    let client = redis::Client::open(("127.0.0.1", port))?;
    command.query_async(&mut client.get_multiplexed_async_connection().await?).await
}
