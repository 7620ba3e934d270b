//! `trawl reextract`: items made anew from archives.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use trawl_testkit::shop_site::{SPIDER, ShopSite};

use super::*;

/// Returns items by id.
fn by_id(items: Vec<Value>) -> BTreeMap<String, Value> {
    items.into_iter().map(|item| (item["id"].as_str().unwrap().to_owned(), item)).collect()
}

fn lines(output: &Output) -> Vec<Value> {
    shown(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn items_made_anew_are_those_of_the_crawl_and_the_site_is_not_asked() {
    let (workspace, site) = (Workspace::new(), ShopSite::serve().await);
    let archive =
        "[[sinks]]\nkind = 'warc'\npath = 'archive'\n[[sinks]]\nkind = 'jsonl'\npath = 'items.jsonl'";
    workspace.write("shop.toml", &format!("start.urls = ['{}/']\n{SPIDER}\n{archive}", site.origin));
    let crawled = workspace.run(&[&CRAWL[..], &["--spider=shop.toml"]].concat()).await;
    assert_eq!(crawled.status.code(), Some(0), "{}", printed(&crawled));
    let (asked, crawled) = (site.asked().len(), by_id(workspace.items()));
    let anew = workspace.run(&["reextract", "shop.toml", "archive"]).await;
    assert_eq!(anew.status.code(), Some(0), "{}", printed(&anew));
    assert_eq!((by_id(lines(&anew)), crawled.len()), (crawled.clone(), lines(&anew).len()));
    let told = format!("{asked} pages, {} items\n", crawled.len());
    assert!(printed(&anew).ends_with(&told), "{}", printed(&anew));

    let changed = fs::read_to_string(workspace.path().join("shop.toml")).unwrap();
    let (from, to) = ("title = \"h1::text\"", "title = { css = \"h1::text\", transform = [\"lower\"] }");
    assert!(changed.contains(from), "{changed}");
    workspace.write("shop.toml", &changed.replace(from, to));
    let anew = workspace.run(&["reextract", "shop.toml", "archive", "--sinks", "--json"]).await;
    assert_eq!(anew.status.code(), Some(0), "{}", printed(&anew));
    let counts: Value = serde_json::from_slice(&anew.stdout).unwrap();
    let expected = json!({"pages": asked, "items": crawled.len(), "failed": 0, "skipped": {}, "broken": 0});
    assert_eq!(counts, expected);
    let last = by_id(workspace.items());
    assert_eq!(last.keys().collect::<Vec<_>>(), crawled.keys().collect::<Vec<_>>());
    assert!(last.values().any(|item| item["fields"]["title"] == "product 30"), "{last:?}");
    assert_eq!(site.asked().len(), asked);
}

/// A record of an archive that another program wrote.
fn record(kind: &str, url: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: <{url}>\r\nWARC-Date: 2024-05-06T07:08:09Z\r\n\
         WARC-Record-ID: <urn:uuid:1>\r\nContent-Type: application/http; msgtype={kind}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Returns a page as it was on the wire.
fn page(title: &str) -> Vec<u8> {
    let body = gzip(format!("<h1>{title}</h1>").as_bytes());
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    [head.as_bytes(), format!("{:x}\r\n", body.len()).as_bytes(), &body, b"\r\n0\r\n\r\n"].concat()
}

const TITLES: &str =
    "allowed_domains = ['site.example']\nfields.title = { css = 'h1::text', required = 'fail' }\n";

#[tokio::test]
async fn an_archive_of_another_program_is_read_as_far_as_it_is_whole() {
    let workspace = Workspace::new();
    workspace.write("titles.toml", TITLES);
    let image = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nPNG";
    let records = [
        record("warcinfo", "", b"software: another\r\n"),
        record("request", "http://site.example/1", b"GET /1 HTTP/1.1\r\n\r\n"),
        record("response", "http://site.example/1", &page("One")),
        record("response", "http://site.example/logo", image),
        record("response", "http://ads.example/", &page("Buy")),
        record("response", "http://site.example/gone", b"HTTP/1.1 404 Not Found\r\n\r\n"),
        record("response", "http://site.example/odd", b"SPDY"),
        record(
            "response",
            "http://site.example/none",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>",
        ),
        record("response", "http://site.example/2", &page("Two")),
    ];
    let path = |name: &str| workspace.path().join(name);
    fs::write(path("plain.warc"), records.concat()).unwrap();
    let members: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    fs::write(path("packed.warc.gz"), &members).unwrap();
    for file in ["plain.warc", "packed.warc.gz"] {
        let anew = workspace.run(&["reextract", "titles.toml", file]).await;
        let items = lines(&anew);
        let titles: Vec<_> = items.iter().map(|item| item["fields"]["title"].as_str().unwrap()).collect();
        assert_eq!((titles, anew.status.code()), (vec!["One", "Two"], Some(3)), "{}", printed(&anew));
        assert_eq!(
            (&items[0]["url"], &items[0]["fetched_at"]),
            (&json!("http://site.example/1"), &json!("2024-05-06T07:08:09.000Z"))
        );
        let told = printed(&anew);
        assert!(
            told.contains("2 pages, 2 items; 3 skipped (content-type 1, domain 1, status 1); 2 pages failed"),
            "{told}"
        );
        assert!(
            told.contains("http://site.example/none: ") && told.contains("the page has no `title`"),
            "{told}"
        );
        assert!(told.contains("http://site.example/odd: "), "{told}");
    }

    // Broken ones: the others are read to their ends.
    fs::write(path("cut.warc.gz"), &members[..members.len() - 9]).unwrap();
    fs::write(path("cut.warc"), &records.concat()[..records.concat().len() - 9]).unwrap();
    fs::write(path("noise.warc"), [7; 99]).unwrap();
    fs::write(
        path("lies.warc"),
        [&record("response", "http://site.example/3", &page("Three"))[..60], &[b'x'; 100_000]].concat(),
    )
    .unwrap();
    fs::write(path("empty.warc"), "").unwrap();
    let words = [
        "reextract",
        "titles.toml",
        "cut.warc.gz",
        "cut.warc",
        "noise.warc",
        "lies.warc",
        "empty.warc",
        "plain.warc",
    ];
    let anew = workspace.run(&words).await;
    let told = printed(&anew);
    let titles: Vec<_> = lines(&anew).iter().map(|item| item["fields"]["title"].clone()).collect();
    assert_eq!(
        (titles, anew.status.code()),
        (vec![json!("One"), json!("Two"), json!("One"), json!("One"), json!("Two")], Some(1)),
        "{told}"
    );
    for file in ["cut.warc.gz", "cut.warc", "noise.warc", "lies.warc"] {
        assert!(told.lines().any(|line| line.starts_with(&format!("{file}: record "))), "{file}: {told}");
    }

    let none = workspace.run(&["reextract", "titles.toml", "missing.warc"]).await;
    assert_eq!(none.status.code(), Some(1), "{}", printed(&none));
    assert!(printed(&none).contains("missing.warc: "), "{}", printed(&none));
}

#[tokio::test]
async fn pages_of_another_spider_are_left_out_unless_they_are_asked_for() {
    let (workspace, site) = (Workspace::new(), Site::serve(3).await);
    workspace
        .write("first.toml", &format!("start.urls = ['{}']\nfields.title = 'title::text'\n", site.page(0)));
    workspace.write("second.toml", "fields.name = 'title::text'\n");
    let words = [&CRAWL[..], &["--spider=first.toml", "--out=archive.warc.gz"]].concat();
    assert_eq!(workspace.run(&words).await.status.code(), Some(0));
    let none = workspace.run(&["reextract", "second.toml", "archive.warc.gz"]).await;
    assert!(printed(&none).ends_with("0 pages, 0 items; 1 skipped (spider 1)\n"), "{}", printed(&none));
    let all = workspace.run(&["reextract", "second.toml", "archive.warc.gz", "--any-spider"]).await;
    assert_eq!(lines(&all)[0]["fields"].as_object().unwrap().keys().collect::<Vec<_>>(), ["name"]);
}
