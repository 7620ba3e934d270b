//! `trawl crawl` as a person uses it: one process, no server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::many_hosts::{ManyHosts, Plan};
use trawl_testkit::site::Site;

/// No step of a test takes so long.
const LIMIT: Duration = Duration::from_secs(60);

fn trawl(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    // Only what a test sets: no settings of the machine it runs on.
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

fn items(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("items.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn distinct(items: &[Value], key: &str) -> HashSet<String> {
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_page_of_a_sitemap_becomes_one_item() {
    let site = Site::serve(50).await;
    let folder = tempfile::tempdir().unwrap();
    let output = crawl(folder.path(), &format!("{}/sitemap.xml", site.origin)).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stats = crawl_stats(&output);
    assert_eq!((&stats["status"], &stats["done"]), (&"finished".into(), &50.into()));
    let items = items(folder.path());
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
    // As long as the start, which a person names, and the link to the first page.
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
    for out in ["a.jsonl", "b.jsonl.gz", "c.csv", "d.parquet", "e.warc.gz"] {
        command.args(["--out", out]);
    }
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stderr(&output).ends_with("-> a.jsonl, b.jsonl.gz, c.csv, d.parquet, e.warc.gz\n"),
        "{}",
        stderr(&output)
    );
    let plain = fs::read_to_string(folder.path().join("a.jsonl")).unwrap();
    let packed = fs::File::open(folder.path().join("b.jsonl.gz")).unwrap();
    let packed = std::io::read_to_string(flate2::read::MultiGzDecoder::new(packed)).unwrap();
    let table = fs::read_to_string(folder.path().join("c.csv")).unwrap();
    assert_eq!((plain.lines().count(), packed == plain, table.lines().count()), (20, true, 21));
    // Finished when the command ends: nothing is left that is still growing.
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
    assert!(!folder.path().join("items.jsonl").exists());
}

#[tokio::test]
async fn a_second_run_fetches_nothing_that_was_crawled() {
    let site = Site::serve(10).await;
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    crawl(folder.path(), &source).output().await.unwrap();
    let again = crawl(folder.path(), &source).output().await.unwrap();
    assert_eq!((again.status.code(), &crawl_stats(&again)["admitted"]), (Some(0), &0.into()));
    assert!(stderr(&again).contains("nothing new: 10 URLs were crawled before"), "{}", stderr(&again));
    assert_eq!(items(folder.path()).len(), 10);
}

#[tokio::test]
async fn a_killed_crawl_goes_on_and_fetches_only_what_is_left() {
    let site = Site::serve(300).await;
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    site.hold_after(100);
    let mut killed = crawl(folder.path(), &source).spawn().unwrap();
    // Eight requests hang: those before them are answered.
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
    assert_eq!(distinct(&items(folder.path()), "url").len(), 300);
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

/// What a command says on standard output, which ends well.
async fn stdout_of(folder: &Path, words: &[&str]) -> String {
    let output = timeout(LIMIT, trawl(folder).args(words).output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
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
    // The page is there by now.
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
async fn a_state_file_of_other_sources_is_not_mixed_with_these() {
    let site = Site::serve(50).await;
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    site.hold_after(10);
    let mut killed = crawl(folder.path(), &source).spawn().unwrap();
    timeout(LIMIT, site.asked_for(18)).await.unwrap();
    killed.kill().await.unwrap();
    site.answer_all();
    fs::write(folder.path().join("list.txt"), site.page(60)).unwrap();
    let other = crawl(folder.path(), "list.txt").output().await.unwrap();
    let printed = stderr(&other);
    assert_eq!(other.status.code(), Some(2), "{printed}");
    for part in [&source, "--state", "trawl cancel "] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let output = crawl(folder.path(), &source).output().await.unwrap();
    assert_eq!(
        (output.status.code(), &crawl_stats(&output)["done"]),
        (Some(0), &50.into()),
        "{}",
        stderr(&output)
    );
    // With that finished, the file takes another.
    let other = crawl(folder.path(), "list.txt").output().await.unwrap();
    assert_eq!(
        (other.status.code(), &crawl_stats(&other)["admitted"]),
        (Some(3), &1.into()),
        "{}",
        stderr(&other)
    );
}

#[tokio::test]
async fn a_pipe_is_crawled_line_by_line_and_ctrl_c_ends_it_although_it_stays_open() {
    let site = Site::serve(10).await;
    let folder = tempfile::tempdir().unwrap();
    let mut piped = crawl(folder.path(), "-");
    let piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut piped = piped.spawn().unwrap();
    let mut lines = piped.stdin.take().unwrap();
    for number in 0..3 {
        lines.write_all(format!("{}\n", site.page(number)).as_bytes()).await.unwrap();
        // Before the next line is there.
        timeout(LIMIT, site.asked_for(number + 1)).await.unwrap();
    }
    let pid = piped.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let output = timeout(LIMIT, piped.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(items(folder.path()).len(), 3);
    drop(lines);
}

#[tokio::test]
async fn a_source_that_cannot_be_read_is_named_and_the_others_go_on() {
    let site = Site::serve(3).await;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
    let entries = (0..3).map(|number| format!("{}\n", site.page(number))).collect::<String>();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(entries.repeat(1000).as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    write("cut.gz", &gzip[..gzip.len() / 2]);
    write("picture.xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>");
    write("empty.xml", b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>");
    let loop_index =
        format!("<sitemapindex><sitemap><loc>{}/missing.xml</loc></sitemap></sitemapindex>", site.origin);
    write("index.xml", loop_index.as_bytes());
    let long = "x".repeat(10_000_000);
    write(
        "list.txt",
        &[entries.as_bytes(), long.as_bytes(), b"\n/relative\njavascript:alert(1)\n\xff\xfe\n"].concat(),
    );

    let sources = ["list.txt", "gone.xml", "cut.gz", "picture.xml", "empty.xml", "index.xml"];
    let mut command = crawl(folder.path(), sources[0]);
    let output = command.args(&sources[1..]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(crawl_stats(&output)["done"], 3);
    let printed = stderr(&output);
    for expected in [
        "problem: gone.xml: cannot be opened",
        "problem: cut.gz: gzip stream ends early",
        "problem: picture.xml: ",
        "/missing.xml: cannot be fetched: http: 404",
        "warning: empty.xml: no URL in it",
        "4 invalid",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

#[tokio::test]
async fn an_index_that_names_itself_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site::serve(2).await;
    // The site's sitemap, and an index on disk that names it twice.
    let entry = format!("<sitemap><loc>{}/sitemap.xml</loc></sitemap>", site.origin);
    fs::write(folder.path().join("index.xml"), format!("<sitemapindex>{entry}{entry}</sitemapindex>"))
        .unwrap();
    let output = crawl(folder.path(), "index.xml").output().await.unwrap();
    assert_eq!((output.status.code(), &crawl_stats(&output)["done"]), (Some(0), &2.into()));
    assert_eq!(site.log()["/sitemap.xml"], 1);
}

#[tokio::test]
async fn a_page_that_is_missing_is_exit_code_3() {
    let site = Site::serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    let output = crawl(folder.path(), &site.page(99)).output().await.unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let listed = stdout_of(folder.path(), &["dlq", "list", "--state", "crawl.db"]).await;
    assert!(listed.contains(&site.page(99)), "{listed}");
    fs::write(folder.path().join("list.txt"), format!("{}\n{}\n", site.page(0), site.page(98))).unwrap();
    let output = crawl(folder.path(), "list.txt").output().await.unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(crawl_stats(&output)["failed"], 1);
}

#[tokio::test]
async fn a_private_address_is_refused_unless_allowed() {
    let site = Site::serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    let output = trawl(folder.path()).args(["crawl", &site.page(0)]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("fetch.allow_private"), "{}", stderr(&output));
    assert!(site.log().is_empty());
}

#[tokio::test]
async fn a_wrong_setting_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value, expected) in [
        ("TRAWL__FETCH__TIMOUT", "5s", "timout"),
        ("TRAWL__QUEUES__BULK__TTL", "soon", "1h 30m"),
        ("TRAWL__ITEMS__FIELDS__X", "p[", "items.fields"),
        ("REDIS_URL", "http://user:s3cret@h", "redis.url"),
    ] {
        let output = crawl(folder.path(), "list.txt").env(name, value).output().await.unwrap();
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {printed}");
        assert!(
            printed.contains(expected) && printed.lines().count() == 1 && !printed.contains("s3cret"),
            "{name}: {printed}"
        );
    }
}

#[tokio::test]
async fn a_server_that_is_away_is_one_line_without_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let away = "redis://:s3cret@127.0.0.1:1/0";
    let output = trawl(folder.path()).arg("status").env("REDIS_URL", away).output().await.unwrap();
    let printed = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{printed}");
    assert!(
        printed.contains("127.0.0.1:1") && !printed.contains("s3cret") && printed.lines().count() == 1,
        "{printed}"
    );
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
