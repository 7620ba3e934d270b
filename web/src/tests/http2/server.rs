//! A server that speaks HTTP/2 over TLS, and sends the same to every client, whatever the request.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::CertifiedKey;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use trawl_common::web::url::CanonicalUrl;

use super::frames::{ACK, HEAD, HEADERS, SETTINGS, frame};

/// Length of the preface of a client (RFC 9113 3.4).
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// The bytes that a server sends on each connection after the first request.
pub(super) struct Script {
    /// Sent once, before the server waits for the client to go.
    pub(super) start: Vec<u8>,
    /// Sent repeatedly without end, unless empty.
    pub(super) again: Vec<u8>,
    /// Whether the server reads the client's replies.
    pub(super) reads: bool,
}

/// A running server.
pub(super) struct Server {
    port: u16,
    counts: Arc<Counts>,
    /// The number of open connections.
    open: watch::Receiver<usize>,
}

#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    asked: AtomicU64,
}

/// A server's certificate, and the trust of its clients.
pub(in crate::tests) struct Identity {
    pub(in crate::tests) acceptor: TlsAcceptor,
    pub(super) verifier: Arc<dyn ServerCertVerifier>,
}

impl Identity {
    pub(super) fn new() -> Self {
        Self::speaking("h2")
    }

    pub(in crate::tests) fn speaking(protocol: &str) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let mut config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let verifier = WebPkiServerVerifier::builder(Arc::new(roots)).build().unwrap();
        Self { acceptor: Arc::new(config).into(), verifier }
    }
}

impl Server {
    pub(super) async fn start(identity: &Identity, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (opened, open) = watch::channel(0);
        let counts = Arc::<Counts>::default();
        let (acceptor, script, counter) = (identity.acceptor.clone(), Arc::new(script), Arc::clone(&counts));
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (acceptor, script) = (acceptor.clone(), Arc::clone(&script));
                let (counter, opened) = (Arc::clone(&counter), opened.clone());
                opened.send_modify(|open| *open += 1);
                tokio::spawn(async move {
                    // A client that goes away ends it.
                    let _ = script.play(&acceptor, connection, &counter).await;
                    opened.send_modify(|open| *open -= 1);
                });
            }
        });
        Self { port, counts, open }
    }

    pub(super) fn url(&self) -> CanonicalUrl {
        format!("https://127.0.0.1:{}/", self.port).parse().unwrap()
    }

    /// The number of bytes sent so far on all connections.
    pub(super) fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    /// The number of requests received.
    pub(super) fn asked(&self) -> u64 {
        self.counts.asked.load(Ordering::Relaxed)
    }

    /// Waits until the client has closed all connections.
    pub(super) async fn wait_until_left(&mut self) {
        self.open.wait_for(|open| *open == 0).await.unwrap();
    }
}

impl Script {
    async fn play(&self, acceptor: &TlsAcceptor, connection: TcpStream, counts: &Counts) -> io::Result<()> {
        // A paused clock does not wait for data that the kernel holds back for an acknowledgement.
        connection.set_nodelay(true)?;
        let (mut from, mut to) = tokio::io::split(acceptor.accept(connection).await?);
        to.write_all(&frame(SETTINGS, 0, 0, [])).await?;
        to.flush().await?;
        read_request(&mut from).await?;
        counts.asked.fetch_add(1, Ordering::Relaxed);
        let write = async {
            // From now on the client's limits apply.
            to.write_all(&frame(SETTINGS, ACK, 0, [])).await?;
            for part in self.start.chunks(64 * 1024) {
                to.write_all(part).await?;
                counts.sent.fetch_add(part.len() as u64, Ordering::Relaxed);
            }
            to.flush().await?;
            while !self.again.is_empty() {
                to.write_all(&self.again).await?;
                counts.sent.fetch_add(self.again.len() as u64, Ordering::Relaxed);
            }
            std::future::pending().await
        };
        let read = async {
            if self.reads {
                tokio::io::copy(&mut from, &mut tokio::io::sink()).await
            } else {
                std::future::pending().await
            }
        };
        tokio::select! {
            end = write => end,
            end = read => end.map(drop),
        }
    }
}

/// Reads up to the end of a request without a body.
async fn read_request(from: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    from.read_exact(&mut [0; PREFACE]).await?;
    loop {
        let mut head = [0; HEAD];
        from.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        from.read_exact(&mut vec![0; length as usize]).await?;
        if head[3] == HEADERS {
            return Ok(());
        }
    }
}
