//! A Redis of one test alone, which may limit its memory: that is a setting of the whole server.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;

use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::process::Child;
use trawl_common::settings::ServerUrl;

use crate::faults::private::{script, until_ok};
use crate::faults::signal::{self, Signal};

/// A running server. It ends when this is dropped.
pub struct OwnRedis {
    /// The URL to connect to.
    pub url: ServerUrl,
    client: redis::Client,
    port: u16,
    server: Child,
    folder: TempDir,
}

impl OwnRedis {
    /// Starts a server, and waits until it answers.
    ///
    /// # Panics
    /// If there is no `redis-server`, or it does not come up.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let client = redis::Client::open(("127.0.0.1", port)).expect("it is an address");
        let url = ServerUrl::new(format!("redis://127.0.0.1:{port}/0"));
        let own = Self { url, client, port, server: launch(port, folder.path()), folder };
        own.answers().await;
        own
    }

    /// Saves all data to disk.
    pub async fn save(&self) {
        let () = self.ask(&redis::cmd("SAVE")).await;
    }

    /// Restarts it after `kill -9`, with the data that was saved last.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn restart(&mut self) {
        self.server.kill().await.expect("it can be killed");
        self.server = launch(self.port, self.folder.path());
        self.answers().await;
    }

    /// Makes it a replica of another one, and waits until it has all that `master` has.
    ///
    /// # Panics
    /// If a server refuses that, or the replica never catches up.
    pub async fn replicate(&self, master: &Self) {
        let () = self.ask(redis::cmd("REPLICAOF").arg("127.0.0.1").arg(master.port)).await;
        let is_up = || async {
            let info: redis::InfoDict = self.ask(redis::cmd("INFO").arg("replication")).await;
            match info.get::<String>("master_link_status").as_deref() {
                Some("up") => Ok(()),
                other => Err(std::io::Error::other(format!("the link is {other:?}"))),
            }
        };
        until_ok(is_up).await.expect("the replica catches up");
    }

    /// Sends its process a signal.
    ///
    /// # Panics
    /// If it has none any more.
    pub async fn signal(&self, signal: Signal) {
        let id = self.server.id().expect("it runs");
        signal::send(id, signal).await.expect("it can be signalled");
    }

    async fn answers(&self) {
        let ping = || async {
            let mut link =
                self.client.get_multiplexed_async_connection().await.map_err(std::io::Error::other)?;
            redis::cmd("PING").query_async::<()>(&mut link).await.map_err(std::io::Error::other)
        };
        until_ok(ping).await.expect("redis-server answers");
    }

    /// Makes it run out of memory.
    pub async fn fill(&self) {
        self.set("maxmemory", "1").await;
    }

    /// Lifts the memory limit.
    pub async fn free_memory(&self) {
        self.set("maxmemory", "0").await;
    }

    /// Changes a setting.
    ///
    /// # Panics
    /// If the server refuses it.
    pub async fn set(&self, name: &str, value: &str) {
        let () = self.ask(redis::cmd("CONFIG").arg("SET").arg(name).arg(value)).await;
    }

    /// Sends a command. Returns the answer.
    ///
    /// # Panics
    /// If the answer is an error.
    pub async fn ask<T: FromRedisValue>(&self, command: &redis::Cmd) -> T {
        let mut link: MultiplexedConnection =
            self.client.get_multiplexed_async_connection().await.expect("the server answers");
        command.query_async(&mut link).await.expect("the server takes it")
    }
}

/// Starts a server with the data in its folder.
fn launch(port: u16, folder: &Path) -> Child {
    let mut command = script(["exec", "redis-server"]);
    command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"]);
    command.arg(folder).stdout(Stdio::null());
    command.spawn().expect("redis-server starts")
}
