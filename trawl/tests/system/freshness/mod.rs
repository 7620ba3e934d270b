//! Crawls that fetch pages again: which requests are sent, which items are stored, and that a crash hides no change.

mod crash;
mod fleet;
mod posted;
mod replayed;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::changing_site::{ChangingPage, ChangingSite};

use crate::support::LIMIT;

/// A folder to crawl a site from.
struct Workspace {
    folder: TempDir,
    site: ChangingSite,
}

/// The result of a crawl.
struct Crawled {
    stats: Value,
    printed: String,
    /// The items: path, title and change, ordered by path.
    items: Vec<(String, String, String)>,
    /// The requests: path, status, and whether the request was conditional.
    asked: Vec<(String, u16, bool)>,
}

impl Workspace {
    async fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), site: ChangingSite::serve().await }
    }

    async fn crawl(&self, source: &str, flags: &[&str]) -> Crawled {
        let out = self.folder.path().join("items.jsonl");
        let _ = fs::remove_file(&out);
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        command.args(["crawl", &format!("{}{source}", self.site.origin), "--allow-private", "--json"]);
        command.args(["--rate", "unlimited", "--concurrency", "4"]).args(flags);
        command.current_dir(self.folder.path()).env_clear().stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(LIMIT, command.output()).await.unwrap().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{printed}");
        let stats = serde_json::from_slice(&output.stdout).unwrap();
        Crawled { stats, printed, items: items(&out, &self.site.origin), asked: asked(&self.site) }
    }
}

fn asked(site: &ChangingSite) -> Vec<(String, u16, bool)> {
    site.take_log().into_iter().map(|asked| (asked.path, asked.status, asked.with_condition)).collect()
}

fn items(file: &Path, origin: &str) -> Vec<(String, String, String)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let item = |line: &str| {
        let item: Value = serde_json::from_str(line).unwrap();
        let path = item["url"].as_str().unwrap().strip_prefix(origin).unwrap().to_owned();
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        (path, text(&item["fields"]["title"]), text(&item["change"]))
    };
    let mut items: Vec<_> = text.lines().map(item).collect();
    items.sort();
    items
}

fn item(path: &str, title: &str, change: &str) -> (String, String, String) {
    (path.to_owned(), title.to_owned(), change.to_owned())
}

fn whole(path: &str) -> (String, u16, bool) {
    (path.to_owned(), 200, false)
}

fn changed(path: &str) -> (String, u16, bool) {
    (path.to_owned(), 200, true)
}

fn unchanged(path: &str) -> (String, u16, bool) {
    (path.to_owned(), 304, true)
}

const CHANGED: &[&str] = &["--recrawl", "changed"];

#[tokio::test]
async fn a_recrawl_asks_once_for_each_page_and_takes_no_item_of_what_has_not_changed() {
    let workspace = Workspace::new().await;
    workspace.site.put("/p/tag", ChangingPage::tagged("a"));
    workspace.site.put("/p/weak", ChangingPage { etag: Some("W/\"w\"".into()), ..ChangingPage::titled("b") });
    let modified = Some("Sat, 21 Nov 2026 15:45:29 GMT".into());
    workspace.site.put("/p/time", ChangingPage { modified, ..ChangingPage::titled("c") });
    let first = workspace.crawl("/sitemap.xml", CHANGED).await;
    let new =
        [("/p/tag", "a"), ("/p/time", "c"), ("/p/weak", "b")].map(|(path, title)| item(path, title, "new"));
    assert_eq!(
        (first.items, first.asked),
        (new.to_vec(), ["/p/tag", "/p/time", "/p/weak"].map(whole).to_vec())
    );
    for _ in 0..2 {
        let again = workspace.crawl("/sitemap.xml", CHANGED).await;
        assert_eq!(again.asked, ["/p/tag", "/p/time", "/p/weak"].map(unchanged));
        assert_eq!(again.items, []);
        assert_eq!((&again.stats["done"], &again.stats["skipped"]), (&0.into(), &3.into()));
        assert_eq!(again.stats["reasons"]["skipped:unchanged"], 3);
        assert_eq!(
            (&again.stats["items"], &again.stats["item_changes"]),
            (&0.into(), &json!({"unchanged": 3}))
        );
    }
}

#[tokio::test]
async fn what_has_changed_is_marked_whether_or_not_its_server_can_tell() {
    let workspace = Workspace::new().await;
    workspace.site.put("/p/mute", ChangingPage::titled("mute"));
    workspace.site.put("/p/mute/changing", ChangingPage::titled("old"));
    workspace.site.put("/p/tag", ChangingPage::tagged("old"));
    workspace.crawl("/sitemap.xml", CHANGED).await;
    workspace.site.put("/p/mute/changing", ChangingPage::titled("new"));
    workspace.site.put("/p/tag", ChangingPage::tagged("new"));
    workspace.site.put("/p/young", ChangingPage::tagged("young"));
    let again = workspace.crawl("/sitemap.xml", CHANGED).await;
    let expected = [
        item("/p/mute", "mute", "unchanged"),
        item("/p/mute/changing", "new", "changed"),
        item("/p/tag", "new", "changed"),
        item("/p/young", "young", "new"),
    ];
    assert_eq!(again.items, expected);
    assert_eq!(again.stats["item_changes"], json!({"new": 1, "changed": 2, "unchanged": 1}));
    let last = workspace.crawl("/sitemap.xml", CHANGED).await;
    let mute = [item("/p/mute", "mute", "unchanged"), item("/p/mute/changing", "new", "unchanged")];
    assert_eq!(last.items, mute);
}

#[tokio::test]
async fn always_fetches_whole_pages_and_never_remembers_nothing() {
    let workspace = Workspace::new().await;
    workspace.site.put("/p/a", ChangingPage::tagged("a"));
    let never = workspace.crawl("/sitemap.xml", &[]).await;
    assert_eq!(never.items, [item("/p/a", "a", "-")]);
    let again = workspace.crawl("/sitemap.xml", &[]).await;
    assert!(again.asked.is_empty() && again.printed.contains("1 URL was seen before"), "{}", again.printed);
    for change in ["new", "unchanged"] {
        let always = workspace.crawl("/sitemap.xml", &["--recrawl", "always"]).await;
        assert_eq!((always.asked, always.items), (vec![whole("/p/a")], vec![item("/p/a", "a", change)]));
    }
}

#[tokio::test]
async fn what_was_fetched_lately_is_not_asked_for() {
    let workspace = Workspace::new().await;
    workspace.site.put("/p/a", ChangingPage::tagged("a"));
    workspace.crawl("/sitemap.xml", &["--recrawl", "1h"]).await;
    let fresh = workspace.crawl("/sitemap.xml", &["--recrawl", "1h"]).await;
    assert_eq!((fresh.asked, &fresh.stats["admitted"]), (vec![], &0.into()));
    assert!(fresh.printed.contains("1 fetched lately"), "{}", fresh.printed);
    let old = workspace.crawl("/sitemap.xml", &["--recrawl", "1ms"]).await;
    assert_eq!(old.asked, [unchanged("/p/a")]);
}

#[tokio::test]
async fn a_page_that_its_sitemap_dates_as_old_is_not_requested() {
    let workspace = Workspace::new().await;
    let dated = |date: &str| ChangingPage { lastmod: Some(date.into()), ..ChangingPage::tagged(date) };
    workspace.site.put("/p/old", dated("2020-01-02"));
    workspace.site.put("/p/recent", dated("2999-01-01"));
    workspace.site.put("/p/strange", dated("last week"));
    workspace.crawl("/sitemap.xml", CHANGED).await;
    let again = workspace.crawl("/sitemap.xml", CHANGED).await;
    assert_eq!(again.asked, ["/p/recent", "/p/strange"].map(unchanged));
    assert!(again.printed.contains("1 unchanged by their sitemaps"), "{}", again.printed);
}

#[tokio::test]
async fn a_page_that_is_gone_is_forgotten() {
    let workspace = Workspace::new().await;
    workspace.site.put("/p/a", ChangingPage::tagged("a"));
    workspace.crawl("/sitemap.xml", CHANGED).await;
    // Between reading the sitemap and fetching the page.
    workspace.site.put("/p/a", ChangingPage { location: Some("/gone".into()), ..ChangingPage::default() });
    let gone = workspace.crawl("/sitemap.xml", CHANGED).await;
    assert_eq!(gone.stats["item_changes"], json!({"gone": 1}));
    workspace.site.put("/p/a", ChangingPage::tagged("a"));
    let again = workspace.crawl("/sitemap.xml", CHANGED).await;
    assert_eq!(again.items, [item("/p/a", "a", "new")]);
}

#[tokio::test]
async fn where_a_redirect_leads_is_asked_for_without_the_validators_of_another() {
    let workspace = Workspace::new().await;
    workspace.site.put("/p/a", ChangingPage::tagged("a"));
    workspace.crawl("/sitemap.xml", CHANGED).await;
    workspace.site.put("/p/a", ChangingPage { location: Some("/moved".into()), ..ChangingPage::default() });
    workspace
        .site
        .put("/moved", ChangingPage { etag: Some("\"a\"".into()), ..ChangingPage::titled("moved") });
    let moved = workspace.crawl("/sitemap.xml", CHANGED).await;
    assert_eq!(moved.asked, [whole("/moved"), ("/p/a".to_owned(), 302, true)]);
    assert_eq!(moved.items, [item("/p/a", "moved", "changed")]);
    let again = workspace.crawl("/sitemap.xml", CHANGED).await;
    assert_eq!(again.asked, [whole("/moved"), ("/p/a".to_owned(), 302, false)]);
    assert_eq!(again.items, [item("/p/a", "moved", "unchanged")]);
}

#[tokio::test]
async fn a_recrawl_that_follows_links_visits_each_known_page_once_and_ends() {
    let workspace = Workspace::new().await;
    let linking = |title: &str, links: &[&str]| {
        let links: String = links.iter().map(|link| format!("<a href=\"{link}\">x</a>")).collect();
        let page = ChangingPage::tagged(title);
        ChangingPage { body: format!("{}{links}", page.body), ..page }
    };
    workspace.site.put("/", linking("start", &["/a", "/b"]));
    workspace.site.put("/a", linking("a", &["/", "/b", "/c"]));
    workspace.site.put("/b", linking("b", &["/gone", "/closed"]));
    workspace.site.put("/c", linking("c", &["/a"]));
    workspace.site.put("/closed", ChangingPage { status: Some(403), ..ChangingPage::default() });
    let follow = ["--follow", "--recrawl", "changed"];
    let first = workspace.crawl("/", &follow).await;
    assert_eq!((first.items.len(), &first.stats["failed"]), (4, &2.into()), "{}", first.printed);

    // The page that links to the formerly closed page does not change.
    workspace.site.put("/closed", linking("open", &[]));
    workspace.site.put("/c", linking("c2", &["/a", "/d"]));
    workspace.site.put("/d", linking("d", &[]));
    let again = workspace.crawl("/", &follow).await;
    // The start is requested once, unconditionally as a source is, so its item is marked unchanged.
    let start = item("/", "start", "unchanged");
    let expected =
        [start.clone(), item("/c", "c2", "changed"), item("/closed", "open", "new"), item("/d", "d", "new")];
    assert_eq!(again.items, expected);
    let asked = [whole("/"), unchanged("/a"), unchanged("/b"), changed("/c"), whole("/closed"), whole("/d")];
    assert_eq!(again.asked, asked);

    let again = workspace.crawl("/", &follow).await;
    assert_eq!(
        (again.items, &again.stats["skipped"], &again.stats["admitted"]),
        (vec![start], &5.into(), &6.into())
    );
}
