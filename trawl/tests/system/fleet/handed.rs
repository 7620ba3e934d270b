//! Tasks and pages that a crawl hands to other spiders, whose ad-hoc crawls never end.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use tokio::time::timeout;
use trawl_testkit::shop_site::{CATEGORIES, PAGES, PER_PAGE, ShopSite};

use crate::support::{Fleet, LIMIT, ends_well};

/// Returns the file of a spider whose tasks run this shell command.
fn runs(command: &str) -> String {
    format!("[handler]\nrun = ['/bin/sh', '-c', '''{command}''']\n")
}

#[tokio::test]
async fn the_wait_for_a_crawl_ends_when_all_that_its_tasks_handed_on_is_done() {
    let fleet = Fleet::new().await;
    let spiders = fleet.folder.path().join("spiders");
    let hands =
        |to: &str| runs(&format!(r#"echo '{{"result":0,"tasks":[{{"recipe":"r","spider":"{to}"}}]}}'"#));
    let (second, third) = (format!("{}b", fleet.name), format!("{}c", fleet.name));
    fs::write(spiders.join(format!("{}.toml", fleet.name)), hands(&second)).unwrap();
    fs::write(spiders.join(format!("{second}.toml")), hands(&third)).unwrap();
    let blocks = "while [ ! -e go ]; do sleep 0.05; done; echo '{\"result\":0}'";
    fs::write(spiders.join(format!("{third}.toml")), runs(blocks)).unwrap();
    fs::write(fleet.folder.path().join("tasks.jsonl"), "\"first\"\n").unwrap();
    let run = async |words: &[&str]| {
        let ran = timeout(LIMIT, fleet.command(words).output()).await.unwrap().unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    let worker = fleet.worker(&[]);
    let (code, _, stderr) =
        run(&["producer", "tasks.jsonl", "--spider", &fleet.name, "--crawl", &fleet.name]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let stats = async |crawl: &str| {
        serde_json::from_str::<Value>(&run(&["status", crawl, "--json"]).await.1).unwrap_or_default()
    };
    let third = format!("adhoc.{third}");
    let begun = async { while stats(&third).await["pending"] != 1 {} };
    timeout(LIMIT, begun).await.unwrap();
    let finished = async { while stats(&fleet.name).await["status"] != "finished" {} };
    timeout(LIMIT, finished).await.unwrap();
    for crawl in [&fleet.name, &third] {
        assert_eq!(run(&["wait", crawl, "--timeout", "1s"]).await.0, Some(124), "{crawl}");
    }
    fs::write(spiders.join("go"), "").unwrap();
    for crawl in [&fleet.name, &third] {
        let (code, _, stderr) = run(&["wait", crawl]).await;
        assert_eq!(code, Some(0), "{stderr}");
    }
    let third = stats(&third).await;
    assert_eq!((&third["done"], &third["pending"]), (&1.into(), &0.into()), "{third}");
    let (_, shown, _) = run(&["status", &fleet.name]).await;
    assert!(shown.lines().any(|line| line.contains("handed") && line.contains(&second)), "{shown}");
    ends_well(worker).await;
}

#[tokio::test]
async fn pages_handed_to_another_spider_outlive_the_worker_that_was_handing_them_over() {
    let (site, fleet) = (ShopSite::serve().await, Fleet::new().await);
    let spiders = fleet.folder.path().join("spiders");
    let lists = "follow.include = ['/c/']\nallowed_domains = ['127.0.0.1']\n\
        [[hand_over]]\nspider = 'products'\neach = 'article'\ncarry = { teaser = '.teaser::text' }\n";
    fs::write(spiders.join(format!("{}.toml", fleet.name)), lists).unwrap();
    let products = "fields = { title = 'h1::text', teaser = { carried = 'teaser' } }\n";
    fs::write(spiders.join("products.toml"), products).unwrap();
    fs::write(fleet.folder.path().join("start.txt"), format!("{}/\n", site.origin)).unwrap();
    site.gate.hold_after(9);
    let mut killed = fleet.worker(&[]);
    let mut producer = fleet.producer("start.txt").spawn().unwrap();
    timeout(LIMIT, site.gate.asked_for(10)).await.unwrap();
    killed.kill().await.unwrap();
    site.gate.answer_all();
    let worker = fleet.worker(&[]);
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    let items = fleet.items().await;
    let items = items.iter().filter(|item| item["spider"] == "products");
    let titles = |item: &Value| {
        let (title, teaser) = (&item["fields"]["title"], &item["fields"]["teaser"]);
        [title, teaser].map(|text| text.as_str().unwrap().to_owned())
    };
    let found: BTreeSet<_> = items.map(titles).collect();
    let all =
        (0..CATEGORIES.len() * PAGES * PER_PAGE).map(|n| [format!("Product {n}"), format!("Teaser {n}")]);
    assert_eq!(found, all.collect());
    ends_well(worker).await;
}
