//! A crawl on three nodes of RabbitMQ and three masters of Redis goes on when a node dies.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::fs;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_common::settings::Node;
use trawl_testkit::cluster;
use trawl_testkit::servers::VirtualHost;
use trawl_testkit::site::Site;

const LIMIT: Duration = Duration::from_secs(90);
/// Enough for the producer to be still publishing when the node dies.
const PAGES: usize = 4000;
/// So many pages have been asked for then.
const BEFORE: usize = 50;

struct Fleet {
    folder: TempDir,
    /// Never deleted: that would wait for the node that died. It goes with the cluster.
    vhost: ManuallyDrop<VirtualHost>,
    name: String,
}

impl Fleet {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().file_name().unwrap().to_string_lossy().to_ascii_lowercase();
        let vhost = ManuallyDrop::new(VirtualHost::new().await);
        Self { vhost, name: format!("cluster{name}"), folder }
    }

    /// A program that is told of all nodes, and turns to `first` first.
    fn command(&self, first: &Node, words: &[&str]) -> Command {
        let others = ["mq1", "mq2", "mq3"].map(cluster::address_of).into_iter().filter(|node| node != first);
        let redis = cluster::redis();
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env_clear()
            .env("RABBITMQ_URL", self.vhost.url.at(first).reveal())
            .env("TRAWL__RABBITMQ__NODES", list(others))
            .env("REDIS_URL", redis.url.reveal())
            .env("TRAWL__REDIS__CLUSTER", "true")
            .env("TRAWL__REDIS__NODES", list(redis.nodes))
            .env("TRAWL__FETCH__ALLOW_PRIVATE", "true")
            .env("TRAWL__POLITENESS__RATE", "unlimited")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    fn producer(&self, first: &Node, words: &[&str]) -> Command {
        let (spider, crawl) = (format!("--spider={}", self.name), format!("--crawl={}", self.name));
        let mut command = self.command(first, &["producer", "-q", &spider, "--no-file"]);
        if words.contains(&"--wait") {
            command.arg(crawl);
        }
        command.args(words);
        command
    }
}

fn list(nodes: impl IntoIterator<Item = Node>) -> String {
    nodes.into_iter().map(|node| node.to_string()).collect::<Vec<_>>().join(",")
}

/// The URL of each item.
fn items(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("items")).unwrap();
    let text: String = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let url = |line| serde_json::from_str::<Value>(line).unwrap()["url"].as_str().unwrap().to_owned();
    text.lines().map(url).collect()
}

#[tokio::test]
async fn no_page_is_lost_when_the_node_that_leads_the_bulk_queue_dies_mid_crawl() {
    let fleet = Fleet::new().await;
    // Who declares a queue makes its node the leader.
    let declared = fleet.producer(&cluster::address_of("mq2"), &["/dev/null"]).status().await.unwrap();
    assert_eq!(declared.code(), Some(0));
    let (leader, members) = fleet.vhost.members("url_queue_ttl").await;
    assert_eq!(members.len(), 3, "{members:?}");
    let first = cluster::address_of(&leader);

    let sinks = "[[sinks]]\nkind = \"jsonl\"\npath = \"items/{worker}.jsonl\"\n";
    fs::write(fleet.folder.path().join("trawl.toml"), sinks).unwrap();

    let site = Site::serve(PAGES).await;
    site.hold_after(BEFORE);
    let worker = || fleet.command(&first, &["worker", "--concurrency", "8", "-q"]).spawn().unwrap();
    let workers = [worker(), worker()];
    let sitemap = format!("{}/sitemap.xml", site.origin);
    let produced = fleet.producer(&first, &[&sitemap, "--wait"]).spawn().unwrap();
    timeout(LIMIT, site.asked_for(BEFORE)).await.unwrap();
    cluster::kill(&leader);
    site.answer_all();

    let produced = timeout(LIMIT, produced.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(produced.status.code(), Some(0));
    let found = items(fleet.folder.path());
    let pages: HashSet<String> = (0..PAGES).map(|number| site.page(number)).collect();
    assert!(found.iter().cloned().collect::<HashSet<_>>() == pages, "{} items", found.len());
    let log = site.log();
    let asked = |number: usize| log.get(&format!("/page/{number}")).copied().unwrap_or_default();
    let other: Vec<usize> = (0..PAGES).filter(|&number| asked(number) != 1).collect();
    // No worker died, so the messages that came twice were dropped.
    assert!(other.is_empty() && found.len() == PAGES, "not asked for once: {other:?}");
    for mut worker in workers {
        let pid = worker.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        assert_eq!(timeout(LIMIT, worker.wait()).await.unwrap().unwrap().code(), Some(0));
    }
    let survivors = fleet.vhost.members("url_queue_ttl").await.0;
    assert_ne!(survivors, leader, "the queue has a new leader");
}
