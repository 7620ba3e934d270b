//! Items that are posted to a URL: signed, and again until they are taken.

use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::changing_site::{ChangingPage, ChangingSite};

use crate::support::LIMIT;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// An application that takes items.
#[derive(Default)]
struct Taker {
    items: Mutex<Vec<Value>>,
    /// The number of posts that it refuses before it takes one.
    refusals: AtomicUsize,
    /// The number of posts that it takes without saying so.
    lost_replies: AtomicUsize,
}

/// Checks the signature of a post, and takes its items.
async fn take(State(taker): State<Arc<Taker>>, fields: HeaderMap, body: Bytes) -> StatusCode {
    let field = |name: &str| fields[name].to_str().unwrap();
    let signature = field("x-trawl-signature").strip_prefix("sha256=").unwrap();
    let mut key = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    key.update(format!("{}.", field("x-trawl-timestamp")).as_bytes());
    key.update(&body);
    key.verify_slice(&HEXLOWER.decode(signature.as_bytes()).unwrap()).unwrap();
    assert_eq!(field("x-trawl-delivery").len(), 32);
    let one_less = |left: usize| left.checked_sub(1);
    let is_one_of =
        |left: &AtomicUsize| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
    if is_one_of(&taker.refusals) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let items: Vec<Value> = serde_json::from_slice(&body).unwrap();
    taker.items.lock().unwrap().extend(items);
    if is_one_of(&taker.lost_replies) { StatusCode::BAD_GATEWAY } else { StatusCode::NO_CONTENT }
}

#[tokio::test]
async fn items_are_posted_until_they_are_taken_and_of_later_crawls_those_that_differ() {
    let (site, taker, folder) =
        (ChangingSite::serve().await, Arc::<Taker>::default(), tempfile::tempdir().unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/items", listener.local_addr().unwrap());
    let router = Router::new().fallback(take).with_state(Arc::clone(&taker));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let spider = format!(
        "start.sitemaps = ['{}/sitemap.xml']\nrecrawl = 'always'\n\
         [[sinks]]\nkind = 'webhook'\nurl = '{url}'\nsecret = {{ env = 'ITEMS_SECRET' }}\nchanged = true\n",
        site.origin
    );
    std::fs::write(folder.path().join("shop.toml"), spider).unwrap();
    let crawl = async |secret: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        command.args(["crawl", "--spider", "shop.toml", "--allow-private", "--rate=unlimited", "--json"]);
        command.current_dir(folder.path()).env_clear().env("ITEMS_SECRET", secret);
        let output =
            timeout(LIMIT, command.stdin(Stdio::null()).kill_on_drop(true).output()).await.unwrap().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, log) = crawl("short").await;
    assert!(code == Some(2) && log.contains("has at least 32 characters"), "{log}");
    for number in 0..5 {
        site.put(&format!("/p/{number}"), ChangingPage::titled(&format!("page {number}")));
    }
    let titles = || {
        let taken = std::mem::take(&mut *taker.items.lock().unwrap());
        let mut titles: Vec<Value> =
            taken.iter().map(|item| json!([item["fields"]["title"], item["change"]])).collect();
        titles.sort_by_key(Value::to_string);
        titles
    };
    taker.refusals.store(2, Ordering::Relaxed);
    let (code, log) = crawl(SECRET).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("it answered 503"), "{log}");
    let all: Vec<Value> = (0..5).map(|number| json!([format!("page {number}"), "new"])).collect();
    assert_eq!(titles(), all, "none is lost, and none comes twice");
    site.put("/p/3", ChangingPage::titled("another"));
    let (code, log) = crawl(SECRET).await;
    assert_eq!((code, titles()), (Some(0), vec![json!(["another", "changed"])]), "{log}");
    site.put("/p/4", ChangingPage::titled("once more"));
    taker.lost_replies.store(1, Ordering::Relaxed);
    let (code, log) = crawl(SECRET).await;
    let taken = std::mem::take(&mut *taker.items.lock().unwrap());
    assert_eq!((code, taken.len(), &taken[0]["id"]), (Some(0), 2, &taken[1]["id"]), "{log}");
}
