//! Pages and links as their spider's settings direct: one process, no server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;

type Answer = dyn Fn(&str, usize) -> Response + Send + Sync;

/// A site whose responses a test gives, by path with query and the number of earlier requests for it.
struct Site {
    origin: String,
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Site {
    async fn serve(answer: impl Fn(&str, usize) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let state = (Arc::clone(&asked), Arc::new(answer) as Arc<Answer>);
        let handle = |State((asked, answer)): State<(Arc<Mutex<BTreeMap<_, _>>>, Arc<Answer>)>,
                      request: Request| async move {
            let path = request.uri().path_and_query().unwrap().as_str().to_owned();
            let before = {
                let mut asked = asked.lock().unwrap();
                let count: &mut usize = asked.entry(path.clone()).or_default();
                *count += 1;
                *count - 1
            };
            answer(&path, before)
        };
        let router = Router::new().fallback(handle).with_state(state);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, asked }
    }

    /// Returns the number of requests for each path except `robots.txt`.
    fn asked(&self) -> BTreeMap<String, usize> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.remove("/robots.txt");
        asked
    }
}

/// A folder that commands run in.
struct Workspace(TempDir);

/// A crawl that has ended.
struct Crawl {
    output: Output,
    stats: Value,
    items: Vec<Value>,
}

impl Workspace {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    async fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        command.args(words).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command.kill_on_drop(true).output().await.unwrap()
    }

    /// Crawls with a spider that starts at the site's `/`, and returns the items of this crawl alone.
    async fn crawl(&self, site: &Site, rest: &str) -> Crawl {
        let text = format!("start.urls = ['{}/']\n{rest}\n", site.origin);
        fs::write(self.path().join("shop.toml"), text).unwrap();
        // Retries follow at once.
        fs::write(
            self.path().join("trawl.toml"),
            "[retry]\nbackoff = '10ms'\n[politeness]\nbackoff = '10ms'\n",
        )
        .unwrap();
        let _ = fs::remove_file(self.path().join("items.jsonl"));
        let words = ["crawl", "--allow-private", "--rate=unlimited", "--json", "--spider=shop.toml"];
        let output = self.run(&words).await;
        let stats = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)));
        let text = fs::read_to_string(self.path().join("items.jsonl")).unwrap_or_default();
        Crawl { output, stats, items: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() }
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn page(html: impl Into<String>) -> Response {
    Html(html.into()).into_response()
}

const LISTS: usize = 30;

/// A shop with one product on each page of its list: `/`, `/list/1` and so on.
fn shop(path: &str, _: usize) -> Response {
    let number = match path {
        "/" => Some(0),
        path => path.strip_prefix("/list/").and_then(|number| number.parse().ok()),
    };
    page(match number {
        Some(number) if number + 1 < LISTS => {
            format!("<a href=/product/{number}>x</a> <a class=next href=/list/{}>next</a>", number + 1)
        }
        Some(number) => format!("<a href=/product/{number}>x</a>"),
        None => "<h1>A product</h1>".to_owned(),
    })
}

#[tokio::test]
async fn pages_that_ask_for_a_log_in_are_told_of_where_no_item_comes() {
    let site = Site::serve(|path, _| match path {
        "/" => page("<a href=/a>x</a> <a href=/b>x</a>"),
        _ => page("<form method=post><input name=user><input type='password' name=p></form>"),
    })
    .await;
    let rest = "[follow]\n[[items]]\neach = '.offer'\n[items.fields]\nname = 'b'\n";
    let crawl = Workspace::new().crawl(&site, rest).await;
    assert_eq!(crawl.stats["reasons"], json!({"done:without_items": 3, "done:login_form": 2}));
    let printed = printed(&crawl.output);
    assert!(printed.contains("2 of them have a field for a password, as a log-in page has"), "{printed}");
    // With a session, its own rules say which pages are a log-in.
    let crawl = Workspace::new().crawl(&site, &format!("{rest}[session]\n")).await;
    assert_eq!(crawl.stats["reasons"], json!({"done:without_items": 3}));
}

#[tokio::test]
async fn a_spider_has_its_own_retries() {
    let site = Site::serve(|path, _| match path {
        "/" => page("<a href=/busy>x</a> <a href=/shut>x</a>"),
        "/busy" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => StatusCode::FORBIDDEN.into_response(),
    })
    .await;
    let rest = "[follow]\n[retry]\nmax = 1\nstatuses = [403]";
    let crawl = Workspace::new().crawl(&site, rest).await;
    assert_eq!(crawl.stats["failed"], 2, "{}", crawl.stats);
    let asked = site.asked();
    assert_eq!((asked["/busy"], asked["/shut"]), (1, 2));
}

#[tokio::test]
async fn depth_does_not_end_a_list_of_pages_that_next_leads_through() {
    let site = Site::serve(shop).await;
    let rest = "[follow]\ninclude = ['/product/', '/list/']\nnext = ['a.next::attr(href)']\ndepth = 1";
    let crawl = Workspace::new().crawl(&site, rest).await;
    assert_eq!(crawl.stats["done"], 2 * LISTS, "{}", crawl.stats);
    assert_eq!((&crawl.stats["left_out"], &crawl.stats["reasons"]), (&json!(0), &json!({})));
    let deepest = crawl.items.iter().map(|item| item["depth"].as_u64().unwrap()).max();
    assert_eq!(deepest, Some(1), "a product is one link away from its page of the list");
}

#[tokio::test]
async fn links_left_out_are_counted_by_limit_and_reported_at_the_end() {
    let site = Site::serve(shop).await;
    let crawl = Workspace::new().crawl(&site, "[follow]\ndepth = 3").await;
    assert_eq!(crawl.stats["done"], 7, "four pages of the list and three products: {}", crawl.stats);
    assert_eq!((&crawl.stats["left_out"], &crawl.stats["reasons"]["left_out:depth"]), (&json!(2), &json!(2)));
    let printed = printed(&crawl.output);
    assert!(printed.contains("links left out: 2 by depth"), "{printed}");
    let crawl = Workspace::new().crawl(&site, "[follow]\nmax_per_host = 5").await;
    assert_eq!(crawl.stats["reasons"]["left_out:max_per_host"], crawl.stats["left_out"], "{}", crawl.stats);
    assert_ne!(crawl.stats["left_out"], 0);
}

#[tokio::test]
async fn urls_that_a_spiders_rules_make_equal_are_fetched_once() {
    let links = ["/p?ref=1&b=2&a=1", "/p?a=1&b=2", "/p?b=2&a=1&utm_source=x", "/p?ref=2&a=1&b=2&sess3=4"];
    let list = links.map(|link| format!("<a href='{link}'>x</a>")).concat();
    let site =
        Site::serve(move |path, _| page(if path == "/" { list.clone() } else { "<h1>p</h1>".to_owned() }))
            .await;
    let rest = "[urls]\nstrip_params = ['ref', 'sess*']\nsort_query = true\n[follow]\n[fields]\nlinks = { page = 'links' }";
    let crawl = Workspace::new().crawl(&site, rest).await;
    assert_eq!(crawl.stats["done"], 2, "{}", crawl.stats);
    assert_eq!(site.asked().keys().collect::<Vec<_>>(), ["/", "/p?a=1&b=2"]);
    let list = crawl.items.iter().find(|item| item["fields"]["links"] != json!([])).unwrap();
    assert_eq!(list["fields"]["links"], json!([format!("{}/p?a=1&b=2", site.origin)]));
    let keeps = Workspace::new().crawl(&site, "[urls]\nstrip_tracking = false\n[follow]").await;
    assert_eq!(keeps.stats["done"], 5, "{}", keeps.stats);
}

/// A server that insists on its parameter gets it, without a redirect loop.
#[tokio::test]
async fn a_redirect_that_adds_a_dropped_parameter_leads_to_the_page_itself() {
    let site = Site::serve(|path, _| match path {
        "/?sid=7" => page("<h1>at last</h1>"),
        _ => Redirect::to("/?sid=7").into_response(),
    })
    .await;
    let rest = "[urls]\nstrip_params = ['sid']\n[fields]\nheading = 'h1::text'";
    let crawl = Workspace::new().crawl(&site, rest).await;
    assert_eq!((&crawl.stats["done"], crawl.items.len()), (&json!(1), 1), "{}", crawl.stats);
    assert_eq!(crawl.items[0]["fields"]["heading"], "at last");
}

/// The spider of a page with a price that is `required` as given.
fn priced(required: &str) -> String {
    format!("[fields]\nprice = {{ css = 'b::text', required = {required} }}")
}

#[tokio::test]
async fn a_page_without_a_required_field_is_tried_again_and_not_from_the_cache() {
    let answer = |_: &str, before| page(if before < 2 { "<p>later</p>" } else { "<b>7</b>" });
    let site = Site::serve(answer).await;
    let crawl = Workspace::new().crawl(&site, &priced("'retry'")).await;
    assert_eq!((&crawl.stats["done"], &crawl.stats["failed"]), (&json!(1), &json!(0)), "{}", crawl.stats);
    assert_eq!((site.asked()["/"], crawl.items.len()), (3, 1));
    assert_eq!(crawl.items[0]["fields"]["price"], "7");
}

#[tokio::test]
async fn a_page_without_a_required_field_fails_or_is_logged_as_its_spider_configures() {
    let site = Site::serve(|_, _| page("<p>sold out</p>")).await;
    for (required, asked, done, reason) in [
        ("'fail'", 1, 0, "failed:missing"),
        ("'retry'", 4, 0, "failed:missing"),
        ("'warn'", 1, 1, "missing:price"),
        ("true", 1, 1, "missing:price"),
    ] {
        let before = site.asked().get("/").copied().unwrap_or_default();
        let crawl = Workspace::new().crawl(&site, &priced(required)).await;
        assert_eq!((site.asked()["/"] - before, crawl.items.len()), (asked, done), "{required}");
        assert_eq!(crawl.stats["reasons"][reason], 1, "{required}: {}", crawl.stats);
        let told = String::from_utf8_lossy(&crawl.output.stderr).into_owned();
        assert_eq!(told.contains("lack required fields: `price` on 1 page"), done == 1, "{required}: {told}");
    }
}

#[tokio::test]
async fn a_ban_is_no_page_and_its_url_is_asked_for_again() {
    for (ban, answer) in [
        ("text = ['(?i)captcha']", page("<p>Captcha!</p>")),
        ("redirect = ['/login']", Redirect::to("/login?next=/").into_response()),
        ("status = [403]", StatusCode::FORBIDDEN.into_response()),
    ] {
        for then in ["back-off", "retry"] {
            let status = answer.status();
            let head = answer.headers().clone();
            let site = Site::serve(move |path, before| match (path, before) {
                ("/", 0 | 1) => {
                    let body = if status.is_success() { "<p>Captcha!</p>" } else { "" };
                    (status, head.clone(), body).into_response()
                }
                _ => page("<h1>a page</h1>"),
            })
            .await;
            let rest = format!("[ban]\n{ban}\nthen = '{then}'\n[fields]\nheading = 'h1::text'");
            let crawl = Workspace::new().crawl(&site, &rest).await;
            assert_eq!(
                (&crawl.stats["done"], &crawl.stats["failed"]),
                (&json!(1), &json!(0)),
                "{ban}: {}",
                crawl.stats
            );
            assert_eq!(site.asked(), [("/".to_owned(), 3)].into(), "{ban}, {then}");
            assert_eq!(crawl.items[0]["fields"]["heading"], "a page");
        }
    }
}

#[tokio::test]
async fn an_item_has_the_url_that_redirects_led_to() {
    let site = Site::serve(|path, _| match path {
        "/" => Redirect::to("/new?utm_source=x").into_response(),
        _ => page("<a href=/other>x</a>"),
    })
    .await;
    let crawl = Workspace::new().crawl(&site, "[follow]").await;
    let final_url = |path: &str| {
        let url = format!("{}{path}", site.origin);
        crawl.items.iter().find(|item| item["url"] == url.as_str()).unwrap()["final_url"].clone()
    };
    assert_eq!(final_url("/"), format!("{}/new?utm_source=x", site.origin));
    assert_eq!(final_url("/other"), Value::Null);
}

#[tokio::test]
async fn a_known_page_that_is_gone_yields_one_item_that_marks_it_as_gone() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_gone);
    let site = Site::serve(move |path, _| match path {
        "/old" if asked.load(Ordering::Relaxed) => StatusCode::GONE.into_response(),
        "/" => page("<a href=/old>x</a><a href=/never>x</a>"),
        "/old" => page("<h1>old</h1>"),
        _ => StatusCode::NOT_FOUND.into_response(),
    })
    .await;
    let rest = "recrawl = 'always'\n[follow]\n[fields]\nheading = 'h1::text'";
    let workspace = Workspace::new();
    let first = workspace.crawl(&site, rest).await;
    assert_eq!((&first.stats["done"], &first.stats["failed"]), (&json!(2), &json!(1)), "{}", first.stats);
    let id = first.items.iter().find(|item| item["fields"]["heading"] == "old").unwrap()["id"].clone();
    is_gone.store(true, Ordering::Relaxed);
    let second = workspace.crawl(&site, rest).await;
    assert_eq!((&second.stats["done"], &second.stats["failed"]), (&json!(2), &json!(1)), "{}", second.stats);
    let gone: Vec<&Value> = second.items.iter().filter(|item| item["change"] == "gone").collect();
    assert_eq!(gone.len(), 1, "{:?}", second.items);
    assert_eq!((&gone[0]["id"], &gone[0]["status"], &gone[0]["fields"]), (&id, &json!(410), &json!({})));
    let third = workspace.crawl(&site, rest).await;
    assert_eq!(
        (&third.stats["failed"], third.items.iter().any(|item| item["change"] == "gone")),
        (&json!(2), false)
    );
}

#[tokio::test]
async fn a_page_that_is_gone_yields_such_an_item_for_each_item_that_it_had() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_gone);
    let site = Site::serve(move |path, _| match path {
        "/" => page("<a href=/list>x</a>"),
        "/list" if !asked.load(Ordering::Relaxed) => page("<p>a</p><p>b</p><p>c</p>"),
        _ => StatusCode::NOT_FOUND.into_response(),
    })
    .await;
    let rest = "recrawl = 'always'\n[follow]\n[[items]]\nname = 'offer'\neach = 'p'\n\
                [items.fields]\ntext = '::text'\n[[items]]\nname = 'page'\n[items.fields]\ntext = 'none::text'";
    let workspace = Workspace::new();
    let ids = |crawl: &Crawl| -> BTreeSet<String> {
        let list = format!("{}/list", site.origin);
        let items = crawl.items.iter().filter(|item| item["url"] == list.as_str());
        items.map(|item| format!("{} {}", item["item"], item["id"])).collect()
    };
    let first = ids(&workspace.crawl(&site, rest).await);
    assert_eq!(first.len(), 4, "three offers and a page");
    is_gone.store(true, Ordering::Relaxed);
    let second = workspace.crawl(&site, rest).await;
    assert_eq!(ids(&second), first);
    assert_eq!(second.items.iter().filter(|item| item["change"] == "gone").count(), 4);
}

/// A page that was fetched in one of its forms is not fetched under its canonical URL as well.
#[tokio::test]
async fn forms_of_one_page_yield_one_item_under_its_canonical_url() {
    const PRODUCTS: usize = 10;
    let site = Site::serve(|path, _| {
        let links = |form: &str| {
            (0..PRODUCTS).map(|number| format!("<a href='/p/{number}?{form}'>x</a>")).collect::<String>()
        };
        page(match path.split_once('?') {
            None if path == "/" => links("a") + &links("b"),
            Some((path, _)) => format!("<link rel=canonical href='{path}'><h1>{path}</h1>"),
            None => format!("<h1>{path}</h1>"),
        })
    })
    .await;
    let crawl =
        Workspace::new().crawl(&site, "[follow]\ncanonical = true\n[fields]\nheading = 'h1::text'").await;
    assert_eq!(
        site.asked().len(),
        1 + 2 * PRODUCTS,
        "each form once, and no canonical page: {:?}",
        site.asked()
    );
    let products: BTreeMap<&str, &Value> = crawl
        .items
        .iter()
        .filter(|item| item["fields"]["heading"] != Value::Null)
        .map(|item| (item["url"].as_str().unwrap(), &item["final_url"]))
        .collect();
    assert_eq!(products.len(), PRODUCTS, "{:?}", crawl.items);
    // The start page has no heading.
    let without = crawl.stats["reasons"]["done:without_items"].as_u64().unwrap_or_default();
    assert!(without <= 1, "the other form of a product has its items: {}", crawl.stats);
    let first = products[format!("{}/p/0", site.origin).as_str()].as_str().unwrap();
    assert!(first.starts_with(&format!("{}/p/0?", site.origin)), "{first}");
}

/// Runs `trawl crawl` of a spider that starts from these sitemaps.
async fn crawl_lists(sitemaps: &[String]) -> (Output, Vec<Value>) {
    let workspace = Workspace::new();
    fs::write(workspace.path().join("shop.toml"), format!("[start]\nsitemaps = {sitemaps:?}\n")).unwrap();
    fs::write(workspace.path().join("trawl.toml"), "[retry]\nbackoff = '20ms'\n").unwrap();
    let words = ["crawl", "--allow-private", "--rate=unlimited", "--spider=shop.toml", "--json"];
    let output = workspace.run(&words).await;
    let items = fs::read_to_string(workspace.path().join("items.jsonl")).unwrap_or_default();
    (output, items.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[tokio::test]
async fn a_source_that_fails_for_now_is_asked_for_again_as_often_as_a_page() {
    let site = Site::serve(|path, before| match (path, before) {
        ("/feed.xml" | "/list", 0..2) | ("/broken.xml", _) => {
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        ("/feed.xml" | "/list", _) => "<urlset></urlset>".into_response(),
        ("/gone.xml", _) => StatusCode::NOT_FOUND.into_response(),
        _ => page("<h1>x</h1>"),
    })
    .await;
    let [feed, list, gone, broken] =
        ["/feed.xml", "/list", "/gone.xml", "/broken.xml"].map(|path| format!("{}{path}", site.origin));
    let (output, _) = crawl_lists(&[list]).await;
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let (output, _) = crawl_lists(&[feed, gone, broken]).await;
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let asked = site.asked();
    let times = ["/feed.xml", "/list", "/gone.xml", "/broken.xml"].map(|path| asked[path]);
    assert_eq!(times, [3, 3, 1, 4], "{asked:?}");
}

#[tokio::test]
async fn a_page_among_the_sitemaps_of_a_spider_is_an_error() {
    let site = Site::serve(|_, _| page("<h1>x</h1>")).await;
    let (output, items) = crawl_lists(&[format!("{}/shop", site.origin)]).await;
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("/shop: is a web page, not a list of pages: crawl it by its URL"), "{told}");
    assert_eq!((output.status.code(), items.len()), (Some(1), 0), "{told}");
}
