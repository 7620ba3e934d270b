//! `trawl crawl` as a person uses it: one process, no server.

mod commands;
mod refusals;
mod resumed;
mod sources;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::items_in;

/// Longer than any step of a test.
const LIMIT: Duration = Duration::from_secs(60);

fn trawl(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    // Only the variables that a test sets: no settings of the machine it runs on.
    command.current_dir(folder).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    command
}

fn crawl(folder: &Path, source: &str) -> Command {
    let mut command = trawl(folder);
    command.args(["crawl", source, "--allow-private", "--rate", "unlimited", "--concurrency", "8", "--json"]);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn crawl_stats(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

fn distinct(items: &[Value], key: &str) -> HashSet<String> {
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

/// Returns the standard output of a command that must succeed.
async fn stdout_of(folder: &Path, words: &[&str]) -> String {
    let output = timeout(LIMIT, trawl(folder).args(words).output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn every_page_of_a_sitemap_becomes_one_item() {
    let site = Site::serve(50).await;
    let folder = tempfile::tempdir().unwrap();
    let output = crawl(folder.path(), &format!("{}/sitemap.xml", site.origin)).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stats = crawl_stats(&output);
    assert_eq!((&stats["status"], &stats["done"]), (&"finished".into(), &50.into()));
    let items = items_in(folder.path());
    assert_eq!((items.len(), distinct(&items, "id").len()), (50, 50));
    for item in &items {
        let number = item["url"].as_str().unwrap().rsplit('/').next().unwrap();
        assert_eq!(item["fields"]["title"], format!("Page {number}"));
        assert_eq!(item["fields"]["link_count"], 1);
    }
    assert!(site.log().values().all(|asked| *asked == 1), "{:?}", site.log());
}

#[tokio::test]
async fn urls_that_are_too_long_are_left_out_and_counted() {
    let site = Site::serve(20).await;
    let folder = tempfile::tempdir().unwrap();
    // One byte less than the start, which is exempt as a person names it, and than the link to the first page.
    let longest = site.page(5).len() - 1;
    let spider = format!("[urls]\nmax_length = {longest}\n[follow]\n");
    fs::write(folder.path().join("short.toml"), spider).unwrap();
    let mut command = crawl(folder.path(), &site.page(5));
    let output = command.args(["--spider", "short.toml"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = crawl_stats(&output);
    assert_eq!(
        (&printed["done"], &printed["reasons"]["left_out:url_length"]),
        (&1.into(), &1.into()),
        "{printed}"
    );
    fs::write(folder.path().join("list.txt"), format!("{}\n{}\n", site.page(1), site.page(10))).unwrap();
    let output = trawl(folder.path())
        .args(["producer", "list.txt", "--dry-run", "-q"])
        .env("TRAWL__URLS__MAX_LENGTH", site.page(1).len().to_string())
        .output();
    let printed = String::from_utf8_lossy(&output.await.unwrap().stdout).into_owned();
    assert!(
        printed.contains(&site.page(1)) && printed.contains("invalid") && printed.contains("urls.max_length"),
        "{printed}"
    );
}

#[tokio::test]
async fn every_out_file_gets_every_page_in_the_format_of_its_extension() {
    let site = Site::serve(20).await;
    let folder = tempfile::tempdir().unwrap();
    let mut command = crawl(folder.path(), &format!("{}/sitemap.xml", site.origin));
    for out in ["a.jsonl", "b.jsonl.gz", "c.csv", "d.parquet", "e.warc.gz", "{spider}.jsonl"] {
        command.args(["--out", out]);
    }
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).ends_with("-> a.jsonl, b.jsonl.gz, c.csv, d.parquet, e.warc.gz, default.jsonl\n"),
        "{}",
        stderr(&output)
    );
    let plain = fs::read_to_string(folder.path().join("a.jsonl")).unwrap();
    let packed = fs::File::open(folder.path().join("b.jsonl.gz")).unwrap();
    let packed = std::io::read_to_string(flate2::read::MultiGzDecoder::new(packed)).unwrap();
    let table = fs::read_to_string(folder.path().join("c.csv")).unwrap();
    assert_eq!((plain.lines().count(), packed == plain, table.lines().count()), (20, true, 21));
    // All files are finished when the command ends.
    let names = |folder: &Path| -> Vec<String> {
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    };
    let parquet = names(&folder.path().join("d.parquet"));
    assert!(
        matches!(&parquet[..], [file] if file.starts_with("default-") && file.ends_with(".parquet")),
        "{parquet:?}"
    );
    let archive = folder.path().join("e.warc.gz");
    assert!(names(&archive).iter().all(|name| name.starts_with("default-")), "{:?}", names(&archive));
    let index = names(&archive).into_iter().find(|name| name.ends_with(".cdxj")).unwrap();
    assert_eq!(fs::read_to_string(archive.join(index)).unwrap().lines().count(), 20);
    assert!(folder.path().join("default.jsonl").exists() && !folder.path().join("items.jsonl").exists());
}

#[tokio::test]
async fn a_second_run_fetches_nothing_that_was_crawled() {
    let site = Site::serve(10).await;
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    crawl(folder.path(), &source).output().await.unwrap();
    let again = crawl(folder.path(), &source).output().await.unwrap();
    assert_eq!((again.status.code(), &crawl_stats(&again)["admitted"]), (Some(0), &0.into()));
    assert!(stderr(&again).contains("10 URLs were seen before"), "{}", stderr(&again));
    assert_eq!(items_in(folder.path()).len(), 10);
}

#[tokio::test]
async fn a_killed_crawl_goes_on_and_fetches_only_what_is_left() {
    let site = Site::serve(300).await;
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    site.hold_after(100);
    let mut killed = crawl(folder.path(), &source).spawn().unwrap();
    // Eight requests hang; those before them are answered.
    site.asked_for(108).await;
    killed.kill().await.unwrap();
    site.answer_all();

    let output = crawl(folder.path(), &source).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("going on with crawl"), "{}", stderr(&output));
    let stats = crawl_stats(&output);
    assert_eq!(
        (&stats["admitted"], &stats["done"], &stats["pending"]),
        (&300.into(), &300.into(), &0.into())
    );
    assert_eq!(distinct(&items_in(folder.path()), "url").len(), 300);
    let again = site.log().iter().filter(|(path, asked)| path.starts_with("/page/") && **asked > 1).count();
    assert!(again <= 8 + 40, "{again} pages were fetched twice: those in flight, and few not yet settled");
}

#[tokio::test]
async fn ctrl_c_finishes_what_has_begun_and_a_later_run_repeats_nothing() {
    let site = Site::serve(100).await;
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    site.hold_after(20);
    let stopped = crawl(folder.path(), &source).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    site.asked_for(28).await;
    let pid = stopped.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    site.answer_all();
    let output = stopped.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("the same command goes on"), "{}", stderr(&output));

    let output = crawl(folder.path(), &source).output().await.unwrap();
    assert_eq!(crawl_stats(&output)["done"], 100, "{}", stderr(&output));
    let again: Vec<_> =
        site.log().into_iter().filter(|(path, asked)| path.starts_with("/page/") && *asked > 1).collect();
    assert!(again.is_empty(), "{again:?}");
}

#[tokio::test]
async fn the_demo_needs_nothing_and_shows_a_retry_a_dead_letter_and_an_invalid_url() {
    let folder = tempfile::tempdir().unwrap();
    let output = trawl(folder.path()).arg("demo").output().await.unwrap();
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("199 pages") && printed.contains("1 failed") && printed.contains("1 invalid"),
        "{printed}"
    );
    assert_eq!(fs::read_to_string(folder.path().join("demo.jsonl")).unwrap().lines().count(), 199);
}
