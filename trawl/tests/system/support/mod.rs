//! A separate fleet for each test: real processes with a real RabbitMQ and a real Redis.

pub(crate) mod workspace;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;
use trawl_common::settings::ServerUrl;
use trawl_testkit::servers::{self, VirtualHost};

/// Longer than any step of a test.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A separate fleet: a virtual host, a Redis database whose sweeps visit no other test's crawls, and the names of a
/// spider and a crawl.
pub(crate) struct Fleet {
    pub(crate) folder: TempDir,
    pub(crate) vhost: VirtualHost,
    pub(crate) redis: ServerUrl,
    pub(crate) name: String,
}

impl Fleet {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().file_name().unwrap().to_string_lossy().to_ascii_lowercase();
        let (name, redis) = (format!("test{name}"), servers::own_database().await);
        // A spider needs a file, even an empty one.
        let spiders = folder.path().join("spiders");
        std::fs::create_dir(&spiders).unwrap();
        std::fs::write(spiders.join(format!("{name}.toml")), "").unwrap();
        Self { vhost: VirtualHost::new().await, redis, name, folder }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env_clear()
            .env("RABBITMQ_URL", self.vhost.url.reveal())
            .env("REDIS_URL", self.redis.reveal())
            .env("TRAWL__FETCH__ALLOW_PRIVATE", "true")
            .env("TRAWL__POLITENESS__RATE", "unlimited")
            .env("TRAWL__RECOVERY__LOST_AFTER", "4s")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    pub(crate) fn worker(&self, settings: &[(&str, &str)]) -> Child {
        let mut command = self.command(&["worker", "--concurrency", "4", "-q"]);
        command.envs(settings.iter().copied()).spawn().unwrap()
    }

    /// Returns the items in the stream.
    pub(crate) async fn items(&self) -> Vec<Value> {
        let read = timeout(LIMIT, self.command(&["items", "-q"]).output()).await.unwrap().unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let text = String::from_utf8(read.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn producer(&self, source: &str) -> Command {
        let spider = format!("--spider={}", self.name);
        let crawl = format!("--crawl={}", self.name);
        self.command(&["producer", source, &spider, &crawl, "--wait"])
    }
}

/// Runs a command that ends with `code`. Returns its output, trimmed, and its errors.
pub(crate) async fn run(mut command: Command, code: i32) -> (String, String) {
    let output = timeout(LIMIT, command.output()).await.unwrap().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(code), "{out}{error}");
    (out.trim().to_owned(), error)
}

/// Returns the items that a crawl in this folder has written so far.
pub(crate) fn items_in(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("items.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) async fn ends_well(mut worker: Child) {
    let pid = worker.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    assert_eq!(timeout(LIMIT, worker.wait()).await.unwrap().unwrap().code(), Some(0));
}
