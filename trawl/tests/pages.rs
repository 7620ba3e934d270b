//! What becomes of pages and links by what their spider says: one process, no server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;

type Answer = dyn Fn(&str, usize) -> Response + Send + Sync;

/// A site that answers as a test says: by path and query, and how often that was asked for before.
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

    /// How often each path was asked for, but for `robots.txt`.
    fn asked(&self) -> BTreeMap<String, usize> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.remove("/robots.txt");
        asked
    }
}

/// A folder in which commands run.
struct Desk(TempDir);

/// A crawl that has ended.
struct Crawl {
    output: Output,
    books: Value,
    items: Vec<Value>,
}

impl Desk {
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

    /// Crawls by a spider that starts at the site's `/`, with the items of this crawl alone.
    async fn crawl(&self, site: &Site, rest: &str) -> Crawl {
        let text = format!("[start]\nurls = ['{}/']\n{rest}\n", site.origin);
        fs::write(self.path().join("shop.toml"), text).unwrap();
        // Retries come at once.
        fs::write(
            self.path().join("trawl.toml"),
            "[retry]\nbackoff = '10ms'\n[politeness]\nbackoff = '10ms'\n",
        )
        .unwrap();
        let _ = fs::remove_file(self.path().join("items.jsonl"));
        let words = ["crawl", "--allow-private", "--rate=unlimited", "--json", "--spider=shop.toml"];
        let output = self.run(&words).await;
        let books = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)));
        let text = fs::read_to_string(self.path().join("items.jsonl")).unwrap_or_default();
        Crawl { output, books, items: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() }
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn page(html: impl Into<String>) -> Response {
    Html(html.into()).into_response()
}

const LISTS: usize = 30;

/// A shop of one product on each of its list's pages: `/`, `/list/1` and on.
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
async fn depth_does_not_end_a_list_of_pages_that_next_leads_through() {
    let site = Site::serve(shop).await;
    let rest = "[follow]\ninclude = ['/product/', '/list/']\nnext = ['a.next::attr(href)']\ndepth = 1";
    let crawl = Desk::new().crawl(&site, rest).await;
    assert_eq!(crawl.books["done"], 2 * LISTS, "{}", crawl.books);
    assert_eq!((&crawl.books["left_out"], &crawl.books["reasons"]), (&json!(0), &json!({})));
    let deepest = crawl.items.iter().map(|item| item["depth"].as_u64().unwrap()).max();
    assert_eq!(deepest, Some(1), "a product is one link away from its page of the list");
}

#[tokio::test]
async fn what_a_limit_leaves_out_is_counted_by_limit_and_said_at_the_end() {
    let site = Site::serve(shop).await;
    let crawl = Desk::new().crawl(&site, "[follow]\ndepth = 3").await;
    assert_eq!(crawl.books["done"], 7, "four pages of the list and three products: {}", crawl.books);
    assert_eq!((&crawl.books["left_out"], &crawl.books["reasons"]["left_out:depth"]), (&json!(2), &json!(2)));
    let told = told(&crawl.output);
    assert!(told.contains("links left out: 2 by depth"), "{told}");
    let crawl = Desk::new().crawl(&site, "[follow]\nmax_per_host = 5").await;
    assert_eq!(crawl.books["reasons"]["left_out:max_per_host"], crawl.books["left_out"], "{}", crawl.books);
    assert_ne!(crawl.books["left_out"], 0);
}

#[tokio::test]
async fn urls_that_are_one_by_what_the_spider_says_are_fetched_once() {
    let links = ["/p?ref=1&b=2&a=1", "/p?a=1&b=2", "/p?b=2&a=1&utm_source=x", "/p?ref=2&a=1&b=2&sess3=4"];
    let list = links.map(|link| format!("<a href='{link}'>x</a>")).concat();
    let site =
        Site::serve(move |path, _| page(if path == "/" { list.clone() } else { "<h1>p</h1>".to_owned() }))
            .await;
    let rest = "[urls]\nstrip_params = ['ref', 'sess*']\nsort_query = true\n[follow]\n[fields]\nlinks = { page = 'links' }";
    let crawl = Desk::new().crawl(&site, rest).await;
    assert_eq!(crawl.books["done"], 2, "{}", crawl.books);
    assert_eq!(site.asked().keys().collect::<Vec<_>>(), ["/", "/p?a=1&b=2"]);
    let list = crawl.items.iter().find(|item| item["fields"]["links"] != json!([])).unwrap();
    assert_eq!(list["fields"]["links"], json!([format!("{}/p?a=1&b=2", site.origin)]));
    let keeps = Desk::new().crawl(&site, "[urls]\nstrip_tracking = false\n[follow]").await;
    assert_eq!(keeps.books["done"], 5, "{}", keeps.books);
}

/// A server that wants its parameter gets it, and no circle comes of it.
#[tokio::test]
async fn a_redirect_that_adds_a_dropped_parameter_leads_to_the_page_itself() {
    let site = Site::serve(|path, _| match path {
        "/?sid=7" => page("<h1>at last</h1>"),
        _ => Redirect::to("/?sid=7").into_response(),
    })
    .await;
    let rest = "[urls]\nstrip_params = ['sid']\n[fields]\nheading = 'h1::text'";
    let crawl = Desk::new().crawl(&site, rest).await;
    assert_eq!((&crawl.books["done"], crawl.items.len()), (&json!(1), 1), "{}", crawl.books);
    assert_eq!(crawl.items[0]["fields"]["heading"], "at last");
}
