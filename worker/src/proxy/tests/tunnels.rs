//! Tests of tunnels, whose content cannot be seen.

use std::net::SocketAddr;
use std::sync::Mutex;

use rcgen::CertifiedKey;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

/// A server that answers each request on a connection, over TLS, and records when it came.
struct Secure {
    address: SocketAddr,
    roots: RootCertStore,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Secure {
    async fn serve() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
        let (acceptor, mut roots) = (TlsAcceptor::from(Arc::new(config)), RootCertStore::empty());
        roots.add(cert.der().clone()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, asked) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<Instant>>>::default());
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, log) = (acceptor.clone(), Arc::clone(&log));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(acceptor.accept(stream).await?);
                    let mut line = String::new();
                    while stream.read_line(&mut line).await? > 0 {
                        if line == "\r\n" {
                            log.lock().unwrap().push(Instant::now());
                            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
                        }
                        line.clear();
                    }
                    std::io::Result::Ok(())
                });
            }
        });
        Self { address, roots, asked }
    }

    /// Sends this many requests on one connection through the proxy.
    async fn ask(&self, run: &Admitted, version: &'static SupportedProtocolVersion, times: usize) {
        let mut tunnel = BufReader::new(run.connect().await);
        tunnel.write_all(run.head(&format!("CONNECT {}", self.address)).as_bytes()).await.unwrap();
        assert_eq!(read(&mut tunnel).await.status, 200);
        let config = ClientConfig::builder_with_protocol_versions(&[version]);
        let config = config.with_root_certificates(self.roots.clone()).with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let secure = connector.connect("127.0.0.1".try_into().unwrap(), tunnel).await.unwrap();
        let mut secure = BufReader::new(secure);
        for _ in 0..times {
            let request = b"GET /some/page HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: test\r\n\r\n";
            secure.write_all(request).await.unwrap();
            secure.flush().await.unwrap();
            assert_eq!(read(&mut secure).await.body, "ok");
        }
    }
}

#[tokio::test]
async fn each_request_on_a_connection_over_tls_waits_for_a_slot() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (site, fixture) = (
            Secure::serve().await,
            Fixture::new(|settings| settings.politeness.rate = "10/s".parse().unwrap()),
        );
        let (run, begun) = (fixture.run(), Instant::now());
        timeout(LIMIT, site.ask(&run, version, 5)).await.unwrap();
        let asked = site.asked.lock().unwrap().clone();
        let took = asked[4] - asked[0];
        assert!(took >= Duration::from_millis(4 * 100 * 7 / 8), "{version:?}: {took:?}");
        assert!(begun.elapsed() < Duration::from_secs(3), "no slot is waited for without a request");
        fixture.proxy.end().await;
    }
}

#[tokio::test]
async fn a_tunnel_that_is_idle_has_nothing_in_flight() {
    let (site, fixture) =
        (Secure::serve().await, Fixture::new(|settings| settings.politeness.rate = "10/s".parse().unwrap()));
    let run = fixture.run();
    let mut tunnel = BufReader::new(run.connect().await);
    tunnel.write_all(run.head(&format!("CONNECT {}", site.address)).as_bytes()).await.unwrap();
    assert_eq!(read(&mut tunnel).await.status, 200);
    assert_eq!(fixture.requests_under_way("127.0.0.1").await, 1);
    // Data that is not a handshake is answered by an alert.
    tunnel.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let idle = async {
        while fixture.requests_under_way("127.0.0.1").await > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, idle).await.unwrap();
}

#[tokio::test]
async fn a_tunnel_leads_to_an_address_of_ipv6() {
    let listener = TcpListener::bind("[::1]:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let fixture = Fixture::new(|_| {});
    let run = fixture.run();
    let mut tunnel = BufReader::new(run.connect().await);
    tunnel.write_all(run.head(&format!("CONNECT {address}")).as_bytes()).await.unwrap();
    let (accepted, opened) = tokio::join!(listener.accept(), read(&mut tunnel));
    assert_eq!(opened.status, 200);
    let mut host = accepted.unwrap().0;
    host.write_all(b"hello").await.unwrap();
    drop(host);
    let mut said = String::new();
    timeout(LIMIT, tunnel.read_to_string(&mut said)).await.unwrap().unwrap();
    assert_eq!(said, "hello");
}
