//! Replays of crawls that are over: they fetch all that the replayed pages lead to, except the pages that the crawl has
//! fetched.

use std::fs;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::changing_site::{ChangingPage, ChangingSite};

use crate::freshness::{Workspace, asked, item, whole};
use crate::support::{Fleet, LIMIT, ends_well};

/// A page that links to these paths.
fn linking(paths: &[&str]) -> ChangingPage {
    let links: String = paths.iter().map(|path| format!("<a href='{path}'>x</a>")).collect();
    ChangingPage { body: format!("<!doctype html><html><title>x</title>{links}"), ..ChangingPage::default() }
}

/// A page of the shop that fails for now.
fn failing() -> ChangingPage {
    ChangingPage { status: Some(403), ..ChangingPage::default() }
}

/// Puts a start page that links to an entry and a list, and that list, which links to the same entry and another one.
fn furnish(site: &ChangingSite) {
    site.put("/", linking(&["/entry/1", "/list"]));
    site.put("/list", linking(&["/", "/entry/1", "/entry/2"]));
    for entry in ["/entry/1", "/entry/2"] {
        site.put(entry, ChangingPage::titled("x"));
    }
}

#[tokio::test]
async fn a_replay_fetches_what_earlier_crawls_had_seen_and_not_again_what_its_own_crawl_had() {
    let workspace = Workspace::new().await;
    let flags = ["--dedup", "crawl", "--follow"];
    furnish(&workspace.site);
    assert_eq!(workspace.crawl("/", &flags).await.stats["done"], 4);
    workspace.site.put("/list", failing());
    let crawl = workspace.crawl("/", &flags).await;
    assert_eq!((&crawl.stats["done"], &crawl.stats["failed"]), (&2.into(), &1.into()), "{}", crawl.stats);
    furnish(&workspace.site);
    let mut replay = Command::new(env!("CARGO_BIN_EXE_trawl"));
    replay.args(["dlq", "replay", "--state", "crawl.db", "-y"]).current_dir(workspace.folder.path());
    assert!(timeout(LIMIT, replay.status()).await.unwrap().unwrap().success());
    let again = workspace.crawl("/", &flags).await;
    assert_eq!(again.stats["crawl"], format!("{}.r1", crawl.stats["crawl"].as_str().unwrap()));
    // The first is the source, which the command reads again to find out what it is.
    assert_eq!(again.asked, [whole("/"), whole("/entry/2"), whole("/list")]);
    assert_eq!(again.items, [item("/entry/2", "x", "unchanged"), item("/list", "x", "unchanged")]);
    assert_eq!(
        (&again.stats["dedup"], &again.stats["reasons"]["skipped:fresh"]),
        (&"crawl".into(), &2.into())
    );
    assert!(!again.printed.contains("has no effect"), "{}", again.printed);
}

#[tokio::test]
async fn a_replay_of_a_fleet_fetches_what_earlier_crawls_had_seen_too() {
    let (fleet, site) = (Fleet::new().await, ChangingSite::serve().await);
    let file = format!(
        "dedup = 'crawl'\n[start]\nurls = ['{}/']\n[follow]\n[expect]\nitems = 4\nfields.title = 1\n",
        site.origin
    );
    fs::write(fleet.folder.path().join("spiders/shop.toml"), file).unwrap();
    let worker = fleet.worker(&[]);
    let run = async |words: &[&str], code| {
        let ended = timeout(LIMIT, fleet.command(words).output()).await.unwrap().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    };
    furnish(&site);
    run(&["producer", "--spider=shop", "--wait", "-q"], 0).await;
    site.put("/list", failing());
    run(&["producer", "--spider=shop", "--crawl=second", "--wait", "-q"], 6).await;
    furnish(&site);
    asked(&site);
    run(&["dlq", "replay", "--crawl=second", "-q"], 0).await;
    // A part of the crawl owes no number of items.
    run(&["wait", "second.r1", "-q"], 0).await;
    assert_eq!(asked(&site), [whole("/entry/2"), whole("/list")]);
    let stats: Value = serde_json::from_str(&run(&["status", "second.r1", "--json"], 0).await).unwrap();
    assert_eq!((&stats["dedup"], &stats["done"], &stats["skipped"]), (&"crawl".into(), &2.into(), &2.into()));
    ends_well(worker).await;
}
