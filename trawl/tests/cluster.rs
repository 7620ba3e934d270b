//! A crawl on three nodes of RabbitMQ and three masters of Redis, each with a replica, continues when a node dies.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::fs;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use trawl_common::settings::Node;
use trawl_testkit::cluster;
use trawl_testkit::servers::VirtualHost;
use trawl_testkit::shard::Shard;
use trawl_testkit::site::Site;

const LIMIT: Duration = Duration::from_secs(90);
/// Enough for the producer to be still publishing when the node dies.
const PAGES: usize = 4000;
/// Number of pages requested by then.
const BEFORE: usize = 50;

struct Fleet {
    folder: TempDir,
    /// Never deleted: that would wait for the dead node. It disappears with the cluster.
    vhost: ManuallyDrop<VirtualHost>,
    name: String,
}

impl Fleet {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().file_name().unwrap().to_string_lossy().to_ascii_lowercase();
        let vhost = ManuallyDrop::new(VirtualHost::new().await);
        let sinks = "[[sinks]]\nkind = \"jsonl\"\npath = \"items/{worker}.jsonl\"\n";
        fs::write(folder.path().join("trawl.toml"), sinks).unwrap();
        Self { vhost, name: format!("cluster{name}"), folder }
    }

    /// A program that knows all nodes, and tries `first` first.
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

/// Returns the URL of each item.
fn items(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder.join("items")).unwrap();
    let text: String = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let url = |line| serde_json::from_str::<Value>(line).unwrap()["url"].as_str().unwrap().to_owned();
    text.lines().map(url).collect()
}

async fn end_well(workers: [Child; 2]) {
    for mut worker in workers {
        let pid = worker.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        assert_eq!(timeout(LIMIT, worker.wait()).await.unwrap().unwrap().code(), Some(0));
    }
}

/// A crawl of a list by two workers. Every tenth page is missing, and one always fails.
struct Crawl {
    fleet: Fleet,
    site: Site,
    good: HashSet<String>,
    bad: HashSet<String>,
    /// The server run in which its stats were created.
    run: String,
    produced: Child,
    workers: [Child; 2],
}

/// Time after which a silent process counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(4);

/// Number of pages that a worker fetches at once.
const CONCURRENCY: usize = 8;
const CONCURRENT: &str = "--concurrency=8";

/// Number of URLs on the list.
const LISTED: usize = 900;

impl Crawl {
    /// Starts a crawl and waits for `asked` requests; the site answers only the first `open`.
    async fn begin(asked: usize, open: usize) -> Self {
        let (fleet, site) = (Fleet::new().await, Site::serve(LISTED).await);
        site.hold_after(open);
        let (mut good, mut bad) = (HashSet::new(), HashSet::new());
        let mut list = String::new();
        for number in 0..LISTED {
            let (url, kind) = match number {
                100 => (format!("{}/broken", site.origin), &mut bad),
                _ if number % 10 == 0 => (site.page(LISTED + number), &mut bad),
                _ => (site.page(number), &mut good),
            };
            list += &format!("{url}\n");
            kind.insert(url);
        }
        fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
        let spawn = |mut command: Command| hurried(&mut command).spawn().unwrap();
        let first = cluster::address_of("mq1");
        let workers = [(); 2].map(|()| spawn(fleet.command(&first, &["worker", CONCURRENT, "-q"])));
        let produced = spawn(fleet.producer(&first, &["list.txt", "--wait"]));
        timeout(LIMIT, site.asked_for(asked)).await.unwrap();
        let run = run(&fleet).await;
        Self { fleet, site, good, bad, run, produced, workers }
    }

    /// Returns the nodes of Redis that hold its records.
    async fn shard(&self) -> Shard {
        Shard::new(&key(&self.fleet)).await
    }

    /// Lets it run until `asked` pages have been requested; the site answers only the first `open`.
    async fn goes_on(&self, asked: usize, open: usize) {
        self.site.hold_after(open);
        timeout(LIMIT, self.site.asked_for(asked)).await.unwrap();
    }

    /// Waits for the end and checks items, dead letters and counters. Returns the pages that were not requested exactly
    /// once, and the number of items.
    async fn ends(self) -> (Vec<(String, usize)>, usize) {
        self.site.answer_all();
        let produced = timeout(LIMIT, self.produced.wait_with_output()).await.unwrap().unwrap();
        assert_eq!(produced.status.code(), Some(3), "it has dead letters");
        end_well(self.workers).await;
        let name = &self.fleet.name;
        let stats = &printed(&self.fleet, &["status", name, "--json"]).await[0];
        let counts =
            ["admitted", "done", "failed", "pending"].map(|count| stats[count].as_u64().unwrap() as usize);
        assert_eq!(counts, [LISTED, self.good.len(), self.bad.len(), 0], "{stats}");
        assert_eq!(stats["status"], "finished");
        let dead_letters = printed(&self.fleet, &["dlq", "list", "--crawl", name, "--json"]).await;
        let urls = dead_letters.iter().map(|dead_letter| dead_letter["url"].as_str().unwrap().to_owned());
        assert_eq!(urls.collect::<HashSet<_>>(), self.bad);
        let items = items(self.fleet.folder.path());
        assert_eq!(items.iter().cloned().collect::<HashSet<_>>(), self.good);
        // The run changes when the barrier is set.
        assert_ne!(run(&self.fleet).await, self.run, "the end was not held up to look for what was lost");
        let asked = self.site.log().into_iter();
        let again = asked.filter(|(path, asked)| path.starts_with("/page/") && *asked != 1).collect();
        (again, items.len())
    }
}

/// Sets short recovery times, so that the program recovers within seconds.
fn hurried(command: &mut Command) -> &mut Command {
    command
        .env("TRAWL__RECOVERY__LOST_AFTER", format!("{}s", LOST_AFTER.as_secs()))
        .env("TRAWL__RETRY__MAX", "1")
        .env("TRAWL__RETRY__BACKOFF", "1s")
}

/// Returns the JSON lines that a command prints.
async fn printed(fleet: &Fleet, words: &[&str]) -> Vec<Value> {
    let mut command = fleet.command(&cluster::address_of("mq1"), words);
    let output = timeout(LIMIT, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the key of the crawl's stats.
fn key(fleet: &Fleet) -> String {
    format!("{{crawled_urls:{name}}}:crawl:{name}", name = fleet.name)
}

/// Returns the server run that the crawl's stats belong to.
async fn run(fleet: &Fleet) -> String {
    let mut link = trawl_backends::redis::connect(&cluster::redis()).await.unwrap();
    redis::cmd("HGET").arg(key(fleet)).arg("run").query_async(&mut link).await.unwrap()
}

#[tokio::test]
async fn a_crawl_goes_on_and_fetches_each_page_once_when_its_master_of_redis_changes_and_changes_back() {
    let crawl = Crawl::begin(200, 500).await;
    let mut shard = crawl.shard().await;
    timeout(LIMIT, shard.fail_over()).await.unwrap();
    crawl.goes_on(500, 800).await;
    timeout(LIMIT, shard.fail_over()).await.unwrap();
    let good = crawl.good.len();
    let (again, items) = crawl.ends().await;
    assert!(again.is_empty() && items == good, "not asked for once: {again:?}");
}

#[tokio::test]
async fn a_crawl_ends_whole_when_its_master_of_redis_dies_with_what_its_replica_had_not_got_yet() {
    let crawl = Crawl::begin(200, 400).await;
    let mut shard = crawl.shard().await;
    timeout(LIMIT, shard.cut_replication()).await.unwrap();
    crawl.goes_on(600, 600).await;
    timeout(LIMIT, shard.kill_master()).await.unwrap();
    let again = crawl.ends().await.0.len();
    assert!((1..=600).contains(&again), "{again} pages were asked for once more");
}

#[tokio::test]
async fn a_crawl_stays_paused_when_its_master_of_redis_dies_before_the_replica_knows_of_the_pause() {
    let crawl = Crawl::begin(200, 400).await;
    let mut shard = crawl.shard().await;
    timeout(LIMIT, shard.cut_replication()).await.unwrap();
    let words = ["pause", &crawl.fleet.name];
    let ordered = crawl.fleet.command(&cluster::address_of("mq1"), &words).output().await.unwrap();
    assert!(ordered.status.success(), "{}", String::from_utf8_lossy(&ordered.stderr));
    // Pages that both workers had begun may still be asked for.
    let most = asked(&crawl.site) + 2 * CONCURRENCY;
    crawl.site.answer_all();
    timeout(LIMIT, shard.kill_master()).await.unwrap();
    timeout(LIMIT, await_status(&crawl.fleet, "paused")).await.unwrap();
    // Long enough for a sweep to send again what it takes for lost.
    sleep(2 * LOST_AFTER).await;
    let asked = asked(&crawl.site);
    assert!(asked <= most, "{asked} pages were asked for, and {most} may be");
    let words = ["resume", &crawl.fleet.name];
    assert!(crawl.fleet.command(&cluster::address_of("mq1"), &words).status().await.unwrap().success());
    let again = crawl.ends().await.0.len();
    assert!(again <= 400, "{again} pages were asked for once more");
}

/// Returns the number of requests so far.
fn asked(site: &Site) -> usize {
    site.log().values().sum()
}

/// Waits until a crawl has this status.
async fn await_status(fleet: &Fleet, status: &str) {
    while printed(fleet, &["status", &fleet.name, "--json"]).await[0]["status"] != status {}
}

#[tokio::test]
async fn no_page_is_lost_when_the_node_that_leads_the_bulk_queue_dies_mid_crawl() {
    let fleet = Fleet::new().await;
    // The node that a queue is declared on becomes its leader.
    let declared = fleet.producer(&cluster::address_of("mq2"), &["/dev/null"]).status().await.unwrap();
    assert_eq!(declared.code(), Some(0));
    let (leader, members) = fleet.vhost.members("url_queue_ttl").await;
    assert_eq!(members.len(), 3, "{members:?}");
    let first = cluster::address_of(&leader);

    let site = Site::serve(PAGES).await;
    site.hold_after(BEFORE);
    let worker = || fleet.command(&first, &["worker", CONCURRENT, "-q"]).spawn().unwrap();
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
    // No worker died, so duplicate messages were dropped.
    assert!(other.is_empty() && found.len() == PAGES, "not asked for once: {other:?}");
    end_well(workers).await;
    let survivors = fleet.vhost.members("url_queue_ttl").await.0;
    assert_ne!(survivors, leader, "the queue has a new leader");
}
