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
    /// When it does not start.
    pub async fn start(servers: Arc<PrivateServers>) -> io::Result<Self> {
        let mut database = Self { servers, server: Server::default() };
        database.launch().await?;
        Ok(database)
    }

    /// Where to connect.
    pub fn url(&self) -> ServerUrl {
        ServerUrl::new(format!("postgres://trawl:trawl@{}/postgres", self.servers.database))
    }

    /// Stops it, or lets it run on.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub async fn signal(&self, signal: Signal) -> io::Result<()> {
        self.server.signal(signal).await
    }

    /// `kill -9`.
    ///
    /// # Errors
    /// When the signal cannot be sent.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.server.kill().await
    }

    /// Starts it again with all that it had stored, and waits until it listens.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn launch(&mut self) -> io::Result<()> {
        self.server.start(self.servers.program("postgres"), &self.servers.path("postgres"))?;
        let address = self.servers.database;
        until_ok(|| async move { TcpStream::connect(address).await.map(drop) }).await
    }
}
