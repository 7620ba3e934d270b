//! Requests of spiders' programs, against a site that echoes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use trawl_testkit::echo_site::EchoSite;

/// A folder with the spider `shop`, whose program has this text after its imports.
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

/// Writes a list with the page that a crawl of `site` starts with. Named directly, the page itself would be read as a
/// list because it is JSON.
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

/// Crawls the list `start` with `shop`.
async fn crawl(folder: &Path, start: &str) -> (Option<i32>, Value, String) {
    let words = ["crawl", start, "--spider", "shop", "--allow-private", "--rate", "unlimited", "--json"];
    let (code, stdout, stderr) = trawl(folder, &words).await;
    (code, serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}")), stderr)
}

/// Returns the fields of the items by their field `n`.
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
    let asks = json!({"method": "POST", "body": "precious", "body_bytes": 8, "headers": ["authorization"], "data": {"n": 1}});
    for (name, value) in asks.as_object().unwrap() {
        assert_eq!(listed["request"][name], *value, "{listed}");
    }
    let (_, lines, _) = trawl(folder.path(), &[&["dlq", "list"][..], &state].concat()).await;
    assert!(lines.contains(&format!("{key}  POST precious  ")), "{lines}");
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

/// A spider whose program yields the data it is given.
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
        r#"(POST, 1 byte, headers authorization, data {"n":1})"#,
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
    assert_eq!((code, &stats["done"]), (Some(3), &json!(3)), "{stderr}");
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
    assert!(shown.contains("PUT, 1 byte, cookies id") && !shown.contains("S3"), "{shown}");
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

/// Yields `REQUESTS`, each with the number of its position, and handles failures: after that of the hundredth it sends
/// another request.
const TAKES_FAILURES_IN: &str = r#"
@handler
def parse(page):
    if page.data is None:
        for n, (url, more) in enumerate(REQUESTS):
            yield page.follow(url, data={"n": n}, **more)
    elif page.failure is None:
        yield {"n": page.data["n"], "status": page.status}
    else:
        of = page.failure
        at(page.data["n"], of)
        yield {"n": page.data["n"], "of": [of.kind, of.skipped, of.attempt, of.status, page.text]}
        yield page.follow("SITE/after", data={"n": 100 + page.data["n"]}, unique=str(page.data["n"]))
"#;

/// Returns such a program with requests for `SITE` and `NOWHERE`, where nothing listens. It calls a function `at` for
/// each failure.
fn takes_failures_in(site: &EchoSite, requests: &str, at: &str) -> String {
    let program = format!("import os\nREQUESTS = [{requests}]\n{at}\n{TAKES_FAILURES_IN}");
    // No other program is likely to take this port soon.
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    program.replace("SITE", &site.origin).replace("NOWHERE", &format!("http://{nowhere}"))
}

#[tokio::test]
async fn the_last_failure_of_a_request_comes_to_its_program_and_what_follows_from_it_is_taken_in() {
    let site = EchoSite::serve().await;
    let requests = r#"("NOWHERE/a", dict(failures="last")), ("NOWHERE/b", dict(failures="last", retries=2)),
        ("SITE/to/404/c", dict(failures="last")), ("SITE/fails/1", dict(failures="last", retries=1)),
        ("NOWHERE/d", dict(any_status=True)), ("SITE/private", dict(failures="last", any_status=True)),
        ("SITE/to/302/http://elsewhere.example/", dict(failures="last")), ("SITE/to/302/private", dict(failures="last")),
        ("SITE/to/302/http://127.0.0.1:1/e", dict(failures="last"))"#;
    let program = takes_failures_in(&site, requests, "def at(n, of): pass");
    let folder = spider("allowed_domains = ['127.0.0.1']", &program);
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    let items = items(folder.path());
    let of = |n: u64| items.get(&n).map(|item| item["fields"]["of"].clone());
    let failed = |class: &str, attempt: u8| Some(json!([class, false, attempt, null, ""]));
    let skipped = |class: &str| Some(json!([class, true, 1, null, ""]));
    assert_eq!((of(0), of(1)), (failed("connect", 1), failed("connect", 3)));
    assert_eq!(of(2), Some(json!(["http", false, 1, 404, ""])));
    assert_eq!((of(3), &items[&3]["status"], of(4)), (Some(Value::Null), &json!(200), None));
    assert_eq!((of(5), of(6), of(7)), (skipped("robots"), skipped("scope"), skipped("robots")));
    assert_eq!(of(8), Some(json!(["forbidden", false, 1, 302, ""])));
    assert_eq!((&items[&0]["status"], &items[&2]["status"]), (&json!(0), &json!(404)));
    let after: Vec<u64> = items.keys().copied().filter(|n| *n >= 100).collect();
    assert_eq!(after, [100, 101, 102, 105, 106, 107, 108]);
    // The start, nine requests except the one that does not ask for its failure, and the requests that follow from
    // seven of them.
    assert_eq!(
        (code, &stats["done"], &stats["failed"]),
        (Some(3), &json!(16), &json!(1)),
        "{stats} {stderr}"
    );
    assert!(site.asked("/private").is_empty());
}

#[tokio::test]
async fn a_program_that_is_given_each_failure_says_whether_the_request_is_tried_again() {
    let site = EchoSite::serve().await;
    let requests = r#"("NOWHERE/a", dict(failures="each", retries=5)), ("NOWHERE/b", dict(failures="each", retries=1)),
        ("NOWHERE/c", dict(failures="each", retries=1)), ("NOWHERE/d", dict(failures="last", retries=1)),
        ("SITE/private", dict(failures="each")), ("SITE/fails/2", dict(failures="each", retries=2))"#;
    // The first failure is handled at the third attempt, the second never, the third kills the program, and the last
    // one is handled in the end.
    let at = r#"
def at(n, of):
    if n == 2:
        os._exit(3)
    if n in (3, 4):
        raise Skip("not wanted")
    if n in (1, 5) or of.attempt < 3:
        raise ValueError(f"again after {of.kind}")
"#;
    let folder = spider("allowed_domains = ['127.0.0.1']", &takes_failures_in(&site, requests, at));
    let (code, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    let ended = (&stats["done"], &stats["skipped"], &stats["failed"]);
    assert_eq!((code, ended), (Some(3), (&json!(4), &json!(2), &json!(2))), "{stats} {stderr}");
    let items = items(folder.path());
    assert_eq!(items.keys().copied().collect::<Vec<_>>(), [0, 5, 100]);
    assert_eq!((&items[&0]["fields"]["of"][2], &items[&5]["status"]), (&json!(3), &json!(200)));
    let (_, listed, _) = trawl(folder.path(), &["dlq", "list", "--state", "crawl.db", "--json"]).await;
    let of = |path: &str| {
        let listed = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        listed.into_iter().find(|letter| letter["url"].as_str().unwrap().contains(path)).unwrap()
    };
    let (refused, died) = (of("/b#"), of("/c#"));
    assert_eq!((&refused["class"], &refused["attempts"]), (&json!("connect"), &json!(2)), "{refused}");
    assert_eq!((&died["class"], &died["attempts"]), (&json!("handler"), &json!(2)), "{died}");
    assert!(died["error"].as_str().unwrap().contains("given the failure `connect: "), "{died}");
    let (_, log, _) = trawl(folder.path(), &["logs", "--state", "crawl.db", "--level", "debug"]).await;
    assert!(log.contains("attempt 2, the failure is handed to the program"), "{log}");
}

#[tokio::test]
async fn a_program_that_reads_no_pages_is_given_no_failures() {
    let site = EchoSite::serve().await;
    let folder = spider("", "run()");
    let own = folder.path().join("spiders/shop");
    fs::write(own.join("spider.toml"), "[handler]\nrun = ['/usr/bin/env', 'python3', 'shop.py']\n").unwrap();
    let lines = [
        json!({"url": "http://127.0.0.1:1/a", "failures": "last"}),
        json!({"url": format!("{}/private", site.origin), "failures": "each"}),
    ];
    fs::write(folder.path().join("start.jsonl"), lines.map(|line| format!("{line}\n")).concat()).unwrap();
    let (code, stats, stderr) = crawl(folder.path(), "start.jsonl").await;
    assert_eq!(
        (code, &stats["failed"], &stats["skipped"]),
        (Some(3), &json!(1), &json!(1)),
        "{stats} {stderr}"
    );
}

#[tokio::test]
async fn a_dead_letter_whose_failure_a_program_did_not_take_in_is_given_to_it_again_when_it_is_replayed() {
    let site = EchoSite::serve().await;
    let requests = r#"("NOWHERE/a", dict(failures="last"))"#;
    let at = "def at(n, of):\n    if not os.path.exists('mended'): raise ValueError('not yet')";
    let folder = spider("allowed_domains = ['127.0.0.1']", &takes_failures_in(&site, requests, at));
    let (_, stats, stderr) = crawl(folder.path(), start(folder.path(), &site)).await;
    assert_eq!((&stats["done"], &stats["failed"]), (&json!(1), &json!(1)), "{stats} {stderr}");
    fs::write(folder.path().join("spiders/shop/mended"), "").unwrap();
    let (code, _, stderr) = trawl(folder.path(), &["dlq", "replay", "--state", "crawl.db", "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let (_, stats, stderr) = crawl(folder.path(), "start.txt").await;
    assert_eq!((&stats["done"], &stats["failed"]), (&json!(2), &json!(0)), "{stats} {stderr}");
    assert_eq!(items(folder.path()).keys().copied().collect::<Vec<_>>(), [0, 100]);
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
