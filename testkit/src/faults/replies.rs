//! A TCP proxy in front of Redis that loses one reply: the command is carried out, and its connection is cut before the
//! reply arrives.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use trawl_common::settings::ServerUrl;

/// A proxy in front of one server. It ends when dropped, its connections with the test's runtime.
pub struct ReplyLoser {
    /// The address that it listens on.
    pub address: SocketAddr,
    count: Arc<Count>,
    accepting: JoinHandle<()>,
}

/// The count of replies on all connections.
#[derive(Default)]
struct Count {
    passed: AtomicU64,
    /// The number of the reply to lose; none if 0.
    lost: AtomicU64,
}

impl ReplyLoser {
    /// Listens on a free port, for the Redis at `to`.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let count = Arc::new(Count::default());
        let accepting = tokio::spawn(accept(listener, to, Arc::clone(&count)));
        Ok(Self { address, count, accepting })
    }

    /// Listens on a free port, for the Redis at `url`. Returns its URL here, too.
    ///
    /// # Errors
    /// If no port is free, or the URL is no `redis://<address>/<database>`.
    pub async fn in_front_of(url: &ServerUrl) -> io::Result<(Self, ServerUrl)> {
        let server = url.reveal().strip_prefix("redis://").and_then(|rest| rest.split_once('/'));
        let (address, database) = server.ok_or_else(|| io::Error::other("no address and database"))?;
        let proxy = Self::start(address.parse().map_err(io::Error::other)?).await?;
        let url = ServerUrl::new(format!("redis://{}/{database}", proxy.address));
        Ok((proxy, url))
    }

    /// Starts counting again, and loses the reply with this number; none if it is 0.
    pub fn lose(&self, number: u64) {
        self.count.passed.store(0, Ordering::Relaxed);
        self.count.lost.store(number, Ordering::Relaxed);
    }

    /// Returns the number of replies since then, including the lost one.
    pub fn passed(&self) -> u64 {
        self.count.passed.load(Ordering::Relaxed)
    }
}

impl Drop for ReplyLoser {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, to: SocketAddr, count: Arc<Count>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        tokio::spawn(connect(client, to, Arc::clone(&count)));
    }
}

async fn connect(client: TcpStream, to: SocketAddr, count: Arc<Count>) -> io::Result<()> {
    let server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut client_in, client_out) = client.into_split();
    let (server_in, mut server_out) = server.into_split();
    // When one end closes, so does the other.
    tokio::select! {
        sent = tokio::io::copy(&mut client_in, &mut server_out) => sent.map(drop),
        ended = replies(server_in, client_out, &count) => ended,
    }
}

/// Passes replies on, one after the other, until the one to lose.
async fn replies(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    count: &Count,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while from.read_buf(&mut buffer).await? > 0 {
        while let Some(length) = reply_length(&buffer) {
            let number = count.passed.fetch_add(1, Ordering::Relaxed) + 1;
            if number == count.lost.load(Ordering::Relaxed) {
                return Ok(());
            }
            to.write_all(&buffer[..length]).await?;
            buffer.drain(..length);
        }
    }
    Ok(())
}

/// Returns the length of the first reply, in RESP2, or `None` if it is not complete yet.
fn reply_length(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let number = || std::str::from_utf8(&bytes[1..line - 2]).ok()?.parse::<i64>().ok();
    match bytes[0] {
        b'$' => {
            // A negative length means a null value.
            let length = line + usize::try_from(number()?).map_or(0, |length| length + 2);
            (bytes.len() >= length).then_some(length)
        }
        b'*' => {
            let mut length = line;
            for _ in 0..number()?.max(0) {
                length += reply_length(&bytes[length..])?;
            }
            Some(length)
        }
        _ => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_each_reply_is_found() {
        let all: [&[u8]; 6] = [
            b"+OK\r\n",
            b":12\r\n",
            b"$-1\r\n",
            b"$4\r\na\r\nb\r\n",
            b"*-1\r\n",
            b"*3\r\n:1\r\n*2\r\n$1\r\nx\r\n$0\r\n\r\n-ERR no\r\n",
        ];
        let mut stream = all.concat();
        for reply in all {
            assert_eq!(reply_length(&stream), Some(reply.len()));
            assert_eq!(reply_length(&stream[..reply.len() - 1]), None);
            stream.drain(..reply.len());
        }
    }
}
