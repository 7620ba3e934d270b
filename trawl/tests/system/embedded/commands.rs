//! Commands on a state file.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::many_hosts::{ManyHosts, Plan};
use trawl_testkit::site::Site;

use super::{LIMIT, crawl, crawl_stats, stderr, stdout_of, trawl};

#[tokio::test]
async fn a_crawl_that_ends_names_the_hosts_that_are_left_alone_and_until_when() {
    let world = ManyHosts::serve(&[
        Plan { pages: 3, refuses: Some((usize::MAX, 3_600)), ..Plan::default() },
        Plan { pages: 3, ..Plan::default() },
    ])
    .await
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("list.txt"), world.pages().join("\n")).unwrap();
    let stopped = crawl(folder.path(), "list.txt").stderr(Stdio::piped()).spawn().unwrap();
    timeout(LIMIT, world.asked_for(2 + 1 + 3)).await.unwrap();
    let pid = stopped.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let output = timeout(LIMIT, stopped.wait_with_output()).await.unwrap().unwrap();
    let named: Vec<String> = stderr(&output)
        .lines()
        .filter(|line| line.contains("is left alone until"))
        .map(str::to_owned)
        .collect();
    let begin = format!("{} answered 429 and is left alone until 20", world.host(0));
    assert!(matches!(&named[..], [line] if line.starts_with(&begin)), "{}", stderr(&output));
}

#[tokio::test]
async fn a_running_crawl_can_be_inspected_through_its_state_file_and_logs_its_progress_without_a_terminal() {
    let site = Site::serve(20).await;
    let folder = tempfile::tempdir().unwrap();
    site.hold_after(8);
    let mut running = crawl(folder.path(), &format!("{}/sitemap.xml", site.origin));
    let mut running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    timeout(LIMIT, site.asked_for(16)).await.unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let line = timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(line.contains("8 of 20 pages"), "{line}");
    let shown: Value =
        serde_json::from_str(&stdout_of(folder.path(), &["status", "--state", "crawl.db", "--json"]).await)
            .unwrap();
    assert_eq!((&shown["status"], &shown["done"]), (&"running".into(), &8.into()));
    stdout_of(folder.path(), &["dlq", "list", "--state", "crawl.db"]).await;
    let id = shown["crawl"].as_str().unwrap();
    let refused = trawl(folder.path()).args(["cancel", id, "--state", "crawl.db"]).output().await.unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("in use by another trawl process"), "{}", stderr(&refused));
    site.answer_all();
    assert_eq!(timeout(LIMIT, running.wait()).await.unwrap().unwrap().code(), Some(0));
}

#[tokio::test]
async fn the_state_file_says_what_a_running_crawl_waits_for() {
    let site = Site::serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens there.
    let sink = "[[sinks]]\nkind = 'postgres'\nurl = 'postgres://trawl@127.0.0.1:1/items'\n";
    fs::write(folder.path().join("shop.toml"), sink).unwrap();
    let mut running = crawl(folder.path(), &format!("{}/sitemap.xml", site.origin));
    let running = running.args(["--spider", "shop.toml"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = running.spawn().unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap()).lines();
    let shown = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with("0 of 1 page, 0 failed, 0/s; waits: the worker ") && line.contains("postgres")
            {
                return;
            }
        }
    };
    timeout(LIMIT, shown).await.expect("its own line of progress names the sink, and makes up no time left");
    let told = async {
        loop {
            let shown = stdout_of(folder.path(), &["status", "latest", "--state", "crawl.db"]).await;
            if shown.lines().any(|line| line.starts_with("waits: the worker ") && line.contains("postgres")) {
                return;
            }
        }
    };
    timeout(LIMIT, told).await.expect("and so does the state file");
    running.kill().await.unwrap();
}

#[tokio::test]
async fn what_failed_is_listed_shown_sent_again_and_purged_by_the_state_file_that_the_summary_names() {
    let site = Site::serve(3).await;
    let folder = tempfile::tempdir().unwrap();
    let list: String = (0..5).map(|number| format!("{}\n", site.page(number))).collect();
    fs::write(folder.path().join("list.txt"), list).unwrap();
    let output = crawl(folder.path(), "list.txt").output().await.unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("2 failed: `trawl dlq list --state crawl.db`\n"), "{}", stderr(&output));
    let dlq = |words: &[&'static str]| {
        [&["dlq"], words, &["--state", "crawl.db"]]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let run = async |words: Vec<String>| {
        stdout_of(folder.path(), &words.iter().map(String::as_str).collect::<Vec<_>>()).await
    };
    let listed = run(dlq(&["list"])).await;
    assert!(listed.lines().count() == 2 && listed.contains(&site.page(3)), "{listed}");
    let mut show = dlq(&["show"]);
    show.push(site.page(4));
    assert!(run(show).await.contains("404"));
    // Now the page exists.
    site.grow(4);
    run(dlq(&["replay", "--yes"])).await;
    let output = crawl(folder.path(), "list.txt").output().await.unwrap();
    assert_eq!(
        (output.status.code(), &crawl_stats(&output)["done"]),
        (Some(3), &1.into()),
        "{}",
        stderr(&output)
    );
    assert_eq!(run(dlq(&["list"])).await.lines().count(), 1);
    run(dlq(&["purge", "--yes"])).await;
    assert_eq!(run(dlq(&["list"])).await, "");
}

#[tokio::test]
async fn a_start_page_that_failed_before_is_named_with_the_command_that_sends_it_again() {
    let site = Site::serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    let crawl = async || crawl(folder.path(), &site.page(1)).arg("-q").output().await.unwrap();
    assert_eq!(crawl().await.status.code(), Some(3));
    site.grow(2);
    let again = crawl().await;
    let replay =
        "1 URL failed before; `trawl dlq replay --spider default --state crawl.db` sends again what failed\n";
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(
        stderr(&again).starts_with("warning: nothing came of crawl ") && stderr(&again).ends_with(replay),
        "{}",
        stderr(&again)
    );
    stdout_of(folder.path(), &["dlq", "replay", "--spider", "default", "--state", "crawl.db"]).await;
    assert_eq!(crawl_stats(&crawl().await)["done"], 1);
}

#[tokio::test]
async fn a_url_is_explained_and_what_was_crawled_is_forgotten_on_request() {
    let site = Site::serve(3).await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let print = async |words: &[&str]| {
        let output = trawl(folder).args(words).args(["--state", "crawl.db"]).output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
        String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output)
    };
    let refused = async |words: &[&str]| {
        let output = trawl(folder).args(words).args(["--state", "crawl.db"]).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
    };
    let sitemap = format!("{}/sitemap.xml", site.origin);
    let first = crawl(folder, &sitemap).output().await.unwrap();
    let stats = crawl_stats(&first);
    assert_eq!(stats["done"], 3);
    let page = site.page(1);
    let printed = print(&["url", &page]).await;
    assert!(printed.contains("The spider default has seen it"), "{printed}");
    refused(&["url", "http://nowhere.example/"]).await;
    let top = print(&["top", "--once"]).await;
    assert!(top.contains("100 %") && top.contains("3 of 3"), "{top}");
    let top: Value = serde_json::from_str(&print(&["top", "--json"]).await).unwrap();
    assert_eq!((&top["crawls"][0]["done"], &top["hosts"]), (&3.into(), &Value::Array(Vec::new())));

    refused(&["seen", "forget", &page]).await;
    let printed = print(&["seen", "forget", &page, "--yes"]).await;
    assert!(printed.contains("has forgotten 1 URL"), "{printed}");
    let again = crawl_stats(&crawl(folder, &sitemap).output().await.unwrap());
    assert_eq!(
        (&again["admitted"], &again["done"]),
        (&1.into(), &1.into()),
        "it is new, and nothing else is"
    );
    let printed = print(&["seen", "forget", "--host", "127.0.0.1", "--yes"]).await;
    assert!(printed.contains("no URL of 127.0.0.1 is kept"), "the file has fingerprints: {printed}");
    let printed = print(&["seen", "forget", "--all", "--yes"]).await;
    assert!(printed.contains("has forgotten 3 URLs"), "{printed}");

    let id = stats["crawl"].as_str().unwrap();
    let printed = print(&["crawls", "forget", id, "--yes"]).await;
    assert!(printed.contains("1 crawl forgotten"), "{printed}");
    refused(&["status", id]).await;
}
