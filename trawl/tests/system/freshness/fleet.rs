//! Crawls of a fleet that fetch pages again.

use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::changing_site::{ChangingPage, ChangingSite};

use crate::freshness::{asked, changed, unchanged, whole};
use crate::support::{Fleet, LIMIT, ends_well};

const PAGES: usize = 40;

/// A crawl of a spider that fetches pages again.
async fn recrawl(fleet: &Fleet, site: &ChangingSite, id: &str, mode: &str) {
    let source = format!("{}/sitemap.xml", site.origin);
    let words = [
        "producer",
        &source,
        "--spider",
        "again",
        "--no-file",
        "--crawl",
        id,
        "--recrawl",
        mode,
        "--wait",
        "-q",
    ];
    ends(fleet.command(&words)).await;
}

async fn ends(mut producer: Command) {
    let ended = timeout(LIMIT, producer.output()).await.unwrap().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}

async fn changes(fleet: &Fleet, of: &str) -> usize {
    fleet.items().await.iter().filter(|item| item["change"] == of).count()
}

#[tokio::test]
async fn two_workers_ask_once_for_each_page_and_mark_what_has_changed() {
    let (fleet, site) = (Fleet::new().await, ChangingSite::serve().await);
    let path = |number: usize| format!("/p/{number:02}");
    (0..PAGES).for_each(|number| site.put(&path(number), ChangingPage::tagged("first")));
    let workers = [fleet.worker(&[]), fleet.worker(&[])];
    recrawl(&fleet, &site, "first", "changed").await;
    assert_eq!(asked(&site), (0..PAGES).map(|number| whole(&path(number))).collect::<Vec<_>>());
    site.put(&path(7), ChangingPage::tagged("second"));
    recrawl(&fleet, &site, "second", "changed").await;
    let expected = |number| if number == 7 { changed(&path(number)) } else { unchanged(&path(number)) };
    assert_eq!(asked(&site), (0..PAGES).map(expected).collect::<Vec<_>>());
    assert_eq!(
        (changes(&fleet, "new").await, changes(&fleet, "changed").await, changes(&fleet, "unchanged").await),
        (PAGES, 1, 0)
    );
    for worker in workers {
        ends_well(worker).await;
    }
}

#[tokio::test]
async fn a_response_is_cached_as_long_as_its_origin_allows_and_hides_no_change() {
    let (fleet, site) = (Fleet::new().await, ChangingSite::serve().await);
    let lasting =
        |title| ChangingPage { cache_control: Some("max-age=600".into()), ..ChangingPage::titled(title) };
    site.put("/p/lasting", lasting("first"));
    site.put(
        "/p/private",
        ChangingPage { cache_control: Some("private, max-age=600".into()), ..ChangingPage::titled("x") },
    );
    let worker = fleet.worker(&[("TRAWL__CACHE__TTL", "1ms")]);
    recrawl(&fleet, &site, "first", "always").await;
    asked(&site);
    site.put("/p/lasting", lasting("second"));
    // For another spider all pages are new.
    ends(fleet.producer(&format!("{}/sitemap.xml", site.origin))).await;
    assert_eq!(asked(&site), [whole("/p/private")], "the other is still fresh");
    recrawl(&fleet, &site, "second", "changed").await;
    assert_eq!(asked(&site), [whole("/p/lasting"), whole("/p/private")]);
    assert_eq!(changes(&fleet, "changed").await, 1);
    ends_well(worker).await;
}
