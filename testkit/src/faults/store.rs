//! A Redis that loses data on command.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, timeout};

use super::private::{PrivateServers, Server, until_ok};
use super::signal::Signal;

/// The end of an append-only file that a power cut may destroy if it is synced each second.
pub const UNSYNCED: Duration = Duration::from_secs(1);

/// A private Redis with an append-only file.
pub struct Store {
    servers: Arc<PrivateServers>,
    server: Server,
    file: Watched,
}

impl Store {
    /// Starts it, and waits until it answers.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start(servers: Arc<PrivateServers>) -> io::Result<Self> {
        let file = Watched::new(servers.path("redis/appendonlydir"));
        let mut store = Self { servers, server: Server::default(), file };
        store.launch().await?;
        Ok(store)
    }

    async fn launch(&mut self) -> io::Result<()> {
        let mut command = self.servers.program("redis-server");
        command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--aof-load-truncated", "yes"]);
        // One file that only grows, so that its end was written last.
        command.args(["--auto-aof-rewrite-percentage", "0"]);
        self.server.start(command, &self.servers.path("redis"))?;
        let address = self.servers.store;
        until_ok(|| async move { send(address, "PING").await }).await.map(drop)
    }

    /// Restarts it after `kill -9`, with all data that it had written.
    pub async fn restart(&mut self) -> io::Result<()> {
        self.server.kill().await?;
        self.launch().await
    }

    /// Restarts it after `kill -9`, without the data that it wrote in the last [`UNSYNCED`].
    pub async fn restart_truncated(&mut self) -> io::Result<()> {
        let size = self.file.size_before(UNSYNCED);
        self.server.kill().await?;
        if let (Some(path), Some(size)) = (self.file.path(), size) {
            File::options().write(true).open(path)?.set_len(size)?;
        }
        self.launch().await
    }

    /// Restarts it after `kill -9`, empty.
    pub async fn restart_emptied(&mut self) -> io::Result<()> {
        self.server.kill().await?;
        fs::remove_dir_all(self.servers.path("redis/appendonlydir"))?;
        self.launch().await
    }

    /// Runs `FLUSHALL`.
    pub async fn flush(&self) -> io::Result<()> {
        send(self.servers.store, "FLUSHALL").await.map(drop)
    }

    /// Makes it refuse every write, or accept them again.
    pub async fn full(&self, full: bool) -> io::Result<()> {
        let most = if full { 1 } else { 0 };
        send(self.servers.store, &format!("CONFIG SET maxmemory {most}")).await.map(drop)
    }

    /// Stops or continues it.
    pub async fn signal(&self, signal: Signal) -> io::Result<()> {
        self.server.signal(signal).await
    }
}

/// Sends one inline command. Returns the first line of the answer.
async fn send(address: SocketAddr, command: &str) -> io::Result<String> {
    let asked = async {
        let mut stream = BufReader::new(TcpStream::connect(address).await?);
        stream.write_all(format!("{command}\r\n").as_bytes()).await?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await?;
        if answer.starts_with('+') {
            Ok(answer)
        } else {
            Err(io::Error::other(format!("{command}: {answer}")))
        }
    };
    timeout(Duration::from_secs(10), asked).await?
}

/// The append-only file, with its recent sizes.
struct Watched {
    folder: PathBuf,
    sizes: Arc<Mutex<VecDeque<(Instant, u64)>>>,
    watching: JoinHandle<()>,
}

impl Watched {
    fn new(folder: PathBuf) -> Self {
        let sizes = Arc::default();
        let watching = tokio::spawn(watch(folder.clone(), Arc::clone(&sizes)));
        Self { folder, sizes, watching }
    }

    fn path(&self) -> Option<PathBuf> {
        incremental(&self.folder)
    }

    /// Returns its size at this time in the past, or the earliest known.
    fn size_before(&self, ago: Duration) -> Option<u64> {
        let sizes = self.sizes.lock();
        let then = Instant::now().checked_sub(ago)?;
        let before = sizes.iter().rev().find(|(at, _)| *at <= then).or(sizes.front());
        before.map(|(_, size)| *size)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

async fn watch(folder: PathBuf, sizes: Arc<Mutex<VecDeque<(Instant, u64)>>>) {
    let mut ticks = interval(Duration::from_millis(50));
    loop {
        ticks.tick().await;
        let size = incremental(&folder).and_then(|path| path.metadata().ok()).map_or(0, |data| data.len());
        let mut sizes = sizes.lock();
        // A file that shrank is a new one: the sizes of the old one are void.
        if sizes.back().is_some_and(|(_, last)| *last > size) {
            sizes.clear();
        }
        sizes.push_back((Instant::now(), size));
        while sizes.len() > 100 {
            sizes.pop_front();
        }
    }
}

fn incremental(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.filter(|path| path.to_string_lossy().ends_with(".incr.aof")).max()
}
