//! The metrics of a worker in Prometheus' format.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use trawl_testkit::own_redis::OwnRedis;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

/// Starts a worker that serves its metrics, and returns it with the address.
async fn measuring(fleet: &Fleet, settings: &[(&str, &str)]) -> (Child, String) {
    let mut command = fleet.command(&["worker"]);
    command.env("TRAWL__METRICS__LISTEN", "127.0.0.1:0").envs(settings.iter().copied());
    listening(command, "listen=").await
}

/// Starts a program that listens, and returns it with its address, which it prints after `mark`.
async fn listening(mut command: Command, mark: &str) -> (Child, String) {
    let mut program = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines();
    let listening = async {
        loop {
            let line = lines.next_line().await.unwrap().unwrap();
            if let Some((_, address)) = line.split_once(mark) {
                return address.split('/').next().unwrap().trim().to_owned();
            }
        }
    };
    let address = timeout(LIMIT, listening).await.unwrap();
    // A program that logs into a pipe that nobody reads would block in the end.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (program, address)
}

/// Returns the response to a request for `path`, head and body.
async fn get(address: &str, path: &str) -> String {
    let answering = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    timeout(LIMIT, answering).await.unwrap()
}

/// Waits until `/readyz` answers with this status, and returns the response.
async fn ready_with(address: &str, status: u16) -> String {
    let answering = async {
        loop {
            let answer = get(address, "/readyz").await;
            if answer.starts_with(&format!("HTTP/1.1 {status} ")) {
                return answer;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, answering).await.unwrap()
}

#[tokio::test]
async fn a_worker_tells_what_became_of_its_urls_and_what_it_asked_of_hosts() {
    let (fleet, site) = (Fleet::new().await, Site::serve(3).await);
    let (worker, address) = measuring(&fleet, &[]).await;
    let mut producer = fleet.producer(&format!("{}/sitemap.xml", site.origin));
    assert!(timeout(LIMIT, producer.status()).await.unwrap().unwrap().success());
    let answer = get(&address, "/metrics").await;
    for line in [
        "trawl_urls_ended_total{outcome=\"done\"} 3",
        "trawl_urls_ended_total{outcome=\"failed\"} 0",
        "trawl_fetches_total{status=\"2xx\"} 3",
        "trawl_fetch_duration_seconds_count 3",
        "trawl_page_size_bytes_count 3",
        "trawl_queue_wait_seconds_count 3",
        "trawl_failing 0",
        "# TYPE process_resident_memory_bytes gauge",
    ] {
        assert!(answer.lines().any(|found| found == line), "{line} is not in\n{answer}");
    }
    // The messages of URLs, and some probes with which the fleet checks for lost messages.
    let acked = answer.lines().find_map(|line| line.strip_prefix("trawl_messages_acked_total ")).unwrap();
    assert!(acked.parse::<u64>().unwrap() >= 3, "{acked}");
    assert!(!answer.contains("127.0.0.1"), "no series for a host:\n{answer}");
    assert!(get(&address, "/healthz").await.starts_with("HTTP/1.1 200 "));
    assert!(get(&address, "/readyz").await.starts_with("HTTP/1.1 200 "));
    ends_well(worker).await;
}

#[tokio::test]
async fn a_worker_that_cannot_work_reports_why_and_stays_up() {
    let (fleet, site, redis) = (Fleet::new().await, Site::serve(1).await, OwnRedis::start().await);
    let (_worker, address) = measuring(&fleet, &[("REDIS_URL", redis.url.reveal())]).await;
    let mut producer = fleet.producer(&format!("{}/sitemap.xml", site.origin));
    let worked = producer.env("REDIS_URL", redis.url.reveal()).status();
    assert!(timeout(LIMIT, worked).await.unwrap().unwrap().success());
    let answer = get(&address, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
    drop(redis);
    let answer = ready_with(&address, 503).await;
    assert!(answer.contains("redis"), "{answer}");
    assert!(get(&address, "/healthz").await.starts_with("HTTP/1.1 200 "));
    assert!(get(&address, "/metrics").await.lines().any(|line| line == "trawl_failing 1"));
}

/// Files that use or describe metrics.
const WATCHERS: [(&str, &str); 4] = [
    ("the dashboard", include_str!("../../../deploy/grafana/trawl.json")),
    ("an alert", include_str!("../../../deploy/prometheus/alerts.yml")),
    ("the scaler", include_str!("../../../deploy/kubernetes/keda/scaled-object.yaml")),
    ("docs/operations.md", include_str!("../../../docs/operations.md")),
];

#[tokio::test]
async fn dashboard_alerts_scaler_and_document_name_what_a_fleet_measures_and_nothing_else() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let login = format!("[[login.steps]]\nurl = '{}'\n", site.page(0));
    std::fs::write(fleet.folder.path().join(format!("spiders/{}.toml", fleet.name)), login).unwrap();
    let (_worker, worker) = measuring(&fleet, &[]).await;
    // Once a page has passed through them, all queues exist.
    let mut producer = fleet.producer(&format!("{}/sitemap.xml", site.origin));
    assert!(timeout(LIMIT, producer.status()).await.unwrap().unwrap().success());
    let (_api, api) = listening(fleet.command(&["api", "--listen", "127.0.0.1:0"]), "http://").await;
    let measured = get(&worker, "/metrics").await + &get(&api, "/metrics").await;
    let is_measured = |name: &str| {
        let mut rest = measured.lines().filter_map(|line| line.strip_prefix(name));
        rest.any(|rest| rest.starts_with([' ', '{']))
    };
    // Prose names a histogram without its suffix.
    let is_known = |name: &str| is_measured(name) || is_measured(&format!("{name}_count"));
    for (watcher, text) in WATCHERS {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_name = |word: &&str| ["trawl_", "process_"].iter().any(|start| word.starts_with(start));
        let names: BTreeSet<&str> = words.filter(is_name).filter(|name| !name.ends_with('_')).collect();
        assert!(!names.is_empty(), "{watcher} names nothing");
        let unknown: Vec<_> = names.into_iter().filter(|name| !is_known(name)).collect();
        assert!(unknown.is_empty(), "{watcher} names {unknown:?}, which is not in\n{measured}");
    }
}
