//! A TCP proxy that can cut its connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The behaviour of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Passes everything on.
    Pass,
    /// Closes every new connection at once.
    Refuse,
    /// Accepts connections, and passes nothing on in either direction.
    Swallow,
}

#[derive(Clone, Copy)]
struct State {
    mode: Mode,
    /// Connections of a lower age are closed.
    age: u64,
}

/// A proxy in front of one server. Ends when dropped.
pub struct Proxy {
    /// The address that it listens on.
    pub address: SocketAddr,
    state: watch::Sender<State>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port, for the server at `to`.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = watch::Sender::new(State { mode: Mode::Pass, age: 0 });
        let accepting = tokio::spawn(accept(listener, to, state.subscribe()));
        Ok(Self { address, state, accepting })
    }

    /// Closes every open connection.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.age += 1);
    }

    /// Changes the behaviour, for open connections too; [`Mode::Refuse`] leaves those alone.
    pub fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, to: SocketAddr, state: watch::Receiver<State>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        if state.borrow().mode != Mode::Refuse {
            tokio::spawn(connect(client, to, state.clone()));
        }
    }
}

async fn connect(client: TcpStream, to: SocketAddr, mut state: watch::Receiver<State>) {
    let age = state.borrow().age;
    let ages = state.clone();
    let passed = async {
        let _ = state.wait_for(|state| state.mode != Mode::Swallow).await;
        // A server that is away closes the connection, as it would without a proxy.
        let server = TcpStream::connect(to).await?;
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (client_in, client_out) = client.into_split();
        let (server_in, server_out) = server.into_split();
        tokio::try_join!(pass(client_in, server_out, state.clone()), pass(server_in, client_out, state))
    };
    tokio::select! {
        _ = passed => {}
        () = wait_until_older(ages, age) => {}
    }
}

async fn wait_until_older(mut state: watch::Receiver<State>, age: u64) {
    let _ = state.wait_for(|state| state.age > age).await;
}

/// Passes one direction on until its end; data that comes while the proxy swallows waits here.
async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut state: watch::Receiver<State>,
) -> io::Result<()> {
    let mut block = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut block).await?;
        let _ = state.wait_for(|state| state.mode != Mode::Swallow).await;
        if read == 0 {
            // The other side ends too: neither protocol uses half-open connections.
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        to.write_all(&block[..read]).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// Returns a proxy before a server that echoes what it receives.
    async fn echo() -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    let _ = tokio::io::copy(&mut from, &mut to).await;
                });
            }
        });
        Proxy::start(address).await.unwrap()
    }

    async fn echoes(stream: &mut TcpStream) -> bool {
        let mut byte = [0];
        stream.write_all(b"x").await.is_ok() && stream.read_exact(&mut byte).await.is_ok()
    }

    #[tokio::test]
    async fn a_cut_ends_open_connections_and_new_ones_pass() {
        let proxy = echo().await;
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        assert!(echoes(&mut stream).await);
        proxy.cut();
        assert!(!echoes(&mut stream).await);
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        assert!(echoes(&mut stream).await);
    }

    #[tokio::test]
    async fn what_is_swallowed_arrives_later_and_refused_connections_end() {
        let proxy = echo().await;
        let mut stream = TcpStream::connect(proxy.address).await.unwrap();
        assert!(echoes(&mut stream).await);
        proxy.set(Mode::Swallow);
        assert!(timeout(Duration::from_millis(100), echoes(&mut stream)).await.is_err());
        proxy.set(Mode::Refuse);
        let mut refused = TcpStream::connect(proxy.address).await.unwrap();
        assert!(!echoes(&mut refused).await);
        proxy.set(Mode::Pass);
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
    }
}
