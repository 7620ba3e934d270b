//! The permanent history of a fleet of real processes.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use tokio::net::lookup_host;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use tokio_postgres::NoTls;
use trawl_testkit::faults::proxy::{Mode, Proxy};
use trawl_testkit::servers;
use trawl_testkit::site::Site;

use crate::support::{self, Fleet, LIMIT, ends_well};

const HISTORY: &str = "TRAWL__HISTORY__POSTGRES";

/// Returns the output of a command that must end with `code`.
async fn run(command: Command, code: i32) -> String {
    support::run(command, code).await.0
}

/// Returns the rows of a table that belong to this crawl.
async fn rows(table: &str, column: &str, crawl: &str) -> Vec<Value> {
    let (client, connection) = tokio_postgres::connect(servers::postgres().reveal(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let there: Option<String> =
        client.query_one("SELECT to_regclass($1)::text", &[&table]).await.unwrap().get(0);
    if there.is_none() {
        return Vec::new();
    }
    let query = format!("SELECT to_jsonb(t)::text FROM {table} t WHERE {column} = $1 ORDER BY id");
    let rows = client.query(&query, &[&crawl]).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(row.get(0)).unwrap()).collect()
}

/// Waits until this crawl has a row with the expected content.
async fn eventually(table: &str, crawl: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let looking = async {
        loop {
            if let Some(row) = rows(table, "id", crawl).await.into_iter().find(&is_right) {
                return row;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(LIMIT, looking).await.unwrap()
}

#[tokio::test]
async fn a_job_its_crawl_and_each_of_its_pages_are_kept_with_how_they_ended() {
    let (fleet, site) = (Fleet::new().await, Site::serve(2).await);
    let urls = [site.page(0), site.page(1), format!("{}/missing", site.origin)];
    let spider = format!("[start]\nurls = {urls:?}\n[arguments]\nshelf = {{}}\n");
    let file = fleet.folder.path().join("books.toml");
    fs::write(&file, spider.replace("missing", "missing?{arg.shelf}")).unwrap();
    let version = run(fleet.command(&["spider", "push", "books.toml", "--project", "shop"]), 0).await;
    let postgres = servers::postgres();
    let settings = [(HISTORY, postgres.reveal())];
    let worker = fleet.worker(&settings);
    let submit = ["jobs", "submit", "books", "--project", "shop", "--version", &version, "-a", "shelf=3"];
    let job = run(fleet.command(&submit), 0).await;
    let crawl = eventually("trawl_crawls", &job, |row| row["status"] == "finished").await;
    assert_eq!((&crawl["spider"], &crawl["done"], &crawl["failed"]), (&"books".into(), &2.into(), &1.into()));
    assert!(crawl["ended"].as_str() >= crawl["started"].as_str(), "{crawl}");
    let pages = rows("trawl_pages", "crawl", &job).await;
    assert_eq!(pages.len(), 3, "{pages:?}");
    let page = |url: &str| pages.iter().find(|page| page["url"] == url).unwrap();
    for number in [0, 1] {
        let page = page(&site.page(number));
        assert_eq!(
            (&page["outcome"], &page["status"], &page["items"]),
            (&"done".into(), &200.into(), &1.into())
        );
    }
    let missing = page(&format!("{}/missing?3", site.origin));
    assert_eq!((&missing["outcome"], &missing["reason"]), (&"failed".into(), &"http".into()));
    assert_eq!((&missing["status"], &missing["attempts"]), (&404.into(), &1.into()));
    run(fleet.command(&["wait", &job]), 3).await;
    // A worker that starts stores the ends that others have left.
    ends_well(worker).await;
    let worker = fleet.worker(&settings);
    let kept = eventually("trawl_jobs", &job, |row| row["status"] == "finished").await;
    assert_eq!((&kept["project"], &kept["version"]), (&"shop".into(), &Value::from(&*version)));
    assert_eq!(kept["arguments"], serde_json::json!({"shelf": "3"}));
    assert!(kept["runner"].is_string(), "{kept}");
    ends_well(worker).await;
}

#[tokio::test]
async fn while_the_database_is_away_no_page_ends_and_then_none_is_missing() {
    let (fleet, site) = (Fleet::new().await, Site::serve(3).await);
    let postgres = servers::postgres();
    let server = postgres.reveal().split(['@', '/']).nth(3).unwrap().to_owned();
    let address = lookup_host(&server).await.unwrap().next().unwrap();
    let proxy = Proxy::start(address).await.unwrap();
    proxy.set(Mode::Refuse);
    let url = postgres.reveal().replace(&server, &proxy.address.to_string());
    let worker = fleet.worker(&[(HISTORY, &url)]);
    let list = fleet.folder.path().join("list.txt");
    fs::write(&list, [0, 1, 2].map(|number| site.page(number)).join("\n")).unwrap();
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    run(fleet.command(&["producer", list.to_str().unwrap(), &spider, &crawl, "-q"]), 0).await;
    for number in [0, 1, 2] {
        timeout(LIMIT, site.asked_for_path(&format!("/page/{number}"), 1)).await.unwrap();
    }
    run(fleet.command(&["wait", &fleet.name, "--timeout", "2s", "-q"]), 124).await;
    let stats = run(fleet.command(&["status", &fleet.name, "--json"]), 0).await;
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!((&stats["done"], &stats["pending"]), (&0.into(), &3.into()));
    proxy.set(Mode::Pass);
    run(fleet.command(&["wait", &fleet.name, "-q"]), 0).await;
    let pages = rows("trawl_pages", "crawl", &fleet.name).await;
    assert!(pages.len() == 3 && pages.iter().all(|page| page["outcome"] == "done"), "{pages:?}");
    ends_well(worker).await;
}
