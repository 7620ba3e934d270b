//! Commands about crawls and dead letters while a fleet works.

use std::fs;

use serde_json::Value;
use tokio::process::Child;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

const PAGES: usize = 60;
/// Number of pages that have been answered when a command is given.
const ANSWERED: usize = 10;
/// Number of pages that a worker fetches at once.
const AT_ONCE: usize = 4;

/// The stats of the crawl, as `trawl status` prints them.
async fn stats_of(fleet: &Fleet) -> Value {
    let printed = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    serde_json::from_slice(&printed.stdout).unwrap()
}

/// Returns the output of a command that must succeed.
async fn output_of(fleet: &Fleet, words: &[&str]) -> String {
    let output = timeout(LIMIT, fleet.command(words).output()).await.unwrap().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{words:?}: {text}");
    text
}

/// Starts a crawl whose site has answered the first pages and holds back the others.
async fn half_way(fleet: &Fleet) -> (Site, Child, Child) {
    let site = Site::serve(PAGES).await;
    site.hold_after(ANSWERED);
    let worker = fleet.worker(&[]);
    let producer = fleet.producer(&format!("{}/sitemap.xml", site.origin)).spawn().unwrap();
    timeout(LIMIT, site.asked_for(ANSWERED + AT_ONCE)).await.unwrap();
    // An answered page is settled a moment after the next one is requested.
    until(fleet, |stats| stats["done"] == ANSWERED).await;
    (site, worker, producer)
}

async fn until(fleet: &Fleet, what: impl Fn(&Value) -> bool) -> Value {
    let asking = async {
        loop {
            let stats = stats_of(fleet).await;
            if what(&stats) {
                return stats;
            }
        }
    };
    timeout(LIMIT, asking).await.unwrap()
}

#[tokio::test]
async fn a_paused_crawl_begins_no_fetch_until_it_is_resumed() {
    let fleet = Fleet::new().await;
    let (site, worker, mut producer) = half_way(&fleet).await;
    assert!(output_of(&fleet, &["pause", &fleet.name]).await.contains("is paused"));
    site.answer_all();
    let begun = (ANSWERED + AT_ONCE) as u64;
    let stats = until(&fleet, |stats| stats["done"] == begun).await;
    assert_eq!((&stats["status"], &stats["pending"]), (&"paused".into(), &(PAGES as u64 - begun).into()));

    output_of(&fleet, &["resume", &fleet.name]).await;
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(0));
    assert_eq!(stats_of(&fleet).await["done"], PAGES);
    assert!(site.log().values().all(|asked| *asked == 1), "{:?}", site.log());
    ends_well(worker).await;
}

#[tokio::test]
async fn a_cancelled_crawl_is_over_and_a_later_one_finds_its_urls_again() {
    let fleet = Fleet::new().await;
    let (site, worker, mut producer) = half_way(&fleet).await;
    let left = PAGES - ANSWERED;
    assert!(
        output_of(&fleet, &["cancel", &fleet.name]).await.contains(&format!("0 pending, {left} cancelled"))
    );
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(4));
    site.answer_all();

    let spider = format!("--spider={}", fleet.name);
    let sitemap = format!("{}/sitemap.xml", site.origin);
    let printed = output_of(&fleet, &["producer", &sitemap, &spider, "--crawl=later", "--wait"]).await;
    assert!(
        printed.contains(&format!("{left} URLs new in crawl later, {ANSWERED} seen before")),
        "{printed}"
    );
    let again = fleet.command(&["cancel", "later"]).output().await.unwrap();
    assert_eq!(again.status.code(), Some(1), "a finished crawl cannot be cancelled");
    output_of(&fleet, &["cancel", &fleet.name]).await;
    ends_well(worker).await;
}

#[tokio::test]
async fn dead_letters_can_be_looked_at_sent_again_and_purged() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let worker = fleet.worker(&[]);
    fs::write(fleet.folder.path().join("list.txt"), [1, 2, 3].map(|page| site.page(page) + "\n").concat())
        .unwrap();
    let produced = timeout(LIMIT, fleet.producer("list.txt").output()).await.unwrap().unwrap();
    assert_eq!(produced.status.code(), Some(3));

    let listed = output_of(&fleet, &["dlq", "list", "--json"]).await;
    let dead_letters: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(dead_letters.len(), 3);
    assert_eq!((&dead_letters[0]["reason"], &dead_letters[0]["status"]), (&"final".into(), &404.into()));
    let grouped = output_of(&fleet, &["dlq", "list", "--group"]).await;
    assert_eq!(grouped.split_whitespace().collect::<Vec<_>>(), ["3", "final", "http", "404", "127.0.0.1"]);
    assert!(output_of(&fleet, &["dlq", "show", &site.page(2)]).await.contains("404 Not Found"));
    for (words, found) in
        [(&["--reason", "expired"], 0), (&["--host", "127.0.0.1"], 3), (&["--limit", "2"], 2)]
    {
        let printed = output_of(&fleet, &[&["dlq", "list"], &words[..]].concat()).await;
        assert!(printed.contains(&format!("{found} dead letters")), "{printed}");
    }
    let asked = fleet.command(&["dlq", "purge"]).output().await.unwrap();
    assert_eq!(asked.status.code(), Some(2), "everything is not purged without --yes");

    let printed = output_of(&fleet, &["dlq", "list", &site.page(2), "--reason", "final"]).await;
    assert!(printed.contains("1 dead letter") && printed.contains("/page/2"), "{printed}");

    site.grow(3);
    let printed = output_of(&fleet, &["dlq", "replay", "--yes"]).await;
    let successor = format!("{}.r1", fleet.name);
    assert!(printed.contains(&successor) && printed.contains("3 dead letters sent again"), "{printed}");
    let waited =
        timeout(LIMIT, fleet.command(&["wait", &successor, "--json"]).output()).await.unwrap().unwrap();
    assert_eq!(waited.status.code(), Some(3));
    let stats: Value = serde_json::from_slice(&waited.stdout).unwrap();
    assert_eq!((&stats["done"], &stats["failed"]), (&2.into(), &1.into()));
    assert_eq!(stats_of(&fleet).await["failed"], 3, "a finished crawl's stats stay as they are");
    assert_eq!(fleet.items().await.len(), 2);

    assert!(output_of(&fleet, &["dlq", "purge", "--yes"]).await.contains("1 dead letter purged"));
    assert!(output_of(&fleet, &["dlq", "list"]).await.contains("0 dead letters"));
    ends_well(worker).await;
}

#[tokio::test]
async fn what_a_spider_has_seen_is_packed_and_still_seen() {
    let fleet = Fleet::new().await;
    let site = Site::serve(PAGES).await;
    let (spider, sitemap) = (format!("--spider={}", fleet.name), format!("{}/sitemap.xml", site.origin));
    let run = async |crawl: &str| output_of(&fleet, &["producer", &sitemap, &spider, crawl]).await;
    assert!(run("--crawl=first").await.contains(&format!("{PAGES} URLs new in crawl first")));
    assert!(
        output_of(&fleet, &["pack"]).await.contains(&format!("spider {}: {PAGES} URLs packed", fleet.name))
    );
    assert!(output_of(&fleet, &["pack", &fleet.name]).await.contains("nothing to pack"));
    let printed = run("--crawl=later").await;
    assert!(printed.contains(&format!("0 URLs new in crawl later, {PAGES} seen before")), "{printed}");
}
