//! A browser keeps the fleet's manners: its pace, its robots.txt, its guard.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use trawl_testkit::script_site::{Arrival, ScriptSite};

use crate::support::{SPIDER, Workspace, shop, stats};

/// Checks that requests kept the pace of four a second: altogether, and each but for how long it took to arrive.
#[track_caller]
fn check_pace(log: &[Arrival]) {
    let slot = Duration::from_millis(250);
    let gaps: Vec<Duration> = log.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    let altogether: Duration = gaps.iter().sum();
    assert!(altogether >= slot * gaps.len() as u32 * 7 / 8, "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap >= slot / 2), "{gaps:?}");
}

#[tokio::test]
async fn documents_and_data_keep_the_pace_of_their_host_and_parts_follow_them() {
    let site = ScriptSite::serve().await;
    shop(&site, 3);
    let workspace = Workspace::new(&site);
    let output = workspace.crawl_with(&["--rate", "4/s"], &[]).await;
    assert_eq!(stats(&output)["done"], 4);
    let is_part = |arrival: &Arrival| ["script", "style"].contains(&arrival.purpose());
    let (parts, others): (Vec<_>, Vec<_>) = site.log().into_iter().partition(is_part);
    assert_eq!((parts.len(), others.len()), (8, 8));
    check_pace(&others);
}

#[tokio::test]
async fn parts_wait_for_slots_too_where_settings_say_so() {
    let site = ScriptSite::serve().await;
    shop(&site, 1);
    let workspace = Workspace::new(&site);
    let output = workspace.crawl_with(&["--rate", "4/s"], &[("TRAWL__BROWSER__PARTS", "0")]).await;
    assert_eq!(stats(&output)["done"], 2);
    assert_eq!(site.log().len(), 8);
    check_pace(&site.log());
}

#[tokio::test]
async fn what_robots_txt_forbids_is_not_asked_by_a_page() {
    let site = ScriptSite::serve().await;
    shop(&site, 0);
    site.file("/robots.txt", 200, &[("content-type", "text/plain")], "User-agent: *\nDisallow: /api/\n");
    let workspace = Workspace::new(&site);
    let stats = workspace.crawl(&[]).await;
    assert_eq!(stats["done"], 1, "{stats}");
    let mut asked = site.paths();
    asked.sort();
    assert_eq!(asked, ["/", "/app.js", "/style.css"]);
}

/// An address that nobody may ask, and the number of connections and packets that it got.
struct Forbidden {
    address: String,
    got: Arc<AtomicUsize>,
    packets: UdpSocket,
}

impl Forbidden {
    async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let packets = UdpSocket::bind(address).unwrap();
        packets.set_nonblocking(true).unwrap();
        let got = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&got);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { address: address.to_string(), got, packets }
    }

    /// Returns the number of connections and packets so far.
    fn got(&self) -> (usize, usize) {
        let packets = std::iter::from_fn(|| self.packets.recv(&mut [0; 2048]).ok()).count();
        (self.got.load(Ordering::Relaxed), packets)
    }
}

/// A page that tries each way to reach an address.
const TRIES: &str = r#"<!doctype html><title>Tries</title>
<link rel=prefetch href=http://ADDRESS/prefetch><link rel=preload as=script href=http://ADDRESS/preload>
<link rel=stylesheet href=http://ADDRESS/style><link rel=preconnect href=http://ADDRESS>
<link rel=dns-prefetch href=//ADDRESS><link rel=icon href=http://ADDRESS/icon><link rel=manifest href=http://ADDRESS/manifest>
<link rel=modulepreload href=http://ADDRESS/module>
<script type=speculationrules>{"prefetch": [{"urls": ["http://ADDRESS/speculated"]}],
 "prerender": [{"urls": ["http://ADDRESS/prerendered", "/prerendered"]}]}</script>
<script src=http://ADDRESS/script></script><img src=http://ADDRESS/image><video src=http://ADDRESS/video></video>
<audio src=http://ADDRESS/audio></audio><iframe src=http://ADDRESS/frame></iframe><embed src=http://ADDRESS/embed>
<object data=http://ADDRESS/object></object><svg><use href="http://ADDRESS/svg#x"></use></svg>
<iframe srcdoc="<script>fetch('http://ADDRESS/in-frame')</script>"></iframe>
<form id=form action=http://ADDRESS/form method=post target=frame></form><iframe name=frame></iframe>
<a id=ping href=#x ping=http://ADDRESS/ping>x</a><a id=download href=/download download>x</a>
<style>@import url(http://ADDRESS/import); @font-face { font-family: x; src: url(http://ADDRESS/font) }
 body { font-family: x; background: url(http://ADDRESS/background) }</style>
<h1>Tried</h1>
<script>
const tries = [
  () => fetch('http://ADDRESS/fetch', { mode: 'no-cors' }),
  () => fetch('http://ADDRESS/keepalive', { mode: 'no-cors', method: 'POST', body: 'x', keepalive: true }),
  () => fetch('http://ADDRESS/preflight', { method: 'PUT', headers: { 'x-own': '1' } }),
  () => fetch('https://ADDRESS/tls', { mode: 'no-cors' }),
  () => fetch('/redirect', { mode: 'no-cors' }),
  () => navigator.sendBeacon('http://ADDRESS/beacon', 'x'),
  () => { const asks = new XMLHttpRequest(); asks.open('GET', 'http://ADDRESS/xhr'); asks.send() },
  () => new WebSocket('ws://ADDRESS/socket'),
  () => new WebSocket('wss://ADDRESS/socket'),
  () => new EventSource('http://ADDRESS/events'),
  () => new Worker(URL.createObjectURL(new Blob(["fetch('http://ADDRESS/worker')"]))),
  () => new SharedWorker(URL.createObjectURL(new Blob(["fetch('http://ADDRESS/shared')"]))),
  () => navigator.serviceWorker.register('/service.js'),
  () => window.open('http://ADDRESS/popup'),
  () => new Image().src = 'http://ADDRESS/new-image',
  () => import('http://ADDRESS/imported'),
  () => new WebTransport('https://ADDRESS/transport').ready,
  () => {
    const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:ADDRESS' }, { urls: 'turn:ADDRESS?transport=tcp', username: 'x', credential: 'x' }] });
    peer.createDataChannel('x');
    peer.createOffer().then(offer => peer.setLocalDescription(offer));
  },
  () => document.getElementById('ping').click(),
  () => document.getElementById('download').click(),
  () => document.getElementById('form').submit(),
];
for (const attempt of tries) { try { Promise.resolve(attempt()).catch(() => {}) } catch (error) {} }
</script>"#;

#[tokio::test]
async fn no_way_leads_to_an_address_that_pages_may_not_ask() {
    let forbidden = Forbidden::listen().await;
    let site = ScriptSite::serve().await;
    site.page("/", TRIES.replace("ADDRESS", &forbidden.address));
    site.script("/service.js", format!("fetch('http://{}/service')", forbidden.address));
    site.file("/redirect", 302, &[("location", &format!("http://{}/redirected", forbidden.address))], "");
    let workspace = Workspace::new(&site);
    workspace.write("shop.toml", &SPIDER.replace("[follow]", ""));
    let stats = workspace.crawl(&[]).await;
    assert_eq!(stats["done"], 1, "{stats}");
    assert_eq!(workspace.items()[0]["fields"]["name"], json!("Tried"));
    assert_eq!(forbidden.got(), (0, 0));
    assert!(
        site.paths().iter().all(|path| ["/", "/redirect", "/service.js"].contains(&&**path)),
        "{:?}",
        site.paths()
    );
}

#[tokio::test]
async fn a_page_gets_nothing_that_stays_open_is_fetched_ahead_or_only_looks_nice() {
    let site = ScriptSite::serve().await;
    let address = site.origin.trim_start_matches("http://");
    site.page("/", TRIES.replace("ADDRESS", address));
    site.script("/service.js", "");
    let workspace = Workspace::new(&site);
    workspace.write("shop.toml", &SPIDER.replace("[follow]", ""));
    let stats = workspace.crawl(&[]).await;
    assert_eq!(stats["done"], 1, "{stats}");
    let refused = [
        "/prefetch",
        "/speculated",
        "/prerendered",
        "/icon",
        "/manifest",
        "/image",
        "/video",
        "/audio",
        "/embed",
        "/object",
        "/font",
        "/background",
        "/socket",
        "/events",
        "/popup",
        "/new-image",
        "/ping",
        "/download",
    ];
    let asked: Vec<Arrival> =
        site.log().into_iter().filter(|arrival| refused.contains(&&*arrival.path)).collect();
    assert!(asked.is_empty(), "{asked:?}");
}
