//! A lack of open files is never a URL's fault: real processes with a low limit, and many hosts.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::many_hosts::{ManyHosts, Plan};

use crate::support::{Fleet, ends_well};

const HOSTS: usize = 600;
const PAGES: usize = 2;
const LIMIT: Duration = Duration::from_secs(120);

async fn web(folder: &Path) -> ManyHosts {
    let plan = Plan { pages: PAGES, latency: Duration::from_millis(20), ..Plan::default() };
    let web = ManyHosts::serve(&vec![plan; HOSTS]).await.unwrap();
    std::fs::write(folder.join("list.txt"), web.pages().join("\n")).unwrap();
    web
}

/// Returns the command in a shell that has run `ulimit` before.
fn after(ulimit: &str, command: &Command) -> Command {
    let command = command.as_std();
    let mut limited = Command::new("/bin/sh");
    limited.args(["-c", &format!("ulimit {ulimit} && exec \"$@\""), "sh"]).arg(command.get_program());
    limited.args(command.get_args()).current_dir(command.get_current_dir().unwrap()).env_clear();
    for (name, value) in command.get_envs() {
        limited.env(name, value.unwrap());
    }
    limited.stdin(Stdio::null()).kill_on_drop(true);
    limited
}

async fn crawl(ulimit: &str) -> (Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let _web = web(folder.path()).await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    command.args(["crawl", "list.txt", "--allow-private", "--rate=unlimited", "--json"]);
    // Short retries, so that a failed URL soon becomes a dead letter.
    command.current_dir(folder.path()).env_clear().env("TRAWL__RETRY__BACKOFF", "10ms");
    let output = timeout(LIMIT, after(ulimit, &command).output()).await.unwrap().unwrap();
    let stats = serde_json::from_slice(&output.stdout).unwrap();
    (output, stats)
}

fn said(output: &Output) -> usize {
    String::from_utf8_lossy(&output.stderr).matches("too few open files").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_of_many_hosts_with_few_files_loses_no_page_and_says_what_it_lacks() {
    let (output, stats) = crawl("-n 256").await;
    assert_eq!((&stats["done"], &stats["failed"]), (&(HOSTS * PAGES).into(), &0.into()), "{stats}");
    assert!((1..10).contains(&said(&output)), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soft_limit_is_raised() {
    let (output, stats) = crawl("-S -n 256").await;
    assert_eq!((&stats["done"], &stats["failed"]), (&(HOSTS * PAGES).into(), &0.into()), "{stats}");
    assert_eq!(said(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_few_files_makes_no_dead_letters() {
    let fleet = Fleet::new().await;
    let _web = web(fleet.folder.path()).await;
    let mut command = fleet.command(&["worker"]);
    command.env("TRAWL__RETRY__BACKOFF", "10ms");
    let worker = after("-n 256", &command).spawn().unwrap();
    let mut producer = fleet.producer("list.txt");
    assert_eq!(timeout(LIMIT, producer.status()).await.unwrap().unwrap().code(), Some(0));
    let printed = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    let stats: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!((&stats["done"], &stats["failed"]), (&(HOSTS * PAGES).into(), &0.into()), "{stats}");
    ends_well(worker).await;
}
