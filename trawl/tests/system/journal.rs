//! Requests survive the store that carries them out: jobs, deployed spiders, schedules.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;

use redis::aio::MultiplexedConnection;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{self, Fleet, LIMIT, ends_well};

async fn store(fleet: &Fleet) -> MultiplexedConnection {
    let client = redis::Client::open(fleet.redis.reveal()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// Deletes everything in the store.
async fn empty(fleet: &Fleet) {
    let () = redis::cmd("FLUSHDB").query_async(&mut store(fleet).await).await.unwrap();
}

/// Returns the output of a command that must end with `code`.
async fn run(fleet: &Fleet, words: &[&str], code: i32) -> String {
    support::run(fleet.command(words), code).await.0
}

/// Returns the status of each job.
async fn jobs(fleet: &Fleet) -> BTreeMap<String, String> {
    let listed = run(fleet, &["jobs", "list", "--json"], 0).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let jobs = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    jobs.map(|job| (text(&job["job"]), text(&job["status"]))).collect()
}

/// Returns the number of requests for each page, by its number.
fn pages(site: &Site) -> BTreeMap<usize, usize> {
    let log = site.log();
    let number = |path: &str| path.strip_prefix("/page/")?.parse().ok();
    log.iter().filter_map(|(path, asked)| Some((number(path)?, *asked))).collect()
}

/// An index of two sitemaps of a site: its first pages, and the rest, which is not answered until `open`.
async fn serve_index(site: &Site, first: usize, all: usize, open: watch::Receiver<bool>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let list = |pages: std::ops::Range<usize>| -> String {
        let entries: String =
            pages.map(|page| format!("<url><loc>{}</loc></url>", site.page(page))).collect();
        format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{entries}</urlset>")
    };
    let named: String =
        ["first", "rest"].map(|name| format!("<sitemap><loc>{origin}/{name}.xml</loc></sitemap>")).concat();
    let index =
        format!("<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{named}</sitemapindex>");
    let answers = [index, list(0..first), list(first..all)];
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection, answers.clone(), open.clone()));
        }
    });
    format!("{origin}/index.xml")
}

async fn answer(
    mut connection: TcpStream,
    [index, first, rest]: [String; 3],
    mut open: watch::Receiver<bool>,
) {
    let (mut head, mut byte) = (String::new(), [0]);
    while !head.ends_with("\r\n\r\n") && matches!(connection.read(&mut byte).await, Ok(1)) {
        head.push(byte[0].into());
    }
    let (status, body) = match head.split(' ').nth(1) {
        Some("/index.xml") => ("200 OK", index),
        Some("/first.xml") => ("200 OK", first),
        Some("/rest.xml") => {
            let _ = open.wait_for(|is_open| *is_open).await;
            ("200 OK", rest)
        }
        _ => ("404 Not Found", String::new()),
    };
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/xml\r\ncontent-length: {}\r\n", body.len());
    let _ = connection.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).await;
}

/// Returns the end of the feeder's lease of a job, as stored.
async fn lease(fleet: &Fleet, job: &str) -> Option<u64> {
    let read = redis::cmd("HGET").arg(format!("job:{job}")).arg("until").to_owned();
    read.query_async(&mut store(fleet).await).await.unwrap()
}

#[tokio::test]
async fn a_job_that_is_being_fed_when_the_store_is_emptied_is_fed_to_its_end() {
    let fleet = Fleet::new().await;
    let site = Site::serve(60).await;
    let (opening, open) = watch::channel(false);
    let index = serve_index(&site, 30, 60, open).await;
    let job = run(&fleet, &["jobs", "submit", &fleet.name, &index], 0).await;
    let worker = fleet.worker(&[]);
    let done = async {
        loop {
            let output = fleet.command(&["status", &job, "--json"]).output().await.unwrap();
            let stats: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if stats["done"] == 30 {
                break;
            }
        }
    };
    timeout(LIMIT, done).await.expect("the first pages are fetched");
    empty(&fleet).await;
    // Its feeder has the job again, and has extended the lease.
    let extended = async {
        let mut first = None;
        loop {
            match (lease(&fleet, &job).await, first) {
                (Some(until), Some(first)) if until > first => return,
                (Some(until), None) => first = Some(until),
                _ => tokio::task::yield_now().await,
            }
        }
    };
    timeout(LIMIT, extended).await.expect("the job is known again, and its feeder's");
    opening.send_replace(true);
    timeout(LIMIT, site.asked_for(60)).await.expect("all is fetched");
    run(&fleet, &["wait", &job], 0).await;
    let ended = async { while jobs(&fleet).await[&job] != "finished" {} };
    timeout(LIMIT, ended).await.expect("the job ends with its crawl");
    assert_eq!(pages(&site), (0..60).map(|page| (page, 1)).collect(), "each page is fetched, and once");
    ends_well(worker).await;
}

#[tokio::test]
async fn what_is_pending_and_what_is_deployed_outlive_the_store_and_what_has_ended_is_not_run_again() {
    let fleet = Fleet::new().await;
    let site = Site::serve(2).await;
    fs::create_dir(fleet.folder.path().join("elsewhere")).unwrap();
    let text = format!("[start]\nurls = ['{}']\n[fields]\nheading = {{ css = 'title' }}\n", site.page(0));
    fs::write(fleet.folder.path().join("elsewhere/books.toml"), text).unwrap();
    run(&fleet, &["spider", "push", "elsewhere/books.toml", "--project", "shop", "--version", "one"], 0)
        .await;
    run(&fleet, &["spider", "push", "elsewhere/books.toml", "--project", "gone"], 0).await;
    run(&fleet, &["spider", "remove", "gone", "--yes"], 0).await;
    let submit = ["jobs", "submit", "books", "--project", "shop", "--idempotency-key", "k"];
    let job = run(&fleet, &submit, 0).await;
    let cancelled = run(&fleet, &["jobs", "submit", &fleet.name, &site.page(1)], 0).await;
    run(&fleet, &["jobs", "cancel", &cancelled], 0).await;
    empty(&fleet).await;
    assert_eq!(run(&fleet, &submit, 0).await, job, "its key is known");
    let versions = run(&fleet, &["spider", "versions", "--json"], 0).await;
    assert!(versions.contains("\"one\"") && !versions.contains("gone"), "{versions}");
    let worker = fleet.worker(&[]);
    run(&fleet, &["wait", &job], 0).await;
    let ended = async { while jobs(&fleet).await[&job] != "finished" {} };
    timeout(LIMIT, ended).await.expect("the job ends with its crawl");
    assert!(fleet.items().await.iter().all(|item| item["fields"]["heading"].is_string()));
    empty(&fleet).await;
    assert_eq!(run(&fleet, &submit, 0).await, job);
    let expected = [(job, "finished".to_owned()), (cancelled, "cancelled".to_owned())].into();
    assert_eq!(jobs(&fleet).await, expected);
    ends_well(worker).await;
    assert_eq!(pages(&site), [(0, 1)].into());
}

#[tokio::test]
async fn a_schedule_that_is_held_stays_so_in_a_store_that_was_emptied() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let text = format!("[schedule]\ncron = '0 0 1 jan *'\n[start]\nurls = ['{}']\n", site.page(0));
    fs::write(fleet.folder.path().join("spiders/shop.toml"), text).unwrap();
    run(&fleet, &["schedule", "pause", "shop"], 0).await;
    empty(&fleet).await;
    let listed = run(&fleet, &["schedule", "list"], 0).await;
    assert!(listed.contains("paused"), "{listed}");
}

#[tokio::test]
async fn what_rabbitmq_has_lost_is_written_there_again_and_brings_back_what_redis_loses_then() {
    let (fleet, other) = (Fleet::new().await, Fleet::new().await);
    fs::write(fleet.folder.path().join("books.toml"), "").unwrap();
    run(&fleet, &["spider", "push", "books.toml", "--project", "shop", "--version", "one"], 0).await;
    let job = run(&fleet, &["jobs", "submit", "books", "--project", "shop"], 0).await;
    // This worker sweeps and takes no jobs.
    let worker = fleet.worker(&[("TRAWL__JOBS__PER_WORKER", "0")]);
    let lives = async {
        let count = redis::cmd("ZCARD").arg("workers").to_owned();
        while count.query_async::<u64>(&mut store(&fleet).await).await.unwrap() == 0 {}
    };
    timeout(LIMIT, lives).await.expect("the worker has connected to both servers");
    fleet.vhost.empty().await;
    let restored = async {
        loop {
            // An empty store beside the same RabbitMQ.
            empty(&other).await;
            let mut command = fleet.command(&["spider", "versions", "--json"]);
            let versions = command.env("REDIS_URL", other.redis.reveal()).output().await.unwrap();
            if String::from_utf8_lossy(&versions.stdout).contains("\"one\"") {
                break;
            }
        }
    };
    timeout(LIMIT, restored).await.expect("the sweeper writes it again");
    empty(&fleet).await;
    let status = run(&fleet, &["status", &job, "--json"], 0).await;
    assert!(status.contains("\"pending\""), "the job is known: {status}");
    ends_well(worker).await;
}
