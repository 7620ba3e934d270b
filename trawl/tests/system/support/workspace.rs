//! A folder with one spider, which one process crawls without a server.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::items_in;

/// A folder with a spider.
pub(crate) struct Workspace {
    folder: TempDir,
    file: &'static str,
    env: &'static [(&'static str, &'static str)],
    flags: &'static [&'static str],
}

/// A crawl that has ended.
pub(crate) struct Crawl {
    pub(crate) code: Option<i32>,
    pub(crate) stats: Value,
    pub(crate) items: Vec<Value>,
    pub(crate) log: String,
}

impl Workspace {
    /// Returns a folder with this spider's file. Commands have this environment, and crawls these flags besides.
    pub(crate) fn new(
        file: &'static str,
        text: &str,
        env: &'static [(&'static str, &'static str)],
        flags: &'static [&'static str],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(file), text).unwrap();
        fs::write(folder.path().join("trawl.toml"), "[retry]\nbackoff = '10ms'\n").unwrap();
        Self { folder, file, env, flags }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        command.args(words).current_dir(self.path()).env_clear().stdin(Stdio::null()).kill_on_drop(true);
        command.envs(self.env.iter().copied());
        command
    }

    /// Returns the command that crawls a spider's file.
    pub(crate) fn crawling(&self, file: &str) -> Command {
        let mut command =
            self.command(&["crawl", "--allow-private", "--rate=unlimited", "--json", "-v", "--spider", file]);
        command.args(self.flags);
        command
    }

    pub(crate) async fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().await.unwrap()
    }

    pub(crate) async fn crawl(&self) -> Crawl {
        let output = self.crawling(self.file).output().await.unwrap();
        let log = String::from_utf8(output.stderr).unwrap();
        let stats = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{log}"));
        Crawl { code: output.status.code(), stats, items: items_in(self.path()), log }
    }

    /// Returns the mistakes of the spider.
    pub(crate) async fn mistakes(&self) -> String {
        let output = self.run(&["spider", "check", self.file]).await;
        assert_ne!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    }
}
