//! Spiders: deployed, listed, read, checked, removed.

use std::fs;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use trawl_api::Backend;
use trawl_common::settings::{self, Settings};

use crate::fixture::{Answer, Fixture, VIEWER};

promises! {
    a_spider_is_deployed_listed_read_and_removed
    a_tar_of_files_is_a_version_of_all_of_them
    what_is_no_version_is_refused_and_nothing_is_deployed
    every_mistake_of_a_spider_is_told_with_its_place_and_nothing_is_stored
    what_a_spider_leaves_to_others_is_told
    who_may_only_look_deploys_and_removes_nothing
    who_may_only_look_has_a_deployed_spider_checked
}

const VERSIONS: &str = "/api/v1/projects/shop/versions";
const TEXT: &str = "[start]\nurls = ['http://a.example/']\n";

async fn upload(fixture: &Fixture, query: &str, body: impl Into<reqwest::Body>) -> Answer {
    fixture.send(fixture.operator(Method::POST, &format!("{VERSIONS}?{query}")).body(body)).await
}

async fn delete(fixture: &Fixture, path: &str) -> Answer {
    fixture.send(fixture.operator(Method::DELETE, path)).await
}

async fn check(fixture: &Fixture, body: Value) -> Answer {
    fixture.post_json("/api/v1/spiders/check", &body).await
}

fn tar(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap()
}

async fn a_spider_is_deployed_listed_read_and_removed(fixture: &Fixture) {
    for (version, text) in [("r9", TEXT), ("r10", &format!("max_pages = 1\n{TEXT}"))] {
        let answer = upload(fixture, &format!("version={version}&spider=books"), text.to_owned()).await;
        let added = json!({ "project": "shop", "version": version, "spiders": ["books"] });
        assert_eq!((answer.status, answer.body), (201, added));
    }
    let spiders = fixture.get("/api/v1/spiders").await.body;
    assert_eq!(spiders["spiders"], json!([{ "project": "shop", "spider": "books", "version": "r10" }]));
    assert_eq!(fixture.get("/api/v1/spiders?project=other").await.body["spiders"], json!([]));
    let versions = fixture.get(VERSIONS).await.body["versions"].clone();
    let names: Vec<&Value> = versions.as_array().unwrap().iter().map(|one| &one["version"]).collect();
    assert_eq!(names, ["r9", "r10"]);
    assert!(versions[0]["spiders"] == json!(["books"]) && versions[0]["added"].is_string(), "{versions}");
    let book = "/api/v1/projects/shop/spiders/books";
    let text = async |path: &str| fixture.get(path).await.body["text"].as_str().unwrap().to_owned();
    assert_eq!(text(&format!("{book}?version=r9")).await, TEXT);
    assert!(text(book).await.starts_with("max_pages"));

    assert_eq!(delete(fixture, &format!("{VERSIONS}/r10")).await.status, 200);
    assert_eq!(text(book).await, TEXT, "the one before is the latest again");
    assert_eq!(
        delete(fixture, "/api/v1/projects/shop").await.body,
        json!({ "project": "shop", "version": null })
    );
    for gone in [VERSIONS, book, &format!("{book}?version=r9")] {
        assert_eq!(fixture.get(gone).await.status, 404, "{gone}");
    }
    for gone in [&format!("{VERSIONS}/r9"), "/api/v1/projects/shop"] {
        assert_eq!(delete(fixture, gone).await.status, 404, "{gone}");
    }
}

async fn a_tar_of_files_is_a_version_of_all_of_them(fixture: &Fixture) {
    let bundle = tar(&[("shop/books.toml", TEXT), ("hats.toml", TEXT), ("README.md", "no spider")]);
    let answer = upload(fixture, "", bundle).await;
    assert_eq!((answer.status, &answer.body["spiders"]), (201, &json!(["books", "hats"])), "{}", answer.body);
    let version = answer.body["version"].as_str().unwrap();
    assert_eq!(fixture.get(VERSIONS).await.body["versions"][0]["version"], version);
}

async fn what_is_no_version_is_refused_and_nothing_is_deployed(fixture: &Fixture) {
    for (query, body, expected) in [
        ("", TEXT.as_bytes().to_vec(), "spider: say"),
        ("spider=NO", TEXT.as_bytes().to_vec(), "NO"),
        ("spider=books&version=a%20b", TEXT.as_bytes().to_vec(), "a b"),
        ("spider=books", b"\xff".to_vec(), "UTF-8"),
        ("spider=books", b"PK\x03\x04".to_vec(), "egg"),
        ("spider=books", b"max_pages = 0\n".to_vec(), "books.toml:1:13"),
        ("spiders=books", TEXT.as_bytes().to_vec(), "spiders"),
        ("", tar(&[("README.md", "")]), "no spider"),
        ("", tar(&[("a.toml", TEXT), ("b.toml", "[fields]\na = 'p:no-such'")]), "b.toml:2:"),
    ] {
        let answer = upload(fixture, query, body).await;
        let detail = answer.body["detail"].as_str().unwrap();
        assert_eq!((answer.status, detail.contains(expected)), (400, true), "{expected}: {detail}");
    }
    let answer = upload(fixture, "spider=books", "#".repeat(1024 * 1024 + 1)).await;
    assert_eq!(answer.status, 413);
    assert_eq!(fixture.get("/api/v1/spiders").await.body["spiders"], json!([]));
}

async fn every_mistake_of_a_spider_is_told_with_its_place_and_nothing_is_stored(fixture: &Fixture) {
    let text = "max_page = 1\n[start]\nurls = ['ftp://a.example/']\n[fields]\nname = 'p:no-such'\n";
    let checked = check(fixture, json!({ "text": text, "spider": "books" })).await.body;
    let places: Vec<[u64; 2]> = checked["mistakes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mistake| ["line", "column"].map(|part| mistake[part].as_u64().unwrap()))
        .collect();
    assert_eq!(places, [[1, 1], [3, 9], [5, 8]], "{checked}");
    assert_eq!((&checked["spider"], &checked["needs_tree"]), (&"books".into(), &Value::Null));
    let broken = check(fixture, json!({ "text": "[start" })).await.body;
    assert_eq!(broken["mistakes"].as_array().unwrap().len(), 1, "{broken}");
    assert_eq!(fixture.get("/api/v1/spiders").await.body["spiders"], json!([]));
    for wrong in [json!({}), json!({ "text": 1 }), json!({ "text": "", "spider": "../etc" })] {
        assert_eq!(check(fixture, wrong).await.status, 400);
    }
}

async fn what_a_spider_leaves_to_others_is_told(fixture: &Fixture) {
    let text = "schedule = '0 3 * * *'\n[arguments]\npage = { help = 'which' }\n\
                [start]\nurls = ['http://a.example/{arg.page}']\n\
                [request]\nheaders = { X-Key = { env = 'TRAWL_NO_SUCH' } }\n";
    let limits = settings::Spiders { variables: vec!["TRAWL_NO_SUCH".to_owned()], ..Default::default() };
    let fixture = &fixture.also_with(Settings { spiders: limits, ..Settings::default() }).await;
    let checked = check(fixture, json!({ "text": text, "arguments": { "page": "1" } })).await.body;
    assert_eq!(checked["mistakes"], json!([]), "{checked}");
    assert_eq!(checked["unset"].as_array().unwrap().len(), 1, "{checked}");
    assert_eq!(checked["arguments"], json!([{ "name": "page", "default": "1", "help": "which" }]));
    assert_eq!(checked["schedule"]["next"].as_array().unwrap().len(), 3);
    let unset = check(fixture, json!({ "text": text })).await.body["unset"].clone();
    assert_eq!(unset.as_array().unwrap().len(), 2, "{unset}");
    let unknown = check(fixture, json!({ "text": text, "arguments": { "pages": "1" } })).await.body;
    let mut mistakes = unknown["mistakes"].as_array().unwrap().iter();
    assert!(mistakes.any(|mistake| mistake["what"].as_str().unwrap().contains("`pages`")), "{unknown}");
}

async fn who_may_only_look_deploys_and_removes_nothing(fixture: &Fixture) {
    upload(fixture, "spider=books", TEXT).await;
    let viewer =
        |method, path: &str| fixture.send(fixture.request(method, path).bearer_auth(VIEWER).body(TEXT));
    assert_eq!(viewer(Method::POST, &format!("{VERSIONS}?spider=hats")).await.status, 403);
    assert_eq!(viewer(Method::DELETE, "/api/v1/projects/shop").await.status, 403);
    assert_eq!(viewer(Method::GET, VERSIONS).await.body["versions"][0]["spiders"], json!(["books"]));
}

async fn who_may_only_look_has_a_deployed_spider_checked(fixture: &Fixture) {
    upload(fixture, "spider=books", TEXT).await;
    let path = "/api/v1/projects/shop/spiders/books/check";
    let checked = fixture.send(fixture.request(Method::GET, path).bearer_auth(VIEWER)).await.body;
    assert_eq!((&checked["spider"], &checked["mistakes"]), (&"books".into(), &json!([])), "{checked}");
    assert_eq!(checked["does"][0], json!({ "what": "starts", "how": "from 1 URL" }));
    assert_eq!(fixture.get(&format!("{path}?version=none")).await.status, 404);
}

#[tokio::test]
async fn spiders_that_have_files_beside_the_api_are_listed_and_read_without_a_version() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("books.toml"), TEXT).unwrap();
    let fixture = Fixture::embedded().await;
    let settings = Settings { spiders_dir: folder.path().to_owned(), ..Settings::default() };
    let backend = Backend { settings: Arc::new(settings), ..fixture.backend.clone() };
    let fixture = fixture.again_over(backend).await;
    let spiders = fixture.get("/api/v1/spiders").await.body["spiders"].clone();
    assert_eq!(spiders, json!([{ "project": "default", "spider": "books", "version": null }]));
    let path = "/api/v1/projects/default/spiders/books";
    let said = fixture.get(path).await.body;
    assert_eq!((&said["version"], said["text"].as_str()), (&Value::Null, Some(TEXT)));
    assert_eq!(fixture.get(&format!("{path}/check")).await.body["mistakes"], json!([]));
    for missing in ["default/spiders/hats", "shop/spiders/books", "default/spiders/books?version=r1"] {
        assert_eq!(fixture.get(&format!("/api/v1/projects/{missing}")).await.status, 404, "{missing}");
    }
}
