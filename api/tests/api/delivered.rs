//! Spiders that a caller deploys, checks or tries: the machines that run them must not give them access to their files.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};
use trawl_common::settings::Settings;
use trawl_testkit::attacks::Section;

use crate::fixture::Fixture;

const HOME: &str = "allowed_domains = ['a.example']\n";

const SINK: &str = "refused: nowhere but below the folder `spiders.sinks_dir`";
const FILE: &str = "refused: starts from URLs alone";
const VARIABLE: &str = "refused: may name only the variables that `spiders.variables` of the settings lists";

fn sink(kind: &str, path: &str) -> String {
    format!("[[sinks]]\nkind = '{kind}'\npath = '{path}'\n")
}

/// The name of each attack, its text, and the expected error.
fn attacks() -> Vec<(&'static str, String, &'static str)> {
    let start = |key: &str, file: &str| format!("[start]\n{key} = ['{file}']\n");
    let variable = |text: &str| format!("{HOME}{text}");
    vec![
        ("another spider's program as a file of items", sink("jsonl", "spiders/other/run.sh"), SINK),
        ("a program of the machine, by an absolute path", sink("jsonl", "/usr/local/bin/x"), SINK),
        ("the folder above the one for sinks", sink("csv", "items/../spiders/other/run.sh"), SINK),
        ("Python's start files below the home folder", sink("parquet", "/data/.local/lib/x.pth"), SINK),
        ("a folder of archives anywhere", sink("warc", "/etc"), SINK),
        ("the worker's standard output", sink("jsonl", "-"), SINK),
        ("a file below the folder for sinks: honest", sink("jsonl", "items/shop-{worker}.jsonl"), "taken: "),
        ("the worker's environment as a sitemap", start("sitemaps", "/proc/self/environ"), FILE),
        ("a file of the worker as a robots.txt", start("robots", "trawl.toml"), FILE),
        ("standard input", start("sitemaps", "-"), FILE),
        (
            "a file that an argument names",
            format!("{}[arguments]\nx = '/etc/passwd'\n", start("sitemaps", "{arg.x}")),
            FILE,
        ),
        ("a file by a URL", start("sitemaps", "file:///etc/passwd"), "refused: scheme `file`"),
        ("a sitemap on the web: honest", start("sitemaps", "https://a.example/sitemap.xml"), "taken: "),
        (
            "a variable of the worker in a header field",
            variable("[request]\nheaders = { X = { env = 'REDIS_URL' } }\n"),
            VARIABLE,
        ),
        (
            "a variable of the worker in a cookie",
            variable("[request]\ncookies = { X = { env = 'REDIS_URL' } }\n"),
            VARIABLE,
        ),
        (
            "a variable of the worker as a proxy",
            variable("[request]\nproxy = { env = 'REDIS_URL' }\n"),
            VARIABLE,
        ),
        (
            "a variable of the worker as a database",
            "[[sinks]]\nkind = 'postgres'\nurl = { env = 'REDIS_URL' }\n".to_owned(),
            VARIABLE,
        ),
        (
            "a variable of the worker as the key of a webhook",
            "[[webhooks]]\nurl = 'https://a.example/'\nsecret = { env = 'TRAWL__RABBITMQ__KEY' }\n"
                .to_owned(),
            VARIABLE,
        ),
    ]
}

#[tokio::test]
async fn a_text_that_a_caller_brings_has_nothing_of_the_machine_and_is_told_so_at_once() {
    let fixture = Fixture::embedded().await;
    let mut section = Section::new(env!("CARGO_MANIFEST_DIR"), "Spiders that callers bring");
    for (attack, text, gets) in attacks() {
        let path = "/api/v1/projects/shop/versions?spider=books";
        let deployed = fixture.send(fixture.operator(Method::POST, path).body(text.clone())).await;
        let got = match deployed.status {
            201 => "taken: ".to_owned(),
            status => format!("refused: {status} {}", deployed.body["detail"]),
        };
        section.tried(attack, gets, &got);
        let checked = fixture.post_json("/api/v1/spiders/check", &json!({ "text": text })).await.body;
        let mistakes = checked["mistakes"].as_array().unwrap();
        assert_eq!(mistakes.is_empty(), deployed.status == 201, "{attack}: {checked}");
    }
    section.check();
}

/// A spider file on the machine is trusted, whoever asks for it.
#[tokio::test]
async fn a_file_beside_the_api_may_say_what_it_likes_and_the_same_text_may_not_when_it_is_brought() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{}[start]\nsitemaps = ['list.txt']\n", sink("jsonl", "/srv/items.jsonl"));
    fs::write(folder.path().join("books.toml"), &text).unwrap();
    let settings = Settings { spiders_dir: folder.path().to_owned(), ..Settings::default() };
    let fixture = Fixture::embedded().await.also_with(settings).await;
    let own = fixture.get("/api/v1/projects/default/spiders/books/check").await.body;
    assert_eq!(own["mistakes"], json!([]), "{own}");
    let brought =
        fixture.post_json("/api/v1/spiders/check", &json!({ "text": text, "spider": "books" })).await;
    assert_eq!(brought.body["mistakes"].as_array().map(Vec::len), Some(2), "{}", brought.body);
    let started = fixture.post_json("/api/v1/crawls", &json!({ "spider": "books" })).await;
    assert_eq!((started.status, &started.body["detail"]), (201, &Value::Null));
}
