//! A Redis for one test alone, whose memory it may bound: that is a setting of the whole server.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;

use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::process::Child;
use trawl_common::settings::ServerUrl;

use crate::faults::private::{script, until_ok};

/// A running server. It ends with this value.
pub struct OwnRedis {
    /// Where to connect.
    pub url: ServerUrl,
    client: redis::Client,
    _server: Child,
    _folder: TempDir,
}

impl OwnRedis {
    /// Starts one, and waits until it answers.
    ///
    /// # Panics
    /// When there is no `redis-server`, or it does not come up.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let mut command = script(["exec", "redis-server"]);
        command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"]);
        command.arg(folder.path()).stdout(Stdio::null());
        let server = command.spawn().expect("redis-server starts");
        let client = redis::Client::open(("127.0.0.1", port)).expect("it is an address");
        let ping = || async {
            let mut link = client.get_multiplexed_async_connection().await.map_err(std::io::Error::other)?;
            redis::cmd("PING").query_async::<()>(&mut link).await.map_err(std::io::Error::other)
        };
        until_ok(ping).await.expect("redis-server answers");
        let url = ServerUrl::new(format!("redis://127.0.0.1:{port}/0"));
        Self { url, client, _server: server, _folder: folder }
    }

    /// Has no memory left from now on.
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
    /// When the server refuses it.
    pub async fn set(&self, name: &str, value: &str) {
        let () = self.ask(redis::cmd("CONFIG").arg("SET").arg(name).arg(value)).await;
    }

    /// What it answers.
    ///
    /// # Panics
    /// When that is an error.
    pub async fn ask<T: FromRedisValue>(&self, command: &redis::Cmd) -> T {
        let mut link: MultiplexedConnection =
            self.client.get_multiplexed_async_connection().await.expect("the server answers");
        command.query_async(&mut link).await.expect("the server takes it")
    }
}
