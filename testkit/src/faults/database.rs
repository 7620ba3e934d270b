//! A PostgreSQL that a test may kill and bring back.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use trawl_common::settings::ServerUrl;

use super::private::{PrivateServers, Server, until_ok};
use super::signal::Signal;

/// A private PostgreSQL.
pub struct Database {
    servers: Arc<PrivateServers>,
    server: Server,
}

impl Database {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start(servers: Arc<PrivateServers>) -> io::Result<Self> {
        let mut database = Self { servers, server: Server::default() };
        database.launch().await?;
        Ok(database)
    }

    /// Returns the URL to connect to.
    pub fn url(&self) -> ServerUrl {
        ServerUrl::new(format!("postgres://trawl:trawl@{}/postgres", self.servers.database))
    }

    /// Stops or continues it.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub async fn signal(&self, signal: Signal) -> io::Result<()> {
        self.server.signal(signal).await
    }

    /// Kills it with `kill -9`.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.server.kill().await
    }

    /// Starts it again with all data that it had stored, and waits until it listens.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn launch(&mut self) -> io::Result<()> {
        self.server.start(self.servers.program("postgres"), &self.servers.path("postgres"))?;
        let address = self.servers.database;
        until_ok(|| async move { TcpStream::connect(address).await.map(drop) }).await
    }
}
