//! Pages that Chromium renders, crawled as a person crawls them.

mod bounds;
mod manners;
mod steps;
mod support;

use std::time::Duration;

use serde_json::json;
use tokio::time::{sleep, timeout};
use trawl_testkit::script_site::ScriptSite;

use self::support::{LIMIT, SPIDER, Workspace, shop};

#[tokio::test]
async fn a_page_whose_items_scripts_make_is_extracted_and_its_links_are_followed() {
    let site = ScriptSite::serve().await;
    shop(&site, 3);
    let workspace = Workspace::new(&site);
    let stats = workspace.crawl(&[]).await;
    assert_eq!((&stats["done"], &stats["failed"]), (&json!(4), &json!(0)), "{stats}");
    let mut names: Vec<_> = workspace
        .items()
        .iter()
        .filter_map(|item| item["fields"]["name"].as_str().map(str::to_owned))
        .collect();
    names.sort();
    assert_eq!(names, ["Hat 0 \u{e4}", "Hat 1 \u{e4}", "Hat 2 \u{e4}"]);
}

#[tokio::test]
async fn without_a_browser_the_same_pages_give_nothing() {
    let site = ScriptSite::serve().await;
    shop(&site, 3);
    let workspace = Workspace::new(&site);
    let stats = workspace.crawl(&["--render", "never"]).await;
    assert_eq!((&stats["done"], site.paths()), (&json!(1), vec!["/".to_owned()]), "{stats}");
}

#[tokio::test]
async fn only_pages_that_need_it_are_rendered_where_the_spider_leaves_that_open() {
    let site = ScriptSite::serve().await;
    shop(&site, 1);
    let text = "Some text. ".repeat(50);
    let script = "<script>fetch('/asked'); document.body.innerHTML += '<h1>Made</h1>'</script>";
    site.page("/", "<a href=/hat/0></a><a href=/whole></a><a href=/lacks></a>");
    site.page("/whole", format!("<h1>Whole</h1><p>{text}</p>{}", script.replace("asked", "whole-asked")));
    site.page("/lacks", format!("<body><p>{text}</p>{script}"));
    let workspace = Workspace::new(&site);
    let fields = "name = { css = 'h1::text', required = 'warn' }";
    workspace.write("shop.toml", &format!("render = 'auto'\n[follow]\n[fields]\n{fields}\n"));
    let stats = workspace.crawl(&[]).await;
    assert_eq!(stats["done"], 4, "{stats}");
    let mut names: Vec<_> =
        workspace.items().iter().map(|item| item["fields"]["name"].as_str().map(str::to_owned)).collect();
    names.sort();
    let made = ["Hat 0 \u{e4}", "Made", "Whole"].map(|name| Some(name.to_owned()));
    assert_eq!(names, [&[None], &made[..]].concat());
    let asked = |path: &str| site.paths().iter().any(|asked| asked == path);
    assert_eq!(["/asked", "/whole-asked", "/app.js"].map(asked), [true, false, true]);
}

/// A spider of which only some kinds of pages are rendered.
const KINDS: &str = "
[follow]
[[page]]
name = 'plain'
match.url = '/plain$'
render = 'never'
fields = { name = 'h1::text' }
[[page]]
name = 'hat'
match.url = '/hat/'
render = 'always'
fields = { name = 'h1::text' }
[[page]]
name = 'marked'
match.selector = 'main.made'
render = 'always'
fields = { name = 'h1::text' }
[[page]]
name = 'other'
fields = { name = 'h1::text' }
";

/// Serves pages of each kind, and a spider for them.
fn kinds(site: &ScriptSite) -> Workspace<'_> {
    shop(site, 1);
    let script = "<script>document.body.innerHTML += '<h1>Made</h1>'</script>";
    site.page("/", "<a href=/plain></a><a href=/hat/0></a><a href=/marked></a><a href=/other></a>");
    site.page("/plain", script);
    site.page("/marked", format!("<main class=made>{script}</main>"));
    site.page("/other", script);
    let workspace = Workspace::new(site);
    workspace.write("shop.toml", KINDS);
    workspace
}

#[tokio::test]
async fn each_kind_of_page_is_rendered_as_it_says_and_the_rest_as_the_spider_says() {
    let site = ScriptSite::serve().await;
    let workspace = kinds(&site);
    let stats = workspace.crawl(&[]).await;
    assert_eq!(stats["done"], 5, "{stats}");
    let made = |item: &serde_json::Value| {
        let name = item["fields"]["name"].as_str();
        name.map(|name| format!("{} {name}", item["item"].as_str().unwrap()))
    };
    let mut named: Vec<_> = workspace.items().iter().filter_map(made).collect();
    named.sort();
    assert_eq!(named, ["hat Hat 0 \u{e4}", "marked Made"]);
}

#[tokio::test]
async fn a_trial_says_which_rule_decided_whether_the_page_is_rendered() {
    let site = ScriptSite::serve().await;
    let workspace = kinds(&site);
    for (path, flags, rendering, shown) in [
        ("/plain", &[][..], json!([false, "never", "plain"]), "by `render = \"never\"` of the page `plain`"),
        ("/hat/0", &[], json!([true, "always", "hat"]), "by `render = \"always\"` of the page `hat`"),
        ("/marked", &[], json!([true, "always", "marked"]), "of the page `marked`"),
        ("/other", &[], json!([false, "never", null]), "by `render = \"never\"` of the spider"),
        ("/plain", &["--render"], json!([true, "always", null]), "by `render = \"always\"` of the spider"),
    ] {
        let page = format!("{}{path}", site.origin);
        let words = [&["spider", "try", "shop.toml", &page][..], flags].concat();
        let said = workspace.command(&words).await.stdout;
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(shown), "{path} {said}");
        let tried = workspace.command(&[&words[..], &["--json"]].concat()).await.stdout;
        let tried: serde_json::Value = serde_json::from_slice(&tried).unwrap();
        let how = &tried["rendering"];
        assert_eq!(json!([how["rendered"], how["render"], how["page"]]), rendering, "{path}");
    }
}

#[tokio::test]
async fn the_document_is_asked_for_once_and_by_the_crawlers_name_as_is_all_that_the_page_needs() {
    let site = ScriptSite::serve().await;
    shop(&site, 0);
    let workspace = Workspace::new(&site);
    workspace.crawl(&[]).await;
    let log = site.log();
    let mut asked: Vec<(&str, &str)> =
        log.iter().map(|arrival| (&*arrival.path, arrival.purpose())).collect();
    asked.sort_unstable();
    assert_eq!(asked, [("/", ""), ("/api/list", "empty"), ("/app.js", "script"), ("/style.css", "style")]);
    let agents = log.iter().map(|arrival| arrival.fields["user-agent"].to_str().unwrap());
    assert!(agents.clone().all(|agent| agent.starts_with("trawl/")), "{:?}", agents.collect::<Vec<_>>());
    assert!(log.iter().all(|arrival| !arrival.fields.contains_key("sec-ch-ua")));
}

#[tokio::test]
async fn pages_over_https_are_rendered_as_well() {
    let site = ScriptSite::serve_https().await;
    shop(&site, 2);
    let workspace = Workspace::new(&site);
    let stats = workspace.crawl(&[]).await;
    assert_eq!((&stats["done"], &stats["failed"]), (&json!(3), &json!(0)), "{stats}");
    let documents = site.log().into_iter().filter(|arrival| arrival.purpose().is_empty()).count();
    assert_eq!((documents, site.log().len()), (3, 12));
}

#[tokio::test]
async fn where_scripts_lead_is_where_the_page_is_and_counts_as_a_redirect() {
    let site = ScriptSite::serve().await;
    site.page("/", "<script>location = '/there'</script>");
    site.page("/there", "<h1>There</h1>");
    let workspace = Workspace::new(&site);
    workspace.crawl(&[]).await;
    let items = workspace.items();
    assert_eq!(
        (&items[0]["fields"]["name"], &items[0]["final_url"]),
        (&json!("There"), &json!(format!("{}/there", site.origin))),
        "{items:?}"
    );
    site.page("/", "<h1>Here</h1><script>location = 'http://elsewhere.example/'</script>");
    let workspace = Workspace::new(&site);
    let spider = format!("allowed_domains = ['127.0.0.1']\n{SPIDER}");
    workspace.write("shop.toml", &spider);
    let stats = workspace.crawl(&[]).await;
    assert_eq!((&stats["skipped"], &stats["reasons"]["skipped:scope"]), (&json!(1), &json!(1)), "{stats}");
}

#[tokio::test]
async fn a_spider_is_tried_on_a_rendered_page() {
    let site = ScriptSite::serve().await;
    shop(&site, 1);
    let workspace = Workspace::new(&site);
    workspace.write("plain.toml", "[fields]\nname = 'h1::text'\n");
    let page = format!("{}/hat/0", site.origin);
    let tried = async |words: &[&str]| {
        let output =
            workspace.command(&[&["spider", "try", "plain.toml", &page, "--json"], words].concat()).await;
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["items"][0]["fields"]["name"]
            .clone()
    };
    assert_eq!(tried(&[]).await, json!(null));
    assert_eq!(tried(&["--render"]).await, json!("Hat 0 \u{e4}"));
}

#[tokio::test]
async fn without_chromium_nothing_is_asked_and_the_error_says_what_to_do() {
    let site = ScriptSite::serve().await;
    shop(&site, 0);
    let workspace = Workspace::new(&site);
    for (setting, value, said) in [
        ("TRAWL__BROWSER__PROGRAM", "/nonexistent/chromium", "/nonexistent/chromium is no program"),
        ("TRAWL__BROWSER__MAX", "0", "`browser.max` is 0"),
    ] {
        let output = workspace.crawl_with(&[], &[(setting, value)]).await;
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(said), "{error}");
    }
    assert!(site.log().is_empty());
}

#[tokio::test]
async fn operators_see_the_browsers_of_a_worker_and_what_they_use() {
    let site = ScriptSite::serve().await;
    site.page("/", "<script>for (;;) {}</script>");
    let workspace = Workspace::new(&site);
    let _crawl = workspace.start(&[], &[("TRAWL__FETCH__TIMEOUT", "60s")]);
    let seen = async {
        loop {
            let said = workspace.command(&["status", "--state", "crawl.db"]).await.stdout;
            let said = String::from_utf8(said).unwrap();
            let row = said.lines().skip_while(|line| !line.starts_with("browsers of")).nth(1);
            let row: Vec<&str> = row.into_iter().flat_map(str::split_whitespace).skip(1).collect();
            // Its memory is looked at every five seconds.
            if let [running, rendering, waiting, memory, "MB", ..] = row[..] {
                return ([running, rendering, waiting].join(" "), memory.parse::<f64>().unwrap());
            }
            sleep(Duration::from_millis(200)).await;
        }
    };
    let (numbers, memory) = timeout(LIMIT, seen).await.unwrap();
    assert_eq!(numbers, "1 1 0");
    assert!((40.0..1_000.0).contains(&memory), "{memory} MB");
}
