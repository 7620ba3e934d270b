//! Pages that a spider hands to other spiders: one process, no server.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use trawl_testkit::shop_site::{CATEGORIES, PAGES, PER_PAGE, ShopSite, VARIANTS};

use crate::support::workspace::Workspace;

/// Reads the lists, and hands each product to the spider `products`, which hands each variant to `variants`; these hand
/// all pages back to both.
const LISTS: &str = r#"
[follow]
include = ['/c/']
[[hand_over]]
spider = "products"
each = "article"
include = ['/p/']
carry = { teaser = ".teaser::text" }
"#;

const PRODUCTS: &str = r#"
[fields]
title = "h1::text"
teaser = { carried = "teaser" }
[[hand_over]]
spider = "variants"
include = ['/v/']
[[hand_over]]
spider = "lists"
request = { url = "/c/0" }
"#;

const VARIANT: &str = "fields = { title = 'h1::text' }\n";

/// Returns a folder with these spiders.
fn folder(site: &ShopSite) -> Workspace {
    let lists = format!("start.urls = ['{}/']\nallowed_domains = ['127.0.0.1']\n{LISTS}", site.origin);
    let folder = Workspace::new("lists.toml", &lists, &[], &[]);
    fs::create_dir(folder.path().join("spiders")).unwrap();
    for (name, text) in [("lists", &*lists), ("products", PRODUCTS), ("variants", VARIANT)] {
        fs::write(folder.path().join(format!("spiders/{name}.toml")), text).unwrap();
    }
    folder
}

/// Returns the items of a spider by id: those of one id are one item, delivered again.
fn of_spider<'a>(items: &'a [Value], spider: &str) -> BTreeMap<&'a str, &'a Value> {
    let own = items.iter().filter(|item| item["spider"] == spider);
    own.map(|item| (item["id"].as_str().unwrap(), item)).collect()
}

/// Checks that the products and their variants are there.
fn check(items: &[Value]) {
    let products = of_spider(items, "products");
    assert_eq!(products.len(), CATEGORIES.len() * PAGES * PER_PAGE);
    for item in products.values() {
        let title = item["fields"]["title"].as_str().unwrap();
        assert_eq!(item["fields"]["teaser"], json!(title.replace("Product", "Teaser")));
        assert_eq!(item["crawl"], "adhoc.products");
    }
    assert_eq!(of_spider(items, "variants").len(), products.len() * VARIANTS);
}

#[tokio::test]
async fn pages_handed_from_spider_to_spider_are_all_read_once_before_the_command_ends() {
    let site = ShopSite::serve().await;
    let folder = folder(&site);
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&crawl.items);
    assert!(site.asked().values().all(|count| *count == 1), "{:?}", site.asked());
    let products = CATEGORIES.len() * PAGES * PER_PAGE;
    assert_eq!(crawl.stats["reasons"]["handed:products"], json!(products), "{}", crawl.stats);
    assert!(crawl.log.contains(&format!("handed to other spiders: {products} to products")), "{}", crawl.log);
    let shown = folder.run(&["status", "adhoc.products", "--state", "crawl.db", "--json"]).await;
    let stats: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&stats["done"], &stats["pending"]), (&json!(products), &json!(0)), "{stats}");
    assert_eq!(stats["reasons"]["handed:variants"], json!(products * VARIANTS), "{stats}");
    let again = folder.crawl().await;
    assert_eq!(again.items.len(), crawl.items.len(), "nothing is read again: {}", again.log);
}

#[tokio::test]
async fn what_a_killed_crawl_had_handed_over_is_gone_on_with() {
    let site = ShopSite::serve().await;
    let folder = folder(&site);
    site.gate.hold_after(20);
    let mut crawl =
        folder.crawling("lists.toml").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    site.gate.asked_for(21).await;
    crawl.kill().await.unwrap();
    site.gate.answer_all();
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(0), "{}", crawl.log);
    check(&crawl.items);
}

#[tokio::test]
async fn a_page_for_a_spider_that_is_not_there_is_a_dead_letter_that_names_it() {
    let site = ShopSite::serve().await;
    let folder = folder(&site);
    fs::remove_file(folder.path().join("spiders/products.toml")).unwrap();
    let crawl = folder.crawl().await;
    assert_eq!(crawl.code, Some(3), "{}", crawl.log);
    let dead = folder.run(&["dlq", "list", "--state", "crawl.db", "--json"]).await;
    let dead = String::from_utf8(dead.stdout).unwrap();
    assert!(dead.contains("hand_over `products`: this worker has no such spider"), "{dead}");
    fs::write(folder.path().join("spiders/products.toml"), PRODUCTS).unwrap();
    let replay = folder.run(&["dlq", "replay", "--state", "crawl.db", "--yes"]).await;
    assert!(replay.status.success(), "{}", String::from_utf8_lossy(&replay.stderr));
    let crawl = folder.crawl().await;
    check(&crawl.items);
}

#[tokio::test]
async fn the_author_sees_what_a_page_hands_over_before_anything_is_crawled() {
    let site = ShopSite::serve().await;
    let folder = folder(&site);
    let checked = folder.run(&["spider", "check", "lists.toml"]).await;
    let checked = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.contains("products: links, in each `article`, with `/p/`, carries teaser"), "{checked}");
    fs::remove_file(folder.path().join("spiders/products.toml")).unwrap();
    let warned = folder.run(&["spider", "check", "lists.toml"]).await;
    let warned = String::from_utf8(warned.stderr).unwrap();
    assert!(warned.contains("hand_over: there is no spiders/products.toml"), "{warned}");
    let page = format!("{}/c/1", site.origin);
    let words = ["spider", "try", "lists.toml", "--allow-private", &page];
    let shown = folder.run(&[&words[..], &["--links"]].concat()).await;
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("4 handed to the spider products"), "{shown}");
    let shown = folder.run(&[&words[..], &["--json"]].concat()).await;
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let handed = &shown["handed"][0];
    assert_eq!(
        (&handed["spider"], &handed["request"]["data"]),
        (&json!("products"), &json!({"teaser": "Teaser 12"}))
    );
}
