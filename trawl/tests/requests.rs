//! Requests of spiders' programs, against a site that answers with what it was sent.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use trawl_testkit::echo_site::EchoSite;

/// A folder with the spider `shop`, whose program is this after its imports.
fn spider(file: &str, program: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("spiders/shop");
    fs::create_dir_all(&own).unwrap();
    let handler = "[handler]\nrun = ['/usr/bin/env', 'python3', 'shop.py']\nmode = 'stream'\n";
    fs::write(own.join("spider.toml"), format!("{file}\n{handler}")).unwrap();
    let sdk = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sdk/python/trawl_handler.py");
    fs::copy(sdk, own.join("trawl_handler.py")).unwrap();
    let program = format!("from trawl_handler import *\n{program}\nrun()\n");
    fs::write(own.join("shop.py"), program).unwrap();
    folder
}

/// A list of the page with which a crawl of `site` starts: named by itself, it would be read as a list, for it is JSON.
fn start(folder: &Path, site: &EchoSite) -> &'static str {
    fs::write(folder.join("start.txt"), format!("{}/start\n", site.origin)).unwrap();
    "start.txt"
}

async fn trawl(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    command.args(words).current_dir(folder).env_clear();
    command
        .env("TRAWL__RETRY__MAX", "0")
        .env("TRAWL__POLITENESS__BACKOFF", "50ms")
        .env("TRAWL__RETRY__BACKOFF", "50ms");
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Has `shop` crawl what the file `start` lists.
async fn crawl(folder: &Path, start: &str) -> (Option<i32>, Value, String) {
    let words = ["crawl", start, "--spider", "shop", "--allow-private", "--rate", "unlimited", "--json"];
    let (code, stdout, stderr) = trawl(folder, &words).await;
    (code, serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}")), stderr)
}

/// The fields of the items, by what they say under `n`.
fn items(folder: &Path) -> BTreeMap<u64, Value> {
    let items = fs::read_to_string(folder.join("items.jsonl")).unwrap();
    let item = |line: &str| {
        let item: Value = serde_json::from_str(line).unwrap();
        (item["fields"]["n"].as_u64().unwrap(), item)
    };
    items.lines().map(item).collect()
}

#[tokio::test]
async fn a_request_is_sent_with_all_that_it_says_and_its_data_reaches_who_reads_the_page() {
    let site = EchoSite::serve().await;
    let folder = spider(
        "",
        r#"
@handler
def parse(page):
    sent = {"method": page.method, "body": page.text} if page.method == "HEAD" else page.json()
    if page.data is None:
        yield {"n": 0, "method": page.method, "sent": sent}
        search = dict(form={"q": "a b"}, headers={"X-Key": "k"}, cookies={"id": "7"})
        yield page.follow("/search", **search, data={"n": 1})
        yield page.follow("/search", **search, data={"n": 8})
        yield page.follow("/search", method="PUT", json={"q": ["ä"]}, data={"n": 2})
        yield page.follow("/search", data={"n": 3})
        yield page.follow("/search", method="DELETE", data={"n": 4})
        yield page.follow("/search", method="HEAD", data={"n": 5})
    else:
        yield {"n": page.data["n"], "method": page.method, "sent": sent}
"#,
    );
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    assert_eq!((code, &stats["done"]), (Some(0), &json!(6)), "{stats} {stderr}");
    let items = items(folder.path());
    let of = |n: u64, what: &str| items[&n]["fields"]["sent"][what].clone();
    let methods: Vec<Value> = items.values().map(|item| item["fields"]["method"].clone()).collect();
    assert_eq!(methods, ["GET", "POST", "PUT", "GET", "DELETE", "HEAD"], "of two with one body one is taken");
    assert_eq!(methods, (0..6).map(|n| of(n, "method")).collect::<Vec<_>>());
    let header = |n: u64, name: &str| of(n, "headers")[name].clone();
    assert_eq!(of(5, "body"), "", "what is asked by HEAD has no body");
    assert_eq!((of(1, "body"), of(2, "body")), ("q=a+b".into(), r#"{"q": ["ä"]}"#.into()));
    assert_eq!(header(1, "content-type"), "application/x-www-form-urlencoded");
    assert_eq!(header(2, "content-type"), "application/json");
    assert_eq!((header(1, "x-key"), header(1, "cookie")), ("k".into(), "id=7".into()));
    assert_eq!((header(3, "x-key"), header(3, "cookie")), (Value::Null, Value::Null));
    let urls: Vec<&Value> = items.values().skip(1).map(|item| &item["url"]).collect();
    assert_eq!(urls, [&json!(format!("{}/search", site.origin)); 5]);
    let mut ids: Vec<&Value> = items.values().map(|item| &item["id"]).collect();
    ids.dedup();
    assert_eq!(ids.len(), 6, "each is an item of its own");
}

#[tokio::test]
async fn redirects_keep_or_change_the_method_and_take_no_secrets_to_another_origin() {
    let (site, other) = (EchoSite::serve().await, EchoSite::serve().await);
    let program = r#"
@handler
def parse(page):
    if page.data is None:
        secret = dict(headers={"Authorization": "S3", "Content-Type": "text/plain"}, cookies={"id": "S3"})
        for n, path in enumerate(["301/a", "302/b", "303/c", "307/d", "308/e", "307/OTHER/f", "303/OTHER/g", "303/to/303/h"]):
            yield page.follow("/to/" + path, body="x", data={"n": n}, **secret)
        yield page.follow("/to/303/i", method="PUT", body="x", data={"n": 8})
        yield page.follow("/to/302/j", method="PUT", body="x", data={"n": 9})
    else:
        yield {"n": page.data["n"], "sent": page.json(), "method": page.method}
"#;
    let folder = spider("allowed_domains = ['127.0.0.1']", &program.replace("OTHER", &other.origin));
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    assert_eq!((code, &stats["done"]), (Some(0), &json!(11)), "{stats} {stderr}");
    let items = items(folder.path());
    let sent = |n: u64, what: &str| items[&n]["fields"]["sent"][what].clone();
    let ways: Vec<(Value, Value)> = (0..10).map(|n| (sent(n, "method"), sent(n, "body"))).collect();
    let (get, post, put) = (("GET", ""), ("POST", "x"), ("PUT", "x"));
    let expected = [get, get, get, post, post, post, get, get, get, put];
    assert_eq!(ways, expected.map(|(method, body)| (method.into(), body.into())));
    assert_eq!(sent(7, "path"), "/h");
    let header = |n: u64, name: &str| sent(n, "headers")[name].clone();
    for n in 0..5 {
        assert_eq!((header(n, "authorization"), header(n, "cookie")), ("S3".into(), "id=S3".into()), "{n}");
    }
    for n in [5, 6] {
        assert_eq!((header(n, "authorization"), header(n, "cookie")), (Value::Null, Value::Null), "{n}");
    }
    let types: Vec<Value> = [0, 3, 5, 6].map(|n| header(n, "content-type")).into();
    assert_eq!(types, [Value::Null, "text/plain".into(), "text/plain".into(), Value::Null]);
    assert_eq!(items[&3]["final_url"], format!("{}/d", site.origin));
}

#[tokio::test]
async fn a_dead_letter_shows_what_was_asked_and_sends_it_again_when_it_is_replayed() {
    let site = EchoSite::serve().await;
    let program = r#"
@handler
def parse(page):
    if page.data is None:
        yield page.follow("/fails/1", body="precious", headers={"authorization": "S3"}, data={"n": 1})
    else:
        yield {"n": page.data["n"], "sent": page.json()}
"#;
    let folder = spider("", program);
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    assert_eq!((code, &stats["failed"]), (Some(3), &json!(1)), "{stats} {stderr}");
    let state = ["--state", "crawl.db"];
    let (_, listed, _) = trawl(folder.path(), &[&["dlq", "list", "--json"][..], &state].concat()).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let key = listed["url"].as_str().unwrap();
    assert!(key.starts_with(&format!("{}/fails/1#request:", site.origin)), "{key}");
    let (_, shown, _) = trawl(folder.path(), &[&["dlq", "show", key][..], &state].concat()).await;
    for expected in ["POST http", "precious", "headers: authorization", r#"data: {"n":1}"#] {
        assert!(shown.contains(expected), "{shown}");
    }
    assert!(!shown.contains("S3"), "{shown}");
    let of_host = [&["dlq", "replay", "--host", "127.0.0.1"][..], &state].concat();
    let (code, _, stderr) = trawl(folder.path(), &of_host).await;
    assert_eq!((code, stderr.contains("1 dead letter sent again")), (Some(0), true), "{stderr}");
    let (code, stats, stderr) = crawl(folder.path(), "start.txt").await;
    assert_eq!(code, Some(0), "{stats} {stderr}");
    let sent = site.asked("/fails/1");
    assert_eq!(sent.len(), 2);
    assert_eq!((&sent[1]["body"], &sent[1]["headers"]["authorization"]), (&json!("precious"), &json!("S3")));
    assert_eq!(items(folder.path())[&1]["fields"]["sent"]["body"], "precious");
}

#[tokio::test]
async fn a_request_is_tried_again_as_often_as_it_says_itself() {
    let site = EchoSite::serve().await;
    let program = r#"
@handler
def parse(page):
    if page.data is None:
        yield page.follow("/fails/2", data={"n": 2}, retries=2)
        yield page.follow("/fails/1", data={"n": 1})
    else:
        yield {"n": page.data["n"]}
"#;
    let folder = spider("", program);
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    assert_eq!((code, &stats["done"], &stats["failed"]), (Some(3), &json!(2), &json!(1)), "{stderr}");
    assert_eq!([site.asked("/fails/2").len(), site.asked("/fails/1").len()], [3, 1]);
    assert_eq!(items(folder.path()).into_keys().collect::<Vec<_>>(), [2]);
}

/// A spider whose program yields what it is given.
fn plain_spider() -> TempDir {
    spider(
        "",
        "@handler\ndef parse(page):\n    yield {\"n\": (page.data or {}).get(\"n\", 0), \"sent\": page.json()}",
    )
}

#[tokio::test]
async fn a_list_has_requests_beside_urls_and_names_each_line_that_is_neither() {
    let site = EchoSite::serve().await;
    let folder = plain_spider();
    let origin = &site.origin;
    let list = format!(
        r#"{{"url": "{origin}/a", "method": "POST", "body": "x", "headers": {{"authorization": "k"}}, "data": {{"n": 1}}}}
{origin}/b

{{"url": "{origin}/c", "headers": {{"authorization": "S3"}}, "metod": "PUT"}}
{{"url": "{origin}/d", "body": "S3"
no url
{{"url": "{origin}/e", "method": "PUT", "data": {{"n": 2}}, "priority": 1}}
"#
    );
    fs::write(folder.path().join("list.ndjson"), &list).unwrap();
    let preview = ["producer", "--spider", "shop", "list.ndjson", "--dry-run"];
    let (code, shown, stderr) = trawl(folder.path(), &preview).await;
    assert_eq!(code, Some(0), "{stderr}");
    for expected in [
        r#"(POST, 1 bytes, headers authorization, data {"n":1})"#,
        &format!("{origin}/b\n"),
        "(list.ndjson, line 4: a request has no `metod`: did you mean `method`?",
        "(list.ndjson, line 5: not JSON",
        "(list.ndjson, line 6: not an absolute URL",
        "priority  -       ",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("S3") && !stderr.contains("S3"), "{shown}{stderr}");
    assert!(stderr.contains("3 URLs would be admitted, if new, 3 invalid"), "{stderr}");
    let (code, stats, stderr) = crawl(folder.path(), "list.ndjson").await;
    assert_eq!((code, &stats["done"]), (Some(0), &json!(3)), "{stderr}");
    assert_eq!(stats["reasons"], json!({"dropped:invalid": 3}), "{stats}");
    let items = items(folder.path());
    let of = |n: u64, what: &str| items[&n]["fields"]["sent"][what].clone();
    let asked: Vec<(Value, Value)> = (0..3).map(|n| (of(n, "method"), of(n, "path"))).collect();
    let expected = [("GET", "/b"), ("POST", "/a"), ("PUT", "/e")];
    assert_eq!(asked, expected.map(|(method, path)| (method.into(), path.into())));
    let list = ["dlq", "list", "--json", "--state", "crawl.db"];
    let (_, listed, _) = trawl(folder.path(), &list).await;
    assert!(listed.contains("list.ndjson, line 4:") && !listed.contains("S3"), "{listed}");
}

#[tokio::test]
async fn a_request_needs_no_program_and_is_shown_with_how_it_asks() {
    let site = EchoSite::serve().await;
    let folder = tempfile::tempdir().unwrap();
    let line = json!({"url": format!("{}/fails/1", site.origin), "method": "PUT", "body": "x", "cookies": {"id": "S3"}});
    fs::write(folder.path().join("requests.jsonl"), line.to_string()).unwrap();
    let words = ["crawl", "requests.jsonl", "--allow-private", "--rate", "unlimited", "--json"];
    let (code, _, stderr) = trawl(folder.path(), &words).await;
    assert_eq!(code, Some(3), "{stderr}");
    let state = ["--state", "crawl.db"];
    let (_, listed, _) = trawl(folder.path(), &[&["dlq", "list", "--json"][..], &state].concat()).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let key = listed["url"].as_str().unwrap();
    let (code, shown, stderr) = trawl(folder.path(), &[&["url", key][..], &state].concat()).await;
    assert_eq!(code, Some(3), "{stderr}");
    assert!(shown.contains("PUT, 1 bytes, cookies id") && !shown.contains("S3"), "{shown}");
    let (_, shown, _) = trawl(folder.path(), &[&["url", key, "--json"][..], &state].concat()).await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["request"]["method"], &shown["request"]["body_bytes"]), (&json!("PUT"), &json!(1)));
}

#[tokio::test]
async fn a_task_asks_for_requests() {
    let site = EchoSite::serve().await;
    let program = r#"
@task_handler
def work(task):
    yield Follow(task.recipe, body="x", data={"n": 1})

@handler
def parse(page):
    yield {"n": page.data["n"], "sent": page.json(), "referrer": page.referrer}
"#;
    let folder = spider("allowed_domains = ['127.0.0.1']", program);
    fs::write(folder.path().join("tasks.jsonl"), format!("\"{}/x\"\n", site.origin)).unwrap();
    let (code, stats, stderr) = crawl(folder.path(), "tasks.jsonl").await;
    assert_eq!((code, &stats["done"]), (Some(0), &json!(2)), "{stats} {stderr}");
    let item = &items(folder.path())[&1];
    assert_eq!(
        (&item["fields"]["sent"]["method"], &item["fields"]["sent"]["body"]),
        (&json!("POST"), &json!("x"))
    );
    assert!(item["fields"]["referrer"].as_str().unwrap().starts_with("task:"), "{item}");
}

#[tokio::test]
async fn a_request_for_any_status_is_given_whatever_the_host_answers() {
    let site = EchoSite::serve().await;
    let program = r#"
@handler
def parse(page):
    if page.data is None:
        for n, path in enumerate(["to/302/a", "to/500/b", "to/404/c", "to/503/d", "to/304/e", "fails/9"]):
            yield page.follow("/" + path, data={"n": n}, any_status=True)
        yield page.follow("/x", data={"n": 6}, any_status=True, method="HEAD")
        yield page.follow("/to/503/y", data={"n": 7}, any_status=True, method="HEAD")
    else:
        yield {"n": page.data["n"], "status": page.status, "location": page.header("location"), "body": page.text}
"#;
    let folder = spider("", program);
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    assert_eq!((code, &stats["done"]), (Some(0), &json!(9)), "{stats} {stderr}");
    let items = items(folder.path());
    let of = |n: u64| (items[&n]["status"].clone(), items[&n]["fields"]["location"].clone());
    let expected = [
        (302, Some("/a")),
        (500, Some("/b")),
        (404, Some("/c")),
        (503, Some("/d")),
        (304, Some("/e")),
        (500, None),
        (200, None),
        (503, Some("/y")),
    ];
    assert_eq!((0..8).map(of).collect::<Vec<_>>(), expected.map(|(status, to)| (json!(status), json!(to))));
    assert!(site.asked("/a").is_empty(), "no redirect is followed");
    let (_, log, _) = trawl(folder.path(), &["logs", "--state", "crawl.db"]).await;
    assert!(log.contains("is left alone until"), "{log}");
}

#[tokio::test]
async fn what_a_spider_does_not_allow_is_left_out_with_a_warning() {
    let site = EchoSite::serve().await;
    let program = r#"
@handler
def parse(page):
    if page.data is None:
        yield page.follow("http://elsewhere.example/x", data={"n": 1})
        for n in range(2):
            yield page.follow("http://elsewhere.example/y", data={"n": n}, unique=str(n))
        yield page.follow("http://elsewhere.example/link")
        yield Follow("http://a:b/", data=1)
        yield page.follow("/here", data={"n": 0})
    else:
        yield {"n": page.data["n"]}
"#;
    let folder = spider("", program);
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    assert_eq!((code, &stats["done"]), (Some(0), &json!(2)), "{stats} {stderr}");
    for left_out in
        ["requests left out: 3, as that for http://elsewhere.example/x", "`http://a:b/` is no URL"]
    {
        assert!(stderr.contains(left_out), "{stderr}");
    }
}

#[tokio::test]
async fn pages_that_a_program_names_are_followed_however_deep() {
    let site = EchoSite::serve().await;
    let program = r#"
@handler
def parse(page):
    n = (page.data or 0) + 1
    yield {"n": n}
    if n < 40:
        yield page.follow("/a/a/a/a/%d" % n, data=n)
"#;
    let folder = spider("", program);
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    assert_eq!((code, &stats["done"]), (Some(0), &json!(40)), "{stats} {stderr}");
}
