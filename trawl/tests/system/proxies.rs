//! Requests through several proxies: one process, no server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::support::items_in;
use crate::support::workspace::Workspace;

const LIMIT: Duration = Duration::from_secs(60);

const HOSTS: usize = 20;

/// The number of a proxy that refuses its user.
const REFUSING: usize = 9;

/// The requests that proxies were sent: the host and path of each, by the number of the proxy.
type Asked = Arc<Mutex<Vec<(usize, String, String)>>>;

/// Answers requests as a proxy that fetches nothing.
async fn serve(listener: TcpListener, number: usize, asked: Asked) {
    let router = Router::new().fallback(answer).with_state((number, asked));
    axum::serve(listener, router).await.unwrap();
}

async fn answer(State((number, asked)): State<(usize, Asked)>, request: Request) -> Response {
    let (host, path) = (request.uri().host().unwrap_or_default(), request.uri().path());
    if number == REFUSING {
        return StatusCode::PROXY_AUTHENTICATION_REQUIRED.into_response();
    }
    asked.lock().unwrap().push((number, host.to_owned(), path.to_owned()));
    match path {
        "/robots.txt" => StatusCode::NOT_FOUND.into_response(),
        _ => Html(format!("<title>{number}</title>")).into_response(),
    }
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// Returns a folder with a spider whose requests for two pages of each host go through proxies at these ports.
fn folder(ports: &[u16], rest: &str) -> Workspace {
    let pages = (0..2 * HOSTS).map(|n| format!("http://h{}.trawl-test.org/{}", n % HOSTS, n / HOSTS));
    let urls = ports.iter().map(|port| format!("http://me:s3cret@127.0.0.1:{port}"));
    let (pages, urls) = (pages.collect::<Vec<_>>(), urls.collect::<Vec<_>>());
    let text = format!(
        "start.urls = {pages:?}\nfields = {{ by = 'title' }}\nproxies = {{ urls = {urls:?}{rest} }}\n"
    );
    Workspace::new("shop.toml", &text, &[], &[])
}

/// Returns the proxies that were asked for each host.
fn by_host(asked: &Asked) -> BTreeMap<String, BTreeSet<usize>> {
    let mut by_host: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (number, host, _) in asked.lock().unwrap().iter() {
        by_host.entry(host.clone()).or_default().insert(*number);
    }
    by_host
}

#[tokio::test]
async fn hosts_are_divided_among_the_proxies_and_each_is_asked_through_one() {
    let (asked, [a, b]) = (Asked::default(), [listen().await, listen().await]);
    let folder = folder(&[a.1, b.1], "");
    tokio::spawn(serve(a.0, 0, Arc::clone(&asked)));
    tokio::spawn(serve(b.0, 1, Arc::clone(&asked)));
    let crawl = folder.crawl().await;
    assert_eq!((crawl.code, &crawl.stats["done"]), (Some(0), &json!(2 * HOSTS)), "{}", crawl.log);
    let by_host = by_host(&asked);
    assert_eq!(by_host.len(), HOSTS);
    assert!(by_host.values().all(|proxies| proxies.len() == 1), "robots.txt included: {by_host:?}");
    assert_eq!(by_host.into_values().flatten().collect::<BTreeSet<_>>(), BTreeSet::from([0, 1]));
    let shown = folder.run(&["spider", "check", "shop.toml"]).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("through 2 proxies, the same for a host"), "{shown}");
    assert!(!(crawl.log + &shown).contains("s3cret"));
}

#[tokio::test]
async fn a_proxy_that_is_away_costs_neither_pages_nor_retries() {
    let (asked, up, away) = (Asked::default(), listen().await, listen().await);
    let folder = folder(&[away.1, up.1], "");
    drop(away.0);
    tokio::spawn(serve(up.0, 1, Arc::clone(&asked)));
    let crawl = folder.crawl().await;
    assert_eq!((crawl.code, &crawl.stats["done"]), (Some(0), &json!(2 * HOSTS)), "{}", crawl.log);
    assert!(crawl.log.contains("no request goes through this proxy for 10s"), "{}", crawl.log);
    assert!(crawl.items.iter().all(|item| item["fields"]["by"] == "1"));
    let asked = asked.lock().unwrap();
    let pages = asked.iter().filter(|(_, _, path)| path != "/robots.txt").count();
    assert_eq!(pages, 2 * HOSTS, "each once");
    assert!(!crawl.log.contains("s3cret"), "{}", crawl.log);
}

#[tokio::test]
async fn a_proxy_that_refuses_its_user_or_answers_nothing_is_left_alone() {
    let (asked, up, refusing, silent) = (Asked::default(), listen().await, listen().await, listen().await);
    tokio::spawn(serve(up.0, 1, Arc::clone(&asked)));
    tokio::spawn(serve(refusing.0, REFUSING, Arc::clone(&asked)));
    let folder = folder(&[refusing.1, silent.1, up.1], "");
    fs::write(folder.path().join("trawl.toml"), "[fetch]\ntimeout = '1s'\n[retry]\nbackoff = '10ms'\n")
        .unwrap();
    let crawl = folder.crawl().await;
    assert_eq!((crawl.code, &crawl.stats["done"]), (Some(0), &json!(2 * HOSTS)), "{}", crawl.log);
    assert!(crawl.log.contains("refuses this user or password (407)"), "{}", crawl.log);
    assert_eq!(crawl.log.matches("no request goes through this proxy for 10s").count(), 2, "{}", crawl.log);
}

#[tokio::test]
async fn pages_wait_while_all_proxies_are_away() {
    let (asked, one, other) = (Asked::default(), listen().await, listen().await);
    let folder = folder(&[one.1, other.1], ", per = 'request'");
    drop((one.0, other.0));
    let mut command = folder.crawling("shop.toml");
    let mut crawl =
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut log = BufReader::new(crawl.stderr.take().unwrap()).lines();
    let rests = async {
        let mut rests = 0;
        while rests < 2 {
            let line = log.next_line().await.unwrap().expect("it goes on");
            rests += usize::from(line.contains("no request goes through this proxy"));
        }
    };
    timeout(LIMIT, rests).await.unwrap();
    assert_eq!(items_in(folder.path()).len(), 0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, one.1)).await.unwrap();
    tokio::spawn(serve(listener, 0, Arc::clone(&asked)));
    let drained = tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
    let ended = timeout(LIMIT, crawl.wait()).await.unwrap().unwrap();
    drained.await.unwrap();
    assert_eq!((ended.code(), items_in(folder.path()).len()), (Some(0), 2 * HOSTS));
}

#[tokio::test]
async fn each_mistake_in_proxies_is_named_where_it_stands() {
    for (text, mistake) in [
        ("[proxies]", "1:1: proxies: `urls` is missing"),
        ("[proxies]\nurls = []", "2:8: proxies.urls: must name a proxy"),
        (
            "[proxies]\nurls = ['ftp://x']",
            "2:9: proxies.urls: write http://user:password@host:port, or socks5://",
        ),
        ("[proxies]\nurls = ['http://x:1']\nper = 'site'", "3:7: proxies.per: "),
        (
            "request.proxy = 'http://x:1'\n[proxies]\nurls = ['http://y:1']",
            "proxies: `request.proxy` names the only proxy: leave one of the two out",
        ),
    ] {
        let mistakes = Workspace::new("shop.toml", text, &[], &[]).mistakes().await;
        assert!(mistakes.contains(mistake), "{mistakes}");
    }
}
