//! The connection to Redis: one server, or a cluster.

use std::sync::Arc;

use redis::aio::ConnectionLike;
use redis::cluster_routing::Slot;
use redis::{Cmd, FromRedisValue, InfoDict, Pipeline, RedisFuture, ScriptInvocation, Value};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::text::printable;

use crate::redis::failed;

/// A connection to Redis, shared by its clones, that reconnects by itself. Commands in flight when it breaks fail.
///
/// On a cluster each command goes to the master of its key's slot, so a script must name its keys, all of one
/// slot. A pipeline may touch many slots: it is sent in parts, one per slot, and only commands of the same slot
/// keep their order. No pipeline is a transaction, because a full server would refuse even one that only reads.
#[derive(Clone)]
pub struct Link(Arc<dyn Connected>);

/// A connection to one server or a cluster. It is a trait object since the compiler would otherwise prove anew for each
/// function that awaits a command that all types of the client library may move between threads.
pub(super) trait Connected: Send + Sync {
    /// Opens another connection to the same server or cluster.
    fn apart(&self) -> RedisFuture<'_, Link>;

    /// Sends a command.
    fn send<'a>(&'a self, command: &'a Cmd) -> RedisFuture<'a, Value>;

    /// Sends a command without a key to the server that has this slot.
    fn send_to<'a>(&'a self, slot: Slot, command: &'a Cmd) -> RedisFuture<'a, Value>;

    /// Sends all commands of a pipeline. Returns the answers to `count` of them from `offset` on.
    fn send_all<'a>(
        &'a self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>>;

    /// Returns what each master says of itself.
    fn infos<'a>(&'a self, info: &'a Cmd) -> RedisFuture<'a, Vec<InfoDict>>;

    fn is_cluster(&self) -> bool;

    /// Returns the number of the database.
    fn database(&self) -> i64;
}

impl Link {
    pub(super) fn new(connected: impl Connected + 'static) -> Self {
        Self(Arc::new(connected))
    }

    /// Opens another connection to the same server or cluster.
    pub(crate) async fn apart(&self) -> Result<Self> {
        self.0.apart().await.map_err(failed)
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.0.is_cluster()
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
        let answer = self.0.send_to(Slot::for_key(key.as_bytes()), command).await.map_err(failed)?;
        redis::from_redis_value(answer).map_err(|error| failed(error.into()))
    }

    /// Returns the run of each master's data (`scripts/record.lua`), in a stable order.
    pub(crate) async fn runs(&self) -> Result<String> {
        let mut info = redis::cmd("INFO");
        info.arg("server").arg("replication");
        let infos = self.0.infos(&info).await.map_err(failed)?;
        let mut runs: Vec<String> = infos.iter().map(run_of).collect();
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
        self.0.send(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.0.send_all(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.database()
    }
}
