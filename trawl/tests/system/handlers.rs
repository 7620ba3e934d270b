//! Spiders that have a program.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use axum::Router;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;
use trawl_testkit::site::Site;

fn trawl(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    command.args(words).current_dir(folder).env_clear().stdin(Stdio::null()).kill_on_drop(true);
    command
}

async fn output(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = trawl(folder, words).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Writes the spider `name` in its own folder: its file, and its programs from the clients' examples.
fn spider(folder: &Path, name: &str, file: &str, programs: &[&str]) {
    let own = folder.join("spiders").join(name);
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("spider.toml"), file).unwrap();
    let sdk = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sdk");
    for program in programs {
        let to = own.join(Path::new(program).file_name().unwrap());
        fs::copy(sdk.join(program), to).unwrap();
    }
}

const CRAWL: [&str; 6] = ["--allow-private", "--rate", "unlimited", "--concurrency", "8", "--json"];

const PAGES: &str = "[handler]\nrun = ['/usr/bin/env', 'python3', 'pages.py']\nmode = 'stream'\n";

#[tokio::test]
async fn a_program_reads_the_pages_of_its_spider() {
    let (site, folder) = (Site::serve(50).await, tempfile::tempdir().unwrap());
    spider(folder.path(), "shop", PAGES, &["python/trawl_handler.py", "python/examples/pages.py"]);
    let source = format!("{}/sitemap.xml", site.origin);
    let words = [&["crawl", &source, "--spider", "shop"][..], &CRAWL].concat();
    let (code, stdout, stderr) = output(folder.path(), &words).await;
    assert_eq!(code, Some(0), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&stats["status"], &stats["done"]), (&"finished".into(), &50.into()));
    let items = fs::read_to_string(folder.path().join("items.jsonl")).unwrap();
    let titles: Vec<Value> = items.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    assert_eq!(titles.len(), 50);
    for item in titles {
        let number = item["url"].as_str().unwrap().rsplit('/').next().unwrap();
        assert_eq!(item["fields"], serde_json::json!({ "title": format!("Page {number}") }));
    }
}

#[tokio::test]
async fn what_a_program_names_is_fetched_within_the_host() {
    let (site, folder) = (Site::serve(20).await, tempfile::tempdir().unwrap());
    spider(folder.path(), "shop", PAGES, &["python/trawl_handler.py", "python/examples/pages.py"]);
    let start = site.page(5);
    let words = [&["crawl", &start, "--spider", "shop"][..], &CRAWL].concat();
    let (code, stdout, stderr) = output(folder.path(), &words).await;
    assert_eq!(code, Some(0), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert!(stats["done"].as_u64().unwrap() > 1, "{stats}");
}

#[tokio::test]
async fn a_page_whose_program_fails_is_a_dead_letter_with_the_reason() {
    let (site, folder) = (Site::serve(5).await, tempfile::tempdir().unwrap());
    let file = format!("{PAGES}retries = 0\n").replace("pages.py", "bad.py");
    spider(folder.path(), "shop", &file, &["python/trawl_handler.py"]);
    let bad = "import os\nfrom trawl_handler import handler, run\n@handler\ndef parse(page):\n  \
        if page.url.endswith('/1'): os._exit(3)\n  if page.url.endswith('/2'): raise ValueError('no price')\n  \
        yield {'ok': True}\nrun()\n";
    fs::write(folder.path().join("spiders/shop/bad.py"), bad).unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    let words = [&["crawl", &source, "--spider", "shop"][..], &CRAWL].concat();
    let (code, stdout, stderr) = output(folder.path(), &words).await;
    assert_eq!(code, Some(3), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&stats["done"], &stats["failed"]), (&3.into(), &2.into()), "{stats}\n{stderr}");
    let (_, dead, _) = output(folder.path(), &["dlq", "list", "--state", "crawl.db", "--json"]).await;
    for expected in ["exited with status 3", "ValueError: no price"] {
        assert!(dead.contains(expected), "{dead}");
    }
}

#[tokio::test]
async fn a_spider_with_a_program_is_checked_and_tried() {
    let folder = tempfile::tempdir().unwrap();
    spider(folder.path(), "shop", PAGES, &["python/trawl_handler.py", "python/examples/pages.py"]);
    fs::write(folder.path().join("page.html"), "<title> Shop </title><a href='/a'></a><a href=\"/b\">b</a>")
        .unwrap();
    let (code, stdout, _) = output(folder.path(), &["spider", "check", "shop"]).await;
    assert_eq!(code, Some(0), "{stdout}");
    assert!(
        stdout.contains("program  /usr/bin/env python3 pages.py, for all tasks and pages, 10m and"),
        "{stdout}"
    );
    assert!(stdout.contains("each page by its program"), "{stdout}");
    let words = ["spider", "try", "shop", "page.html", "--url", "http://shop.example/x", "--json"];
    let (code, stdout, stderr) = output(folder.path(), &words).await;
    assert_eq!(code, Some(0), "{stderr}");
    let tried: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(tried["items"][0]["fields"]["title"], "Shop");
    assert_eq!(
        tried["links"],
        serde_json::json!([{ "url": "http://shop.example/b", "followed": true, "download": false, "request": null, "why": null }])
    );
}

const NO_RUN: &str = "from trawl_handler import handler\n@handler\ndef parse(page):\n  yield {}\n";

/// Writes the spider `shop` with this program.
fn shop(folder: &Path, program: &str) {
    spider(folder, "shop", PAGES, &["python/trawl_handler.py"]);
    fs::write(folder.join("spiders/shop/pages.py"), program).unwrap();
}

#[tokio::test]
async fn a_program_that_ends_at_once_says_so_and_loses_no_page() {
    let (site, folder) = (Site::serve(40).await, tempfile::tempdir().unwrap());
    shop(folder.path(), NO_RUN);
    let source = format!("{}/sitemap.xml", site.origin);
    let words = [&["crawl", &source, "--spider", "shop"][..], &CRAWL].concat();
    let mut crawl =
        trawl(folder.path(), &words).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(crawl.stderr.take().unwrap()).lines();
    let mut said = String::new();
    while !said
        .contains("its program fails before it is given anything: exited with status 0 and answered nothing")
    {
        said = lines.next_line().await.unwrap().expect("it says why nothing ends");
    }
    fs::write(
        folder.path().join("spiders/shop/pages.py"),
        format!("{NO_RUN}from trawl_handler import run\nrun()\n"),
    )
    .unwrap();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let output = crawl.wait_with_output().await.unwrap();
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&stats["done"], &stats["failed"]), (&40.into(), &0.into()), "{stats}");
}

#[tokio::test]
async fn try_shows_what_a_program_prints_and_why_it_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page.html"), "<title>Shop</title>").unwrap();
    let words = ["spider", "try", "shop", "page.html"];
    shop(folder.path(), NO_RUN);
    let (code, _, stderr) = output(folder.path(), &words).await;
    assert!(code == Some(1) && stderr.contains("answered nothing: does it lack `run()`?"), "{stderr}");
    let prints = "from trawl_handler import handler, run\n@handler\ndef parse(page):\n  print('price', 7)\n  yield {}\nrun()\n";
    shop(folder.path(), prints);
    let (code, stdout, stderr) = output(folder.path(), &words).await;
    assert_eq!((code, stderr.as_str()), (Some(0), "price 7\n"), "{stdout}");
}

#[tokio::test]
async fn try_gives_a_program_no_page_that_a_crawl_would_skip() {
    let folder = tempfile::tempdir().unwrap();
    shop(folder.path(), &format!("{NO_RUN}from trawl_handler import run\nrun()\n"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/price.pdf", listener.local_addr().unwrap());
    let pdf = async || ([("content-type", "application/pdf")], "%PDF-1.7");
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(pdf)).await });
    let (code, stdout, stderr) =
        output(folder.path(), &["spider", "try", "shop", &url, "--allow-private"]).await;
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("application/pdf is skipped") && stderr.contains("any_status"), "{stderr}");
}

#[tokio::test]
async fn a_program_is_tried_on_a_task() {
    let folder = tempfile::tempdir().unwrap();
    for (name, mode) in [("once", "once"), ("live", "stream")] {
        let file = format!(
            "[handler]\nrun = ['/usr/bin/env', 'python3', 'tasks.py']\nmode = '{mode}'\n\
             secret = {{ NEXT = {{ payment = 'contract' }} }}\n"
        );
        spider(folder.path(), name, &file, &["python/trawl_handler.py", "python/examples/tasks.py"]);
        let words = ["spider", "try", name, "--task", "payment", "--json"];
        let (code, stdout, stderr) = output(folder.path(), &words).await;
        assert_eq!(code, Some(0), "{stderr}");
        let answer: Value = serde_json::from_str(&stdout).unwrap();
        let (items, tasks) = (&answer["items"], &answer["tasks"]);
        assert_eq!((&answer["result"], items), (&0.into(), &serde_json::json!([{ "document": "payment" }])));
        assert_eq!((&tasks[0]["recipe"], &tasks[0]["unique"]), (&"contract".into(), &"contract".into()));
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_found_before_anything_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    spider(folder.path(), "shop", "[handler]\nrun = ['./none']\nmode = 'stream'\n", &[]);
    for words in [&["spider", "check", "shop"][..], &["crawl", "http://127.0.0.1:9/", "--spider", "shop"]] {
        let (code, _, stderr) = output(folder.path(), words).await;
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains("handler") && stderr.contains("there is no program"), "{stderr}");
    }
}

/// A chain of documents that forms a cycle.
fn chain(mode: &str) -> String {
    format!(
        "[handler]\nrun = ['/usr/bin/env', 'python3', 'tasks.py']\nmode = '{mode}'\n[handler.secret.NEXT]\n\
         payment = 'contract'\ncontract = 'tender'\ntender = 'corrected tender'\n'corrected tender' = 'payment'\n"
    )
}

#[tokio::test]
async fn each_document_of_a_circle_is_done_once() {
    for mode in ["once", "stream"] {
        let folder = tempfile::tempdir().unwrap();
        let programs = ["python/trawl_handler.py", "python/examples/tasks.py"];
        spider(folder.path(), "payments", &chain(mode), &programs);
        fs::write(folder.path().join("tasks.jsonl"), "{\"recipe\": \"payment\", \"unique\": \"payment\"}\n")
            .unwrap();
        let words = ["crawl", "tasks.jsonl", "--spider", "payments", "--json"];
        let (code, stdout, stderr) = output(folder.path(), &words).await;
        assert_eq!(code, Some(0), "{stderr}");
        let stats: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(
            (&stats["status"], &stats["admitted"], &stats["done"]),
            (&"finished".into(), &4.into(), &4.into())
        );
        let items = fs::read_to_string(folder.path().join("items.jsonl")).unwrap();
        let mut documents: Vec<String> = items
            .lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).unwrap()["fields"]["document"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        documents.sort();
        assert_eq!(documents, ["contract", "corrected tender", "payment", "tender"]);
    }
}

const TASKS: &str = "[handler]\nrun = ['/usr/bin/env', 'python3', 'tasks.py']\n\
    secret = { NEXT = { payment = 'contract', contract = 'tender', tender = 'payment' } }\n";

/// Even if they form a cycle, and the list names one twice.
#[tokio::test]
async fn each_task_is_done_once_with_those_that_it_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    spider(folder.path(), "docs", TASKS, &["python/trawl_handler.py", "python/examples/tasks.py"]);
    fs::write(folder.path().join("tasks.jsonl"), "\"payment\"\n{\"recipe\": \"other\"}\n\"payment\"\n")
        .unwrap();
    let (code, stdout, stderr) =
        output(folder.path(), &["crawl", "tasks.jsonl", "--spider", "docs", "--json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&stats["status"], &stats["admitted"], &stats["done"]),
        (&"finished".into(), &4.into(), &4.into())
    );
    let items = fs::read_to_string(folder.path().join("items.jsonl")).unwrap();
    let item = |line: &str| serde_json::from_str::<Value>(line).unwrap()["fields"]["document"].clone();
    let mut documents: Vec<String> =
        items.lines().map(|line| item(line).as_str().unwrap().to_owned()).collect();
    documents.sort();
    assert_eq!(documents, ["contract", "other", "payment", "tender"]);
    let list = ["task", "list", "--ended", "--spider", "docs", "--state", "crawl.db", "--json"];
    let (code, listed, stderr) = output(folder.path(), &list).await;
    assert_eq!(code, Some(0), "{stderr}");
    let ended: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ended.len(), 4, "{listed}");
    for task in &ended {
        assert_eq!(
            (&task["outcome"], &task["items"], &task["attempts"]),
            (&"done".into(), &1.into(), &1.into())
        );
        assert!(task["seconds"].as_f64().unwrap() > 0.0 && task["error"].is_null(), "{task}");
        assert!(stats["crawl"] == task["crawl"] && task["ended"].as_str().unwrap().ends_with('Z'), "{task}");
    }
    assert!(ended.iter().any(|task| task["recipe"] == "tender"), "{listed}");
}

/// After as many attempts as its own `retries` allows. It is then listed with its recipe, and done when it is retried.
#[tokio::test]
async fn a_task_that_fails_is_a_dead_letter_that_can_be_retried() {
    let folder = tempfile::tempdir().unwrap();
    let file = "[handler]\nrun = ['/bin/sh', './run.sh']\n";
    spider(folder.path(), "once", file, &[]);
    let program = "[ -e done ] && echo '{\"result\": 0}' || { echo no luck >&2; exit 7; }\n";
    fs::write(folder.path().join("spiders/once/run.sh"), program).unwrap();
    fs::write(folder.path().join("tasks.jsonl"), "{\"recipe\": \"try me\", \"retries\": 0}\n").unwrap();
    let crawl = ["crawl", "tasks.jsonl", "--spider", "once", "--json"];
    let (code, stdout, stderr) = output(folder.path(), &crawl).await;
    assert_eq!(code, Some(3), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&stats["failed"], &stats["pending"]), (&1.into(), &0.into()));
    let (_, listed, _) = output(folder.path(), &["task", "list", "--state", "crawl.db", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["recipe"], "try me");
    assert!(listed["error"].as_str().unwrap().contains("no luck"), "{listed}");
    let key = listed["task"].as_str().unwrap();
    let (_, ended, _) =
        output(folder.path(), &["task", "list", "--ended", "--state", "crawl.db", "--json"]).await;
    let ended: Value = serde_json::from_str(&ended).unwrap();
    assert_eq!(
        (&ended["task"], &ended["outcome"], &ended["class"]),
        (&listed["task"], &"failed".into(), &"handler".into())
    );
    assert!(ended["error"].as_str().unwrap().contains("no luck"), "{ended}");
    let (code, shown, _) = output(folder.path(), &["task", "show", key, "--state", "crawl.db"]).await;
    assert!(code == Some(0) && shown.contains("try me"), "{shown}");
    let (code, _, stderr) = output(folder.path(), &["task", "retry", key, "--state", "crawl.db"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let list = async |place: &str| {
        output(folder.path(), &["task", "list", "--place", place, "--state", "crawl.db", "--json"]).await.1
    };
    assert_eq!(list("failed").await, "", "it is pending again");
    let waits: Value = serde_json::from_str(&list("waiting").await).unwrap();
    assert_eq!(
        (&waits["recipe"], &waits["attempts"], &waits["place"]),
        (&"try me".into(), &0.into(), &"waiting".into())
    );
    let cancel = ["task", "cancel", key, "--state", "crawl.db"];
    let (code, _, stderr) = output(folder.path(), &cancel).await;
    assert!(code == Some(0) && stderr.contains("1 task cancelled"), "{stderr}");
    assert_eq!(list("waiting").await, "");
    let (code, _, stderr) = output(folder.path(), &cancel).await;
    assert!(code == Some(2) && stderr.contains("none of these tasks waits or runs"), "{stderr}");
}

#[tokio::test]
async fn a_page_asks_for_tasks_that_the_same_program_does() {
    let (site, folder) = (Site::serve(5).await, tempfile::tempdir().unwrap());
    spider(folder.path(), "shop", &PAGES.replace("pages.py", "both.py"), &["python/trawl_handler.py"]);
    let both = "from trawl_handler import Task, handler, run, task_handler\n@handler\ndef parse(page):\n  \
        yield Task(page.url)\n@task_handler\ndef work(task):\n  yield {'of': task.recipe}\nrun()\n";
    fs::write(folder.path().join("spiders/shop/both.py"), both).unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    let words = [&["crawl", &source, "--spider", "shop"][..], &CRAWL].concat();
    let (code, stdout, stderr) = output(folder.path(), &words).await;
    assert_eq!(code, Some(0), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&stats["status"], &stats["done"]), (&"finished".into(), &10.into()), "{stats}");
    assert_eq!(fs::read_to_string(folder.path().join("items.jsonl")).unwrap().lines().count(), 5);
}

/// Returns the IDs of all stored items.
fn ids(folder: &Path) -> Vec<String> {
    let items = fs::read_to_string(folder.join("items.jsonl")).unwrap();
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = items.lines().map(id).collect();
    ids.sort();
    ids
}

/// Even if some of them are equal, and some are in the answer itself.
#[tokio::test]
async fn the_items_of_a_tasks_file_have_the_same_ids_in_whatever_order_they_are() {
    let program = "import json, os, random\nitems = [{'n': n % 2900} for n in range(3000)]\nrandom.shuffle(items)\n\
        with open(os.environ['TRAWL_TMP'] + '/items', 'w') as file:\n  \
        for item in items[10:]: file.write(json.dumps(item) + '\\n')\n\
        print(json.dumps({'result': 0, 'items': items[:10], 'items_file': 'items'}))\n";
    let mut found = Vec::new();
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        spider(folder.path(), "many", "[handler]\nrun = ['/usr/bin/env', 'python3', 'many.py']\n", &[]);
        fs::write(folder.path().join("spiders/many/many.py"), program).unwrap();
        fs::write(folder.path().join("tasks.jsonl"), "\"x\"\n").unwrap();
        let words = ["crawl", "tasks.jsonl", "--spider", "many", "--json"];
        let (code, _, stderr) = output(folder.path(), &words).await;
        assert_eq!(code, Some(0), "{stderr}");
        found.push(ids(folder.path()));
        let words = ["spider", "try", "many", "--task", "x", "--json"];
        let (code, stdout, stderr) = output(folder.path(), &words).await;
        assert_eq!(code, Some(0), "{stderr}");
        let tried: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(tried["items_in_file"], 2990);
        assert_eq!(
            tried["items"].as_array().unwrap().len(),
            1010,
            "those of the answer, and the first of the file"
        );
    }
    assert_eq!(found[0], found[1]);
    found[0].dedup();
    assert_eq!(found[0].len(), 3000);
}

/// Beyond a few megabytes, yielded items go to a file, and the program's own memory no longer holds them.
#[tokio::test]
async fn a_page_may_yield_more_items_than_an_answer_may_have() {
    let (site, folder) = (Site::serve(2).await, tempfile::tempdir().unwrap());
    spider(folder.path(), "shop", &PAGES.replace("pages.py", "many.py"), &["python/trawl_handler.py"]);
    let many = "from trawl_handler import handler, run\n@handler\ndef parse(page):\n  \
        for n in range(17_000): yield {'n': n, 'text': 'x' * 1000}\nrun()\n";
    fs::write(folder.path().join("spiders/shop/many.py"), many).unwrap();
    let source = format!("{}/sitemap.xml", site.origin);
    let words = [&["crawl", &source, "--spider", "shop"][..], &CRAWL].concat();
    let (code, stdout, stderr) = output(folder.path(), &words).await;
    assert_eq!(code, Some(0), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&stats["status"], &stats["done"]), (&"finished".into(), &2.into()), "{stats}");
    let mut ids = ids(folder.path());
    ids.dedup();
    assert_eq!(ids.len(), 34_000);
}

#[tokio::test]
async fn a_file_with_a_line_that_is_no_item_is_a_failed_task_and_nothing_of_it_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    spider(folder.path(), "bad", "[handler]\nrun = ['/bin/sh', './run.sh']\n", &[]);
    let program = "yes '{}' | head -n 2000 > $TRAWL_TMP/x; echo rubbish >> $TRAWL_TMP/x\n\
        echo '{\"result\": 0, \"items\": [{}], \"items_file\": \"x\"}'\n";
    fs::write(folder.path().join("spiders/bad/run.sh"), program).unwrap();
    fs::write(folder.path().join("tasks.jsonl"), "{\"recipe\": \"x\", \"retries\": 0}\n").unwrap();
    let (code, _, stderr) =
        output(folder.path(), &["crawl", "tasks.jsonl", "--spider", "bad", "--json"]).await;
    assert_eq!(code, Some(3), "{stderr}");
    let (_, listed, _) = output(folder.path(), &["task", "list", "--state", "crawl.db", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert!(listed["error"].as_str().unwrap().starts_with("the items_file, line 2001: not JSON"), "{listed}");
    assert!(fs::read_to_string(folder.path().join("items.jsonl")).unwrap_or_default().is_empty());
}

#[tokio::test]
async fn a_request_without_retries_has_none_either_when_the_file_of_its_items_is_unreadable() {
    let (site, folder) = (Site::serve(2).await, tempfile::tempdir().unwrap());
    let file = "[handler]\nrun = ['/usr/bin/env', 'python3', 'bad.py']\nmode = 'stream'\n";
    spider(folder.path(), "bad", file, &[]);
    let program = "import json, os, sys\nsys.stdin.readline()\nfor line in sys.stdin:\n  \
        with open(os.environ['TRAWL_TMP'] + '/x', 'w') as items: items.write('{}\\n' * 2000 + 'rubbish\\n')\n  \
        print(json.dumps({'id': json.loads(line)['id'], 'result': 0, 'items_file': 'x'}), flush=True)\n";
    fs::write(folder.path().join("spiders/bad/bad.py"), program).unwrap();
    fs::write(folder.path().join("trawl.toml"), "[retry]\nbackoff = '10ms'\n").unwrap();
    let request = serde_json::json!({"url": site.page(1), "retries": 0});
    fs::write(folder.path().join("requests.jsonl"), request.to_string()).unwrap();
    let words = [&["crawl", "requests.jsonl", "--spider", "bad"][..], &CRAWL].concat();
    let (code, _, stderr) = output(folder.path(), &words).await;
    assert_eq!(code, Some(3), "{stderr}");
    let (_, listed, _) = output(folder.path(), &["dlq", "list", "--state", "crawl.db", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed["class"], &listed["attempts"]), (&"handler".into(), &1.into()), "{listed}");
}

/// Whether by a JSON Lines name, compressed, or on standard input.
#[tokio::test]
async fn a_list_of_tasks_is_known_by_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    spider(folder.path(), "echo", "[handler]\nrun = ['/bin/sh', '-c', 'echo {\\\"result\\\":0}']\n", &[]);
    let list = |name: &str| format!("\"{name} 1\"\n{{\"recipe\": \"{name} 2\"}}\n").into_bytes();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &list("gz")).unwrap();
    fs::write(folder.path().join("t.jsonl.gz"), gzip.finish().unwrap()).unwrap();
    fs::write(folder.path().join("t.ndjson"), list("ndjson")).unwrap();
    fs::write(folder.path().join("t.txt"), list("txt")).unwrap();
    for (source, input) in [("t.jsonl.gz", ""), ("t.ndjson", ""), ("t.txt", ""), ("-", "stdin")] {
        let state = format!("{}.db", source.trim_matches('-'));
        let words = ["crawl", source, "--spider", "echo", "--json", "--state", &state];
        let mut command = trawl(folder.path(), &words);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(
            &mut stdin,
            if input.is_empty() { b"" } else { &*list(input).leak() },
        )
        .await
        .unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let stats: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(stats["done"], 2, "{source}: {}", String::from_utf8_lossy(&output.stderr));
    }
    fs::write(folder.path().join("array.json"), "[\"a\"]").unwrap();
    for (source, spider) in [("array.json", "echo"), ("t.txt", "default")] {
        let words = ["crawl", source, "--spider", spider, "--state", "no.db"];
        let (code, _, stderr) = output(folder.path(), &words).await;
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains("for a spider with a [handler]"), "{stderr}");
    }
}

/// Tasks submitted by the tasks of another spider, whose crawl is over.
#[tokio::test]
async fn tasks_that_wait_in_the_state_file_are_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let asks = r#"[handler]
run = ['/bin/sh', '-c', 'echo "{\"result\":0,\"tasks\":[{\"recipe\":\"r\",\"spider\":\"two\"}]}"']
"#;
    spider(folder.path(), "one", asks, &[]);
    fs::write(folder.path().join("tasks.jsonl"), "\"go\"\n").unwrap();
    let (code, _, stderr) = output(folder.path(), &["crawl", "tasks.jsonl", "--spider", "one"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let wait = ["wait", "latest", "--state", "crawl.db", "--timeout", "1s"];
    let (code, _, stderr) = output(folder.path(), &wait).await;
    assert_eq!(code, Some(124), "{stderr}");
    spider(folder.path(), "two", "[handler]\nrun = ['/bin/sh', '-c', 'echo {\\\"result\\\":0}']\n", &[]);
    let two = ["crawl", "--spider", "two", "--json"];
    let (code, stdout, stderr) = output(folder.path(), &two).await;
    assert_eq!(code, Some(0), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&stats["crawl"], &stats["done"]), (&"adhoc.two".into(), &1.into()), "{stats}");
    let (code, _, stderr) = output(folder.path(), &wait).await;
    assert_eq!(code, Some(0), "{stderr}");
    let (code, _, stderr) = output(folder.path(), &two).await;
    assert!(code == Some(2) && stderr.contains("nothing to start from"), "{stderr}");
    let (code, _, stderr) = output(folder.path(), &["crawl", "tasks.jsonl", "--spider", "one"]).await;
    assert_eq!(code, Some(0), "what was asked for of others holds up no crawl: {stderr}");
    let key = "task:0123456789abcdef0123456789abcdef";
    for words in [["url", key, "--state", "crawl.db"], ["url", key, "--state", "none.db"]] {
        let (code, _, stderr) = output(folder.path(), &words).await;
        assert!(code == Some(2) && stderr.contains("trawl task show task:"), "{stderr}");
    }
    let words = ["seen", "forget", key, "--state", "crawl.db", "--yes"];
    let (code, _, stderr) = output(folder.path(), &words).await;
    assert!(code == Some(2) && stderr.contains("trawl task retry"), "{stderr}");
}

/// An attack: the program of a spider hands tasks to ever new spiders, whose crawls nobody ever works for.
#[tokio::test]
async fn a_program_hands_tasks_to_few_spiders_that_do_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let invents = r#"[handler]
run = ['/usr/bin/env', 'python3', 'invent.py']
retries = 0
"#;
    spider(folder.path(), "one", invents, &[]);
    fs::write(folder.path().join("trawl.toml"), "[worker]\nhandlers = 1\n").unwrap();
    let program = "import json, sys\nname = json.loads(sys.argv[1])['recipe']\n\
        print(json.dumps({'result': 0, 'tasks': [{'recipe': 'r', 'spider': f'{name}-{n}'} for n in range(30)]}))\n";
    fs::write(folder.path().join("spiders/one/invent.py"), program).unwrap();
    fs::write(folder.path().join("tasks.jsonl"), "\"a\"\n\"b\"\n\"c\"\n\"d\"\n").unwrap();
    let (code, stdout, stderr) =
        output(folder.path(), &["crawl", "tasks.jsonl", "--spider", "one", "--json"]).await;
    assert_eq!(code, Some(3), "{stderr}");
    let stats: Value = serde_json::from_str(&stdout).unwrap();
    let reasons = stats["reasons"].as_object().unwrap();
    let handed = reasons.keys().filter(|reason| reason.starts_with("handed:")).count();
    assert_eq!((handed, &stats["done"], &stats["failed"]), (60, &2.into(), &2.into()), "{stats}");
    let (_, dead, _) = output(folder.path(), &["dlq", "list", "--state", "crawl.db", "--json"]).await;
    assert!(dead.lines().all(|line| line.contains("that spider has no file here, as 64 others")), "{dead}");
    let (_, crawls, _) = output(folder.path(), &["status", "--state", "crawl.db", "--json"]).await;
    assert_eq!(crawls.lines().count(), 61, "{crawls}");
}
