//! A RabbitMQ that loses data on command.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::private::{PrivateServers, Server, output, until_ok};
use super::signal::Signal;

/// The queues that URLs and tasks wait in. The fleet can recover their contents; the dead letters in `failed_urls` are
/// only for readers.
pub const QUEUES: [&str; 9] = [
    "task_queue",
    "url_queue_ttl",
    "priority_queue",
    "due_queue",
    "expired_urls",
    "wait.1",
    "wait.3",
    "wait.10",
    "wait.30",
];

/// A private RabbitMQ.
pub struct Broker {
    servers: Arc<PrivateServers>,
    server: Server,
    client: Client,
}

impl Broker {
    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start(servers: Arc<PrivateServers>) -> io::Result<Self> {
        // Every suite of the process installs it; only the first succeeds.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(10)).build();
        let mut broker =
            Self { servers, server: Server::default(), client: client.map_err(io::Error::other)? };
        broker.launch().await?;
        Ok(broker)
    }

    async fn launch(&mut self) -> io::Result<()> {
        let command = self.servers.program("rabbitmq-server");
        self.server.start(command, &self.servers.path("rabbitmq"))?;
        let address = self.servers.broker;
        until_ok(|| greet(address)).await
    }

    /// Restarts it after `kill -9`, with all data that it had confirmed.
    pub async fn restart(&mut self) -> io::Result<()> {
        self.server.kill().await?;
        self.launch().await
    }

    /// Restarts it after `kill -9`, with an empty disk.
    pub async fn restart_emptied(&mut self) -> io::Result<()> {
        self.server.kill().await?;
        fs::remove_dir_all(self.servers.path("rabbitmq/data"))?;
        self.launch().await
    }

    /// Purges each of [`QUEUES`].
    pub async fn purge(&self) -> io::Result<()> {
        for queue in QUEUES {
            self.order(Method::DELETE, &format!("queues/%2F/{queue}/contents"), "").await?;
        }
        Ok(())
    }

    /// Deletes one of [`QUEUES`].
    pub async fn delete_queue(&self, queue: &str) -> io::Result<()> {
        self.order(Method::DELETE, &format!("queues/%2F/{queue}"), "").await
    }

    /// Drops messages that are redelivered more often than `most`; `None` restores the limits that the queues were
    /// declared with.
    pub async fn limit_deliveries(&self, most: Option<u32>) -> io::Result<()> {
        const POLICY: &str = "policies/%2F/fault-suite";
        match most {
            None => self.order(Method::DELETE, POLICY, "").await,
            Some(most) => {
                let policy = json!({ "pattern": ".*", "apply-to": "queues", "definition": { "delivery-limit": most } });
                self.order(Method::PUT, POLICY, &policy.to_string()).await
            }
        }
    }

    /// Raises or clears the memory alarm.
    pub async fn alarm(&self, on: bool) -> io::Result<()> {
        // A node that is slow to answer refuses the command's connection.
        until_ok(|| {
            let mut command = self.servers.program("rabbitmqctl");
            command.args(["set_vm_memory_high_watermark", if on { "0.0000001" } else { "0.4" }]);
            async { output(command).await.map(drop) }
        })
        .await
    }

    /// Stops or continues it.
    pub async fn signal(&self, signal: Signal) -> io::Result<()> {
        self.server.signal(signal).await
    }

    /// Calls the management API.
    async fn order(&self, method: Method, path: &str, body: &str) -> io::Result<()> {
        let url = format!("http://{}/api/{path}", self.servers.management);
        let call = || async {
            let request = self.client.request(method.clone(), &url).basic_auth("guest", Some("guest"));
            let answer = request.body(body.to_owned()).send().await.map_err(io::Error::other)?;
            // A missing object is as good as deleted.
            let done = answer.status().is_success() || answer.status().as_u16() == 404;
            if done { Ok(()) } else { Err(io::Error::other(format!("{url}: {}", answer.status()))) }
        };
        // The management API comes up after the broker.
        until_ok(call).await
    }
}

/// Checks that the broker answers a greeting. A listening port is not enough: it may not be ready.
async fn greet(address: SocketAddr) -> io::Result<()> {
    let greeted = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"AMQP\x00\x00\x09\x01").await?;
        stream.read_u8().await.map(drop)
    };
    timeout(Duration::from_secs(5), greeted).await?
}
