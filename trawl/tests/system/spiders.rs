//! Spiders in a fleet, and the effects of their files on workers.

use std::collections::HashSet;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Html;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::{Fleet, LIMIT, ends_well};

type Log = Arc<Mutex<Vec<(String, String)>>>;

/// A site whose robots.txt forbids one page to each of two crawlers, and the log of its requests by crawler.
async fn site() -> (String, Log) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let answer = |State(log): State<Log>, request: Request| async move {
        let path = request.uri().path().to_owned();
        let agent = request.headers()["user-agent"].to_str().unwrap().to_owned();
        log.lock().unwrap().push((agent, path.clone()));
        match path.as_str() {
            "/robots.txt" => {
                Html("User-agent: one\nDisallow: /a\n\nUser-agent: two\nDisallow: /b\n".to_owned())
            }
            path => Html(format!("<title>{path}</title>")),
        }
    };
    let router = Router::new().fallback(answer).with_state(Arc::clone(&log));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (origin, log)
}

/// Writes the file of a spider that starts with the pages `/a` and `/b`.
fn write(fleet: &Fleet, name: &str, origin: &str, rest: &str) {
    let folder = fleet.folder.path().join("spiders");
    fs::create_dir_all(&folder).unwrap();
    let text = format!("[start]\nurls = ['{origin}/a', '{origin}/b']\n{rest}\n");
    fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

async fn crawl(fleet: &Fleet, spider: &str) {
    let words = ["producer", "--spider", spider, "--wait", "-q"];
    let output = timeout(LIMIT, fleet.command(&words).output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn each_spider_obeys_the_rules_of_robots_txt_for_its_own_user_agent() {
    let (fleet, (origin, log)) = (Fleet::new().await, site().await);
    let names = ["one", "two"].map(|agent| format!("{}-{agent}", fleet.name));
    for (name, agent) in names.iter().zip(["one", "two"]) {
        write(&fleet, name, &origin, &format!("[request]\nuser_agent = '{agent}/1.0'"));
    }
    let worker = fleet.worker(&[]);
    for name in &names {
        crawl(&fleet, name).await;
    }
    ends_well(worker).await;
    let log = log.lock().unwrap().clone();
    let pages: HashSet<_> = log.iter().filter(|(_, path)| path != "/robots.txt").cloned().collect();
    let expected = [("one/1.0", "/b"), ("two/1.0", "/a")];
    assert_eq!(pages, expected.map(|(agent, path)| (agent.to_owned(), path.to_owned())).into());
    assert_eq!(log.len() - pages.len(), 1, "one robots.txt serves both: {log:?}");
}

#[tokio::test]
async fn what_a_spider_was_answered_by_its_own_cookies_is_kept_for_no_other() {
    let (fleet, (origin, log)) = (Fleet::new().await, site().await);
    let worker = fleet.worker(&[]);
    let asked = || log.lock().unwrap().iter().filter(|(_, path)| path == "/a").count();
    for (number, (rest, expected)) in
        [("[request]\ncookies = { session = 'mine' }", 1), ("", 2), ("", 2)].into_iter().enumerate()
    {
        let name = format!("{}-{number}", fleet.name);
        write(&fleet, &name, &origin, rest);
        crawl(&fleet, &name).await;
        assert_eq!(asked(), expected, "{rest}");
    }
    ends_well(worker).await;
}

/// Gives a producer one page, and waits until it is crawled.
async fn feed(mut producer: Command, page: &str) {
    let mut producer = producer.stdin(Stdio::piped()).spawn().unwrap();
    producer.stdin.take().unwrap().write_all(page.as_bytes()).await.unwrap();
    assert!(producer.wait().await.unwrap().success());
}

/// Returns the field names of all items so far.
async fn fields(fleet: &Fleet) -> HashSet<String> {
    let all = fleet.items().await;
    all.iter().flat_map(|item| item["fields"].as_object().unwrap().keys().cloned()).collect()
}

#[tokio::test]
async fn a_worker_works_by_a_changed_file_without_a_restart() {
    let (fleet, (origin, _)) = (Fleet::new().await, site().await);
    let name = fleet.name.clone();
    let worker = fleet.worker(&[]);
    write(&fleet, &name, &origin, "[fields]\nbefore = 'title::text'");
    feed(fleet.producer("-"), &format!("{origin}/first")).await;
    assert!(fields(&fleet).await.contains("before"));
    write(&fleet, &name, &origin, "[fields]\nafter = 'title::text'");
    let until_changed = async {
        let mut number = 0;
        while !fields(&fleet).await.contains("after") {
            // A page that was not crawled before.
            number += 1;
            let producer = fleet.command(&["producer", "-", "--spider", &name, "--wait", "-q"]);
            feed(producer, &format!("{origin}/{number}")).await;
        }
    };
    timeout(LIMIT, until_changed).await.unwrap();
    ends_well(worker).await;
}
