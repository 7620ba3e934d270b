//! The example spiders, each on a site of the kind it is written for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use trawl_testkit::sample_sites::{ARTICLES, BOOKS, GUIDES, Kind, LISTS, PRODUCTS_EACH, SampleSites};

const DOCS: &str = include_str!("../../../spiders/docs.toml");
const SHOP: &str = include_str!("../../../spiders/shop.toml");
const NEWS: &str = include_str!("../../../spiders/news.toml");
const API: &str = include_str!("../../../spiders/api.toml");

/// A folder with an example's file, with a test site in place of the one it names.
fn folder(name: &str, text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
    folder
}

async fn crawl(folder: &Path, name: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    command
        .args([
            "crawl",
            "--spider",
            &format!("{name}.toml"),
            "--allow-private",
            "--rate",
            "unlimited",
            "--json",
        ])
        .args(flags)
        .current_dir(folder)
        .env_clear()
        .env("API_TOKEN", "secret")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command.output().await.unwrap()
}

/// Returns the crawl's stats and its items.
fn outcome(folder: &Path, output: &Output) -> (Value, Vec<Value>) {
    let printed = String::from_utf8_lossy(&output.stderr);
    let stats = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{printed}"));
    let text =
        fs::read_to_string(folder.join("items.jsonl")).unwrap_or_else(|error| panic!("{error}: {printed}"));
    (stats, text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn numbers(items: &[Value], of: &str) -> BTreeSet<usize> {
    let urls = items.iter().map(|item| item["url"].as_str().unwrap());
    urls.filter_map(|url| url.split_once(of)?.1.parse().ok()).collect()
}

#[tokio::test]
async fn a_documentation_site_is_read_from_its_start_page() {
    let site = SampleSites::serve(Kind::Docs).await;
    let folder = folder("docs", &site.spider(DOCS));
    let output = crawl(folder.path(), "docs", &[]).await;
    let (stats, items) = outcome(folder.path(), &output);
    assert_eq!((output.status.code(), &stats["done"]), (Some(0), &json!(GUIDES + 1)), "{stats}");
    assert_eq!(numbers(&items, "/guide/"), (0..GUIDES).collect());
    let page = items.iter().find(|item| item["url"].as_str().unwrap().ends_with("/guide/1")).unwrap();
    let fields = &page["fields"];
    assert_eq!((&fields["title"], &fields["headings"]), (&json!("Chapter 1"), &json!(["What", "How"])));
    assert_eq!((&fields["section"], &fields["code"]), (&json!(["Home", "Guide"]), &json!(["run 1"])));
    assert_eq!((&fields["updated"], page["depth"].as_u64() > Some(1)), (&json!("2026-01-02"), true));
    assert!(fields["text"].as_str().unwrap().contains("Chapter 1 of the guide."), "{fields}");
    let asked: BTreeSet<String> = site.log().into_iter().map(|asked| asked.path).collect();
    assert!(
        !asked.iter().any(|path| path.contains("print") || path.contains("imprint") || path.contains('?'))
    );
}

#[tokio::test]
async fn a_shop_is_read_page_by_page_with_what_it_tells_search_engines() {
    let site = SampleSites::serve(Kind::Shop).await;
    let folder = folder("shop", &site.spider(SHOP));
    let output = crawl(folder.path(), "shop", &[]).await;
    let (stats, items) = outcome(folder.path(), &output);
    let products: Vec<Value> = items.iter().filter(|item| item["item"] == "product").cloned().collect();
    let count = LISTS * PRODUCTS_EACH;
    assert_eq!(numbers(&products, "/product/"), (0..count).collect(), "{stats}");
    assert_eq!(stats["reasons"]["missing:price"], count.div_ceil(3), "every third has no price");
    let one = products.iter().find(|item| item["url"].as_str().unwrap().ends_with("/product/7")).unwrap();
    let image = |name: &str| format!("{}/img/7-{name}.png", site.origin);
    assert_eq!(
        one["fields"],
        json!({
            "name": "Product 7", "sku": "P-7", "price": 1007.5, "currency": "CHF", "in_stock": true,
            "images": [image("a"), image("b")],
            "offers": [{"seller": "Ann", "price": 12.5}, {"seller": "Ben", "price": 13}],
        })
    );
    let table = items.iter().find(|item| item["item"] == "page" && item["url"] == one["url"]).unwrap();
    assert_eq!(table["fields"]["specifications"], json!([{"Size": "7", "Weight": "7 kg"}]));
    assert_ne!(table["id"], one["id"]);
    assert!(!site.log().iter().any(|asked| asked.path.contains("sort") || asked.path.contains("cart")));
}

#[tokio::test]
async fn a_news_site_is_read_again_only_where_it_has_changed() {
    let site = SampleSites::serve(Kind::News).await;
    let folder = folder("news", &site.spider(NEWS));
    let first = crawl(folder.path(), "news", &[]).await;
    let (stats, items) = outcome(folder.path(), &first);
    assert_eq!((first.status.code(), numbers(&items, "/news/").len()), (Some(0), ARTICLES), "{stats}");
    assert!(items.iter().all(|item| item["change"] == "new"));
    let fields =
        &items.iter().find(|item| item["url"].as_str().unwrap().ends_with("/news/3")).unwrap()["fields"];
    assert_eq!(
        (&fields["headline"], &fields["author"]),
        (&json!("Story 3, first version"), &json!("A. Writer"))
    );
    assert_eq!(fields["image"], format!("{}/img/3.jpg", site.origin));
    site.log();
    site.rewrite(4);
    let second = crawl(folder.path(), "news", &[]).await;
    let (stats, items) = outcome(folder.path(), &second);
    let asked: Vec<_> = site.log().into_iter().filter(|asked| asked.path.starts_with("/news/")).collect();
    assert_eq!(items.len(), ARTICLES + 1, "{stats}");
    let last = &items[ARTICLES];
    assert_eq!(
        (&last["change"], &last["fields"]["headline"]),
        (&json!("changed"), &json!("Story 4, second version"))
    );
    let unchanged = asked.iter().filter(|asked| asked.status == 304).count();
    assert_eq!(
        (asked.len(), unchanged),
        (ARTICLES / 2 + 1, ARTICLES / 2),
        "what the sitemap vouches for is not asked"
    );
    assert_eq!(stats["reasons"]["skipped:unchanged"], ARTICLES / 2);
}

#[tokio::test]
async fn an_api_is_read_from_page_to_page() {
    let site = SampleSites::serve(Kind::Api).await;
    let folder = folder("api", &site.spider(API));
    let output = crawl(folder.path(), "api", &[]).await;
    let (stats, items) = outcome(folder.path(), &output);
    assert_eq!((output.status.code(), &stats["done"]), (Some(0), &json!(3)), "{stats}");
    let ids: BTreeSet<u64> = items.iter().map(|item| item["fields"]["id"].as_u64().unwrap()).collect();
    assert_eq!((items.len(), ids.len()), (BOOKS, BOOKS));
    assert_eq!(
        items[0]["fields"],
        json!({"id": items[0]["fields"]["id"], "title": items[0]["fields"]["title"], "authors": ["One", "Two"],
               "published": "2001-02-03", "price": 9.5})
    );
    let distinct: BTreeSet<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(distinct.len(), BOOKS);
}

#[tokio::test]
async fn a_crawl_ends_after_as_many_pages_as_it_may_do() {
    let site = SampleSites::serve(Kind::Shop).await;
    let folder = folder("shop", &site.spider(SHOP));
    let output = crawl(folder.path(), "shop", &["--max-pages", "7"]).await;
    let (stats, items) = outcome(folder.path(), &output);
    let pages: BTreeSet<&str> = items.iter().map(|item| item["url"].as_str().unwrap()).collect();
    assert_eq!(
        (&stats["status"], &stats["done"], pages.len()),
        (&json!("finished"), &json!(7), 7),
        "{stats}"
    );
    assert_eq!(stats["reasons"]["skipped:limit"], stats["skipped"]);
}

#[tokio::test]
async fn settings_and_spider_of_the_example_for_kubernetes_are_right() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/kubernetes/example");
    for words in [["config", "check", "--config=trawl.toml"], ["spider", "check", "spiders/shop.toml"]] {
        let checked = Command::new(env!("CARGO_BIN_EXE_trawl")).args(words).current_dir(folder).output();
        let checked = checked.await.unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
