//! Errors of commands, and their exit codes.

use std::fs;

use tokio::time::timeout;
use trawl_testkit::hostile::Hostile;
use trawl_testkit::many_hosts::{ManyHosts, Plan};
use trawl_testkit::site::Site;

use super::{LIMIT, crawl, crawl_stats, stderr, stdout_of, trawl};

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
async fn entries_that_are_no_urls_are_exit_code_3_and_listed_by_the_command_that_the_summary_names() {
    let site = Site::serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    for (list, done) in
        [("/relative\nhttp://\n".to_owned(), 0), (format!("/relative\n{}\n", site.page(0)), 1)]
    {
        fs::write(folder.path().join("list.txt"), list).unwrap();
        let output = crawl(folder.path(), "list.txt").arg("-q").output().await.unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert_eq!(crawl_stats(&output)["done"], done);
        let named = "invalid: `trawl dlq list --state crawl.db --reason invalid`\n";
        assert!(stderr(&output).contains(named), "{}", stderr(&output));
    }
}

#[tokio::test]
async fn a_miss_of_what_a_spider_expects_is_exit_code_6_though_urls_failed_and_waiting_reports_it_too() {
    let site = Site::serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    let urls = [site.page(0), site.page(1)];
    fs::create_dir(folder.path().join("spiders")).unwrap();
    let file = format!("[start]\nurls = {urls:?}\n[expect]\ndone = 2\n");
    fs::write(folder.path().join("spiders/shop.toml"), file).unwrap();
    let mut command = trawl(folder.path());
    let crawled = command.args(["crawl", "--spider", "shop", "--allow-private", "--rate", "unlimited", "-q"]);
    let mut waiting = trawl(folder.path());
    let waited = waiting.args(["wait", "latest", "--state", "crawl.db", "-q"]);
    for command in [crawled, waited] {
        let output = command.output().await.unwrap();
        assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
        for told in ["[expect] done: 1, and 2 were expected", "1 failed: `trawl dlq list "] {
            assert!(stderr(&output).contains(told), "{told}: {}", stderr(&output));
        }
    }
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

/// Items were appended to whatever file was named, and what followed its last line feed was cut off.
#[tokio::test]
async fn a_file_that_is_not_trawls_is_no_place_for_items_and_neither_is_what_the_crawl_begins_with() {
    let site = Site::serve(3).await;
    let folder = tempfile::tempdir().unwrap();
    let list = format!("{}\n{}", site.page(1), site.page(2));
    for (name, text) in [("list.txt", &*list), ("mine.json", "{\"mine\": 1}")] {
        let path = folder.path().join(name);
        fs::write(folder.path().join("list.txt"), &list).unwrap();
        fs::write(&path, text).unwrap();
        let output = crawl(folder.path(), "list.txt").args(["--out", name]).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("another file"), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[tokio::test]
async fn a_crawl_below_its_quality_pauses_and_goes_on_when_the_command_is_run_again() {
    let site = Site::serve(1_000).await;
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("spiders")).unwrap();
    let file = format!(
        "[start]\nsitemaps = ['{}/sitemap.xml']\n[fields]\nname = {{ css = '.no-such', required = true }}\n\
         [quality]\nwindow = 20\nrequired = 0.9\n",
        site.origin
    );
    fs::write(folder.path().join("spiders/shop.toml"), file).unwrap();
    let mut done = 0;
    for _ in 0..2 {
        let mut command = trawl(folder.path());
        let crawled = command.args(["crawl", "--spider", "shop", "--allow-private", "--rate", "100/s"]);
        let output = crawled.args(["--json", "-q"]).output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let why = "[quality] required: 0 % of the last ";
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        let stats = crawl_stats(&output);
        assert!(stats["held"].as_str().unwrap().starts_with(why), "{stats}");
        let now = stats["done"].as_u64().unwrap();
        assert!((20..200).contains(&(now - done)), "{done} and {now}");
        done = now;
        let listed = stdout_of(folder.path(), &["status", "--state", "crawl.db"]).await;
        assert!(listed.contains(why), "{listed}");
    }
}

#[tokio::test]
async fn links_to_addresses_that_may_not_be_asked_are_not_taken_in() {
    let hostile = Some(Hostile::LinksToPrivateAddresses);
    let site = ManyHosts::serve(&[Plan { pages: 1, hostile, ..Plan::default() }]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let spider = "allowed_domains = ['*']\n[follow]\ndepth = 1\n";
    fs::write(folder.path().join("far.toml"), spider).unwrap();
    fs::write(folder.path().join("list.txt"), site.pages().join("\n")).unwrap();
    let mut command = trawl(folder.path());
    command.args(["crawl", "list.txt", "--spider", "far.toml", "--rate", "unlimited", "--json"]);
    command.env("TRAWL__FETCH__ALLOW_NETWORKS", "127.1.0.0/16");
    let output = timeout(LIMIT, command.output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stats = crawl_stats(&output);
    assert_eq!((&stats["admitted"], &stats["done"]), (&1.into(), &1.into()), "{stats}");
}
