//! A Redis for one test alone, whose memory it may bound: that is a setting of the whole server.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
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
    port: u16,
    server: Child,
    folder: TempDir,
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
        let client = redis::Client::open(("127.0.0.1", port)).expect("it is an address");
        let url = ServerUrl::new(format!("redis://127.0.0.1:{port}/0"));
        let own = Self { url, client, port, server: launch(port, folder.path()), folder };
        own.answers().await;
        own
    }

    /// Writes all that it has to its disk.
    pub async fn save(&self) {
        let () = self.ask(&redis::cmd("SAVE")).await;
    }

    /// `kill -9`; a restart with what was saved last.
    ///
    /// # Panics
    /// As [`Self::start`].
    pub async fn restart(&mut self) {
        self.server.kill().await.expect("it can be killed");
        self.server = launch(self.port, self.folder.path());
        self.answers().await;
    }

    async fn answers(&self) {
        let ping = || async {
            let mut link =
                self.client.get_multiplexed_async_connection().await.map_err(std::io::Error::other)?;
            redis::cmd("PING").query_async::<()>(&mut link).await.map_err(std::io::Error::other)
        };
        until_ok(ping).await.expect("redis-server answers");
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

/// Starts a server with what is in its folder.
fn launch(port: u16, folder: &Path) -> Child {
    let mut command = script(["exec", "redis-server"]);
    command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"]);
    command.arg(folder).stdout(Stdio::null());
    command.spawn().expect("redis-server starts")
}
