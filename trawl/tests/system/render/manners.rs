//! A browser keeps the fleet's manners: its pace, its robots.txt, its guard.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use trawl_testkit::script_site::{Arrival, ScriptSite};

use crate::render::support::{SPIDER, Workspace, shop, stats};

/// Checks that requests kept the pace of two a second: altogether, and each but for how long it took to arrive.
#[track_caller]
pub(crate) fn check_pace(log: &[Arrival]) {
    let slot = Duration::from_millis(500);
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
    let output = workspace.crawl_with(&["--rate", "2/s"], &[]).await;
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
    let output = workspace.crawl_with(&["--rate", "2/s"], &[("TRAWL__BROWSER__PARTS", "0")]).await;
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

/// A page that tries each way to reach an address: that of the self-test of browsers.
const TRIES: &str = include_str!("../../../../browser/src/self_test/page.html");

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

/// A Chromium whose pages reach this machine without their proxy, whatever they are told.
const ROUND: &str = r#"#!/bin/bash
exec 3< <(exec sed -zu 's/"<-loopback>"/"<-loopback>;127.0.0.1"/' <&3)
exec /usr/lib/chromium/chromium-headless-shell "$@"
"#;

#[tokio::test]
async fn a_browser_that_goes_round_its_proxy_renders_nothing_and_doctor_says_why() {
    let site = ScriptSite::serve().await;
    shop(&site, 1);
    let workspace = Workspace::new(&site);
    let program = workspace.program("chromium", ROUND);
    let page = format!("{}/hat/0", site.origin);
    workspace.write("trawl.toml", &format!("spiders_dir = '.'\n[browser]\nprogram = '{program}'\n"));
    let said = "Chromium goes round its proxy here: it has reached an address by itself";
    let tried = workspace.command(&["spider", "try", "shop.toml", &page]).await;
    let error = String::from_utf8_lossy(&tried.stderr);
    assert!(!tried.status.success() && error.contains(said), "{error}");
    assert_eq!(site.paths(), ["/hat/0"], "only the document was fetched");
    let examined = workspace.command(&["doctor", "--embedded"]).await;
    let findings = String::from_utf8_lossy(&examined.stdout);
    assert!(!examined.status.success() && findings.contains(said), "{findings}");
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
