//! Requests through a proxy, which may have any address; the target may not.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use trawl_common::frontier::outcome::Class;
use trawl_common::settings::{Fetch, Items, ServerUrl};
use trawl_common::spider::{Proxies, ProxyPer, Spider};
use trawl_testkit::attacks::Section;
use trawl_web::Fetcher;

use crate::{fetcher, page, server, shown};

const PRIVATE: &str = "forbidden: is not a public address";

const PRIVATE_NAME: &str = "forbidden: is not a public name";

/// A proxy that fetches nothing: it records the request line and the credentials, and answers itself.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let log = Arc::clone(&log);
                // A client that closes the connection ends it.
                tokio::spawn(async move { serve(connection, &log).await });
            }
        });
        Self { port, asked }
    }

    fn fetcher(&self, scheme: &str, host: &str) -> Fetcher {
        let url = format!("{scheme}://trawl:s3cret@{host}:{}", self.port);
        fetcher(&Fetch { proxy: Some(ServerUrl::new(url)), ..Fetch::default() })
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

async fn serve(connection: TcpStream, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut connection = BufReader::new(connection);
    if connection.fill_buf().await?.first() == Some(&5) {
        let target = socks5(&mut connection).await?;
        log.lock().unwrap().push(target);
    }
    let (mut request, mut credentials) = (String::new(), String::new());
    if connection.read_line(&mut request).await? == 0 {
        // Only a check whether the proxy is reachable.
        return Ok(());
    }
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await?;
        if line.to_ascii_lowercase().starts_with("proxy-authorization") {
            credentials = line.split_once(':').unwrap().1.trim().to_owned();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let asked = format!("{} {credentials}", request.trim());
    log.lock().unwrap().push(asked.trim().to_owned());
    let answer = if request.starts_with("CONNECT 8.8.4.4:") {
        "HTTP/1.1 200 OK\r\n\r\n".to_owned()
    } else if request.contains("9.9.9.9") {
        server::head(407, "")
    } else if request.starts_with("CONNECT") {
        server::head(403, "")
    } else if request.contains("/redirect") {
        server::head(302, "location: http://10.0.0.1/")
    } else {
        server::head(200, "") + "through the proxy"
    };
    connection.write_all(answer.as_bytes()).await
}

/// The handshake of RFC 1928 and RFC 1929; returns the target.
async fn socks5(connection: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut greeting = [0; 2];
    connection.read_exact(&mut greeting).await?;
    let mut methods = vec![0; greeting[1].into()];
    connection.read_exact(&mut methods).await?;
    connection.write_all(&[5, 2]).await?;
    let mut login = [0; 1 + 1 + "trawl".len() + 1 + "s3cret".len()];
    connection.read_exact(&mut login).await?;
    connection.write_all(&[1, 0]).await?;
    let mut target = [0; 10];
    connection.read_exact(&mut target).await?;
    connection.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    let [_, _, _, _, a, b, c, d, high, low] = target;
    Ok(format!("{a}.{b}.{c}.{d}:{}", u16::from_be_bytes([high, low])))
}

#[tokio::test]
async fn a_proxy_is_asked_for_what_may_be_asked_and_nothing_else() {
    let proxy = Proxy::start().await;
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Proxies");
    let own = format!("http://localhost:{}/", proxy.port);
    let (http, socks) = (proxy.fetcher("http", "localhost"), proxy.fetcher("socks5", "localhost"));
    for (fetcher, attack, url, gets, asks) in [
        (
            &http,
            "a page: honest",
            "http://8.8.8.8/",
            "page: through the proxy",
            &["GET http://8.8.8.8/ HTTP/1.1 Basic dHJhd2w6czNjcmV0"][..],
        ),
        (
            &http,
            "a page by TLS, which the proxy refuses",
            "https://8.8.8.8/",
            "connect: unsuccessful",
            &["CONNECT 8.8.8.8:443 HTTP/1.1 Basic dHJhd2w6czNjcmV0"],
        ),
        (&http, "a private address", "http://10.0.0.1/", PRIVATE, &[]),
        (&http, "a private address by TLS", "https://[::1]/", PRIVATE, &[]),
        (&http, "a name of a private network", "http://localhost/", PRIVATE_NAME, &[]),
        (&http, "the proxy itself", &own, PRIVATE_NAME, &[]),
        (&http, "a port that may not be asked", "http://8.8.8.8:22/", "forbidden: port 22", &[]),
        (
            &http,
            "a redirect to a private address",
            "http://8.8.8.8/redirect",
            PRIVATE,
            &["GET http://8.8.8.8/redirect HTTP/1.1 Basic dHJhd2w6czNjcmV0"],
        ),
        (
            &socks,
            "a page by SOCKS: honest",
            "http://8.8.8.8/",
            "page: through the proxy",
            &["8.8.8.8:80", "GET / HTTP/1.1"],
        ),
        (&socks, "a private address by SOCKS", "http://10.0.0.1/", PRIVATE, &[]),
        (&socks, "the proxy itself by SOCKS", &own, PRIVATE, &[]),
    ] {
        let got = page(fetcher, &url.parse().unwrap()).await;
        assert!(!format!("{got:?}").contains("s3cret"), "{attack}: {got:?}");
        assert_eq!(proxy.asked(), asks, "{attack}");
        section.tried(attack, gets, &shown(got));
    }
    section.check();
}

/// The connections that a worker's own proxy tunnels for programs.
#[tokio::test]
async fn a_connection_for_others_goes_through_the_proxy_to_where_it_may_go() {
    let proxy = Proxy::start().await;
    let login = "HTTP/1.1 Basic dHJhd2w6czNjcmV0";
    let (connected, refused) =
        (format!("CONNECT 8.8.4.4:443 {login}"), format!("CONNECT 8.8.8.8:8443 {login}"));
    for (scheme, url, asks, gets) in [
        ("http", "https://8.8.4.4/", &[&*connected][..], None),
        ("http", "https://8.8.8.8:8443/", &[&refused], Some(Class::Connect)),
        ("http", "https://10.0.0.1/", &[], Some(Class::Forbidden)),
        ("http", "https://localhost/", &[], Some(Class::Forbidden)),
        ("socks5", "https://8.8.8.8/", &["8.8.8.8:443", "GET / HTTP/1.1"], None),
        ("socks5", "https://localhost/", &[], Some(Class::Forbidden)),
    ] {
        let passage = proxy.fetcher(scheme, "localhost").passage().unwrap();
        let got = match passage.connect(&url.parse().unwrap()).await {
            Ok(mut stream) if scheme == "socks5" => {
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
                stream.read_to_end(&mut Vec::new()).await.unwrap();
                None
            }
            got => got.err().map(|failure| failure.class),
        };
        assert_eq!((proxy.asked(), got), (asks.iter().map(ToString::to_string).collect(), gets), "{url}");
    }
    let request = hyper::Request::get("http://8.8.8.8/").body(String::new()).unwrap();
    let passed = proxy.fetcher("http", "localhost").passage().unwrap().send(request).await.unwrap();
    assert_eq!(passed.response.status(), 200);
    assert_eq!(proxy.asked(), ["GET http://8.8.8.8/ HTTP/1.1 Basic dHJhd2w6czNjcmV0"]);
}

#[tokio::test]
async fn a_proxy_that_is_away_is_named_and_no_host_is_blamed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "socks5"] {
        let proxy = Some(ServerUrl::new(format!("{scheme}://trawl:s3cret@{address}")));
        let fetcher = fetcher(&Fetch { proxy, ..Fetch::default() });
        for url in ["http://8.8.8.8/", "https://8.8.8.8/"] {
            let failure = fetcher.fetch(&url.parse().unwrap()).await.unwrap_err();
            let named = format!("no connection to the proxy {scheme}://{address}: ");
            assert!(failure.class == Class::Proxy && failure.detail.starts_with(&named), "{failure}");
        }
    }
}

#[tokio::test]
async fn a_proxy_that_refuses_its_user_is_to_blame_and_not_the_host() {
    let proxy = Proxy::start().await;
    for url in ["http://9.9.9.9/", "https://9.9.9.9/"] {
        let failure = proxy.fetcher("http", "127.0.0.1").fetch(&url.parse().unwrap()).await.unwrap_err();
        let said = format!("the proxy http://127.0.0.1:{} refuses this user or password (407)", proxy.port);
        assert_eq!((failure.class, failure.detail), (Class::Proxy, said), "{url}");
    }
}

#[tokio::test]
async fn requests_of_a_program_take_each_proxy_in_turn_however_often_they_are_checked_before() {
    let proxies = [Proxy::start().await, Proxy::start().await];
    let urls =
        proxies.iter().map(|proxy| ServerUrl::new(format!("http://127.0.0.1:{}", proxy.port))).collect();
    let spider = Spider::without_file("shop".parse().unwrap(), &Items::default());
    let spider = Spider { proxies: Some(Proxies { urls, per: ProxyPer::Request }), ..spider };
    let passage = Fetcher::from_spider(&spider, &Fetch::default()).unwrap().passage().unwrap();
    for _ in 0..4 {
        passage.may_ask(&"http://8.8.8.8/".parse().unwrap()).await.unwrap();
        let request = hyper::Request::get("http://8.8.8.8/").body(String::new()).unwrap();
        assert!(passage.send(request).await.is_ok());
    }
    assert_eq!(proxies.map(|proxy| proxy.asked().len()), [2, 2]);
}

#[tokio::test]
async fn the_password_of_a_proxy_shows_nowhere() {
    let proxy = Proxy::start().await;
    for scheme in ["http", "socks5"] {
        let shown = format!("{:?}", proxy.fetcher(scheme, "127.0.0.1"));
        assert!(!shown.contains("s3cret") && !shown.contains("dHJhd2w6czNjcmV0"), "{shown}");
    }
}
