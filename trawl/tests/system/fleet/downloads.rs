//! Files that a fleet keeps.

use std::convert::Infallible;
use std::fs;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use futures::StreamExt;
use futures::stream;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::support::{Fleet, LIMIT, ends_well};

/// Size of the file, and of the part that comes at once.
const SIZE: usize = 2 << 20;
const FIRST: usize = 3 << 19;

/// A site with a page that links to a large file, whose rest comes when it is opened.
struct Site {
    origin: String,
    shared: Arc<Shared>,
}

struct Shared {
    is_open: watch::Sender<bool>,
    /// Number of requests for the file, and of these that have ended.
    asked: watch::Sender<usize>,
    ended: watch::Sender<usize>,
}

/// Counts the end of a request.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.ended.send_modify(|ended| *ended += 1);
    }
}

impl Site {
    async fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (is_open, asked, ended) = Default::default();
        let shared = Arc::new(Shared { is_open, asked, ended });
        let router = Router::new()
            .route("/", get(|| async { Html("<a href=/file.bin>x</a>") }))
            .route("/file.bin", get(file))
            .with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, shared }
    }

    async fn asked_for(&self, count: usize) {
        let _ =
            timeout(LIMIT, self.shared.asked.subscribe().wait_for(|asked| *asked >= count)).await.unwrap();
    }
}

async fn file(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    assert!(headers.get("range").is_none());
    shared.asked.send_modify(|asked| *asked += 1);
    let ends = Ends(Arc::clone(&shared));
    let rest = async move {
        let _ = ends.0.is_open.subscribe().wait_for(|open| *open).await;
        Ok::<_, Infallible>(Bytes::from(vec![2; SIZE - FIRST]))
    };
    let body = stream::iter([Ok(Bytes::from(vec![1; FIRST]))]).chain(stream::once(rest));
    ([("content-length", SIZE.to_string())], Body::from_stream(body)).into_response()
}

/// A fleet whose spider downloads the file of a site.
async fn fleet_for(site: &Site) -> Fleet {
    let fleet = Fleet::new().await;
    let text = format!("start.urls = ['{}/']\n[[download]]\nto = 'files'\n", site.origin);
    fs::write(fleet.folder.path().join(format!("spiders/{}.toml", fleet.name)), text).unwrap();
    fleet
}

#[tokio::test]
async fn a_file_that_takes_longer_than_a_lease_is_downloaded_once() {
    let site = Site::serve().await;
    let fleet = fleet_for(&site).await;
    let (worker, other) = (fleet.worker(&[]), fleet.worker(&[]));
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let mut producer = fleet.command(&["producer", &spider, &crawl, "--wait"]).spawn().unwrap();
    site.asked_for(1).await;
    // Longer than `lost_after`, by which a lease that nobody renews would lapse four times.
    sleep(Duration::from_secs(6)).await;
    site.shared.is_open.send_replace(true);
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    assert_eq!(*site.shared.asked.borrow(), 1);
    let items = fleet.items().await;
    let item = items.iter().find(|item| item["item"] == "file").unwrap();
    assert_eq!(
        (&item["fields"]["size"], &item["referrer"]),
        (&json!(SIZE), &json!(format!("{}/", site.origin)))
    );
    let kept = fs::read(fleet.folder.path().join(item["fields"]["file"].as_str().unwrap())).unwrap();
    assert!(kept == [vec![1; FIRST], vec![2; SIZE - FIRST]].concat());
    ends_well(worker).await;
    ends_well(other).await;
}

#[tokio::test]
async fn a_download_ends_when_its_crawl_is_cancelled() {
    let site = Site::serve().await;
    let fleet = fleet_for(&site).await;
    let worker = fleet.worker(&[]);
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let mut producer = fleet.command(&["producer", &spider, &crawl]).spawn().unwrap();
    assert!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().success());
    site.asked_for(1).await;
    let cancelled = fleet.command(&["cancel", &fleet.name]).output();
    let cancelled = timeout(LIMIT, cancelled).await.unwrap().unwrap();
    assert!(cancelled.status.success(), "{}", String::from_utf8_lossy(&cancelled.stderr));
    timeout(LIMIT, site.shared.ended.subscribe().wait_for(|ended| *ended == 1)).await.unwrap().unwrap();
    ends_well(worker).await;
}
