//! Files that pages link to, kept by one process without a server.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::items_in;

/// Longer than any step of a test.
const LIMIT: Duration = Duration::from_secs(60);

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0";

/// Size of `/large`, and of the part of it that comes at once until the site is told to send the rest.
const LARGE: usize = 4 << 20;
const FIRST: usize = 3 << 20;

struct Site {
    origin: String,
    shared: Arc<Shared>,
}

struct Shared {
    /// The header `Range` of each request, by path.
    asked: Mutex<Vec<(String, String)>>,
    /// Whether the rest of large files is sent.
    is_open: watch::Sender<bool>,
}

impl Site {
    async fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { asked: Mutex::default(), is_open: watch::Sender::new(false) });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, shared }
    }

    /// Returns the ranges that were asked for of a path, in order.
    fn ranges(&self, path: &str) -> Vec<String> {
        let asked = self.shared.asked.lock().unwrap();
        asked.iter().filter(|(asked, _)| asked == path).map(|(_, range)| range.clone()).collect()
    }
}

fn large() -> Bytes {
    (0..LARGE).map(|at| (at % 253) as u8).collect()
}

async fn answer(State(shared): State<Arc<Shared>>, headers: HeaderMap, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let range = headers.get("range").map_or("", |range| range.to_str().unwrap()).to_owned();
    shared.asked.lock().unwrap().push((path.clone(), range.clone()));
    match &*path {
        "/" => Html(
            "<a href=/p/1>x</a><a href=/p/2>x</a><a class=doc href=/doc>x</a><a class=doc href=/page.html>x</a>",
        )
        .into_response(),
        "/p/1" => Html("<h1>Red hat</h1><img src=/a.png><img src='/b.php?/../../etc'><img src=/moved>").into_response(),
        "/p/2" => Html("<h1>../Blue</h1><img src=/a.png><img src=/gone><img src=/c.jpg>").into_response(),
        "/a.png" | "/b.php" => ([("content-type", "image/jpeg")], PNG).into_response(),
        "/moved" => Redirect::to("/a.png").into_response(),
        "/c.jpg" => ([("content-type", "image/jpeg")], "<!doctype html><p>no picture").into_response(),
        "/doc" => ([("content-type", "application/pdf")], "%PDF-1.4\n").into_response(),
        "/page.html" => Html("<p>text").into_response(),
        "/big" => vec![0; 2000].into_response(),
        "/endless" => {
            Body::from_stream(stream::repeat_with(|| Ok::<_, Infallible>(vec![0; 64 * 1024]))).into_response()
        }
        "/short" => {
            let end = stream::once(async {
                // Else the head would not be sent.
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(std::io::Error::other("away"))
            });
            let half = stream::iter([Ok(large().slice(..1000))]).chain(end);
            ([("content-length", LARGE.to_string())], Body::from_stream(half)).into_response()
        }
        "/large" => {
            let from: usize = range
                .strip_prefix("bytes=")
                .and_then(|range| range.strip_suffix('-'))
                .map_or(0, |from| from.parse().unwrap());
            let fields = [("etag", "\"v1\"".to_owned()), ("content-length", (LARGE - from).to_string())];
            let mut open = shared.is_open.subscribe();
            let first = large().slice(from..FIRST.max(from));
            let rest = async move {
                let _ = open.wait_for(|open| *open).await;
                Ok::<_, Infallible>(large().slice(FIRST.max(from)..))
            };
            let body = stream::iter([Ok(first)]).chain(stream::once(rest));
            let body = (fields, Body::from_stream(body));
            match from {
                0 => body.into_response(),
                _ => {
                    let range = format!("bytes {from}-{}/{LARGE}", LARGE - 1);
                    (StatusCode::PARTIAL_CONTENT, [("content-range", range)], body).into_response()
                }
            }
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A folder that commands run in.
struct Workspace(TempDir);

impl Workspace {
    /// A folder with a spider that begins at this path of a site.
    fn new(site: &Site, start: &str, rest: &str) -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        let text = format!("start.urls = ['{}{start}']\n{rest}\n", site.origin);
        fs::write(workspace.path().join("shop.toml"), text).unwrap();
        let settings = "[retry]\nbackoff = '10ms'\n[politeness]\nbackoff = '10ms'\n";
        fs::write(workspace.path().join("trawl.toml"), settings).unwrap();
        workspace
    }

    /// A folder with a list of the file at this path of a site, and a spider with this rule for it.
    fn of_file(site: &Site, path: &str, rule: &str) -> Self {
        let workspace = Self::new(site, "/", rule);
        let request =
            json!({"url": format!("{}{path}", site.origin), "data": {"$trawl": {"download": "file"}}});
        fs::write(workspace.path().join("list.jsonl"), format!("{request}\n")).unwrap();
        workspace
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        command.args(words).current_dir(self.path()).env_clear().stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Crawls what the list names, or else what the spider does.
    fn crawl(&self) -> Command {
        let words = ["crawl", "--allow-private", "--rate=unlimited", "--json", "--spider=shop.toml"];
        let has_list = self.path().join("list.jsonl").exists();
        self.command(&[&words[..], if has_list { &["list.jsonl"] } else { &[] }].concat())
    }

    /// Crawls to the end, and returns the stats.
    async fn stats(&self) -> Value {
        let output = timeout(LIMIT, self.crawl().output()).await.unwrap().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)))
    }

    /// Returns the items of this kind.
    fn items(&self, kind: &str) -> Vec<Value> {
        items_in(self.path()).into_iter().filter(|item| item["item"] == kind).collect()
    }

    /// Returns the files below `files`, by path, with their sizes.
    fn files(&self) -> BTreeMap<String, u64> {
        let root = self.path().join("files");
        let (mut found, mut folders) = (BTreeMap::new(), vec![root.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                    found.insert(name, entry.metadata().unwrap().len());
                }
            }
        }
        found
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names(files: &BTreeMap<String, u64>) -> Vec<&str> {
    files.keys().map(String::as_str).collect()
}

const PICTURES: &str = "
[follow]
include = ['/p/']
[fields]
title = 'h1::text'
[[download]]
name = 'picture'
link = 'img::attr(src)'
carry = { title = 'h1::text' }
types = 'image/*'
to = 'files'
";

#[tokio::test]
async fn files_are_kept_once_by_their_content_and_each_link_has_its_item() {
    let site = Site::serve().await;
    let workspace = Workspace::new(&site, "/", PICTURES);
    let stats = workspace.stats().await;
    assert_eq!((&stats["status"], &stats["failed"]), (&json!("finished"), &json!(1)), "{stats}");
    assert_eq!(stats["reasons"]["skipped:content-type"], 1, "{stats}");
    let items = workspace.items("picture");
    let sha256 = items[0]["fields"]["sha256"].as_str().unwrap();
    let name = format!("{sha256}.png");
    assert_eq!(names(&workspace.files()), [name.as_str()]);
    let mut found = BTreeMap::new();
    for item in &items {
        let mut fields = item["fields"].as_object().unwrap().clone();
        let title = fields.remove("title").unwrap();
        let expected = json!({"file": format!("files/{name}"), "sha256": sha256, "size": PNG.len(), "type": "image/png", "width": 2, "height": 3});
        assert_eq!(Value::Object(fields), expected);
        assert_eq!((&item["path"], &item["status"]), (&json!(["picture"]), &json!(200)));
        let path = item["url"].as_str().unwrap().strip_prefix(&site.origin).unwrap().to_owned();
        found.insert(path, (title, item["referrer"].clone()));
    }
    // Of a file that two pages link to, the page that was read first counts.
    let page = |number: usize| format!("{}/p/{number}", site.origin);
    assert_eq!(found["/moved"], (json!("Red hat"), json!(page(1))));
    assert_eq!(found["/b.php?/../../etc"], (json!("Red hat"), json!(page(1))));
    assert!(found.contains_key("/a.png") && found.len() == 3, "{found:?}");
    assert_eq!(site.ranges("/gone").len(), 1, "nobody tries a file again that is not there");
}

#[tokio::test]
async fn a_name_is_made_of_carried_values_and_leads_nowhere_else() {
    let site = Site::serve().await;
    let rest = PICTURES.replace("to = 'files'", "to = 'files'\npath = '{carried.title}/{stem}.{ext}'");
    let workspace = Workspace::new(&site, "/", &rest);
    workspace.stats().await;
    let files = workspace.files();
    let of = |title: &str| files.keys().filter(|path| path.starts_with(title)).count();
    assert!(files.contains_key("Red_hat/b.png") && files.contains_key("Red_hat/moved.png"), "{files:?}");
    assert_eq!(of("Red_hat/") + of("_Blue/"), files.len(), "{files:?}");
}

#[tokio::test]
async fn a_rule_takes_its_kinds_of_pages_and_its_types_alone() {
    let site = Site::serve().await;
    let rest = "
[[page]]
name = 'list'
match.url = '/$'
[[page.follow]]
include = '/p/'
[[page]]
name = 'product'
fields = { title = 'h1::text' }
[[download]]
page = 'list'
link = 'a.doc::attr(href)'
types = ['application/pdf', 'application/zip']
to = 'files'
path = '{host}/{stem}.{ext}'
[[download]]
name = 'picture'
page = 'product'
link = 'img::attr(src)'
to = 'files'
max_size = '20 B'
";
    let workspace = Workspace::new(&site, "/", &rest.replace("include = '/p/'", "include = ['/p/']"));
    let stats = workspace.stats().await;
    assert_eq!(names(&workspace.files()), ["127.0.0.1/doc.pdf"]);
    let items = workspace.items("file");
    assert_eq!((items.len(), &items[0]["path"]), (1, &json!(["list", "file"])));
    assert_eq!(items[0]["fields"]["type"], "application/pdf");
    assert_eq!(stats["reasons"]["skipped:content-type"], 1, "{stats}");
    assert_eq!(stats["reasons"]["failed:size"], 4, "{stats}");
}

#[tokio::test]
async fn a_file_that_is_too_large_or_ends_early_leaves_one_clear_error_and_nothing_else() {
    let site = Site::serve().await;
    for (path, size, class) in
        [("/big", 1999, "size"), ("/endless", 1999, "size"), ("/short", 9_999_999, "body")]
    {
        let rule = format!("[[download]]\nmax_size = {size}\nto = 'files'\n");
        let workspace = Workspace::of_file(&site, path, &rule);
        let stats = workspace.stats().await;
        assert_eq!(stats["reasons"], json!({format!("failed:{class}"): 1}), "{stats}");
        assert!(workspace.files().is_empty(), "{:?}", workspace.files());
    }
}

#[tokio::test]
async fn a_trial_of_a_page_shows_what_would_be_downloaded() {
    let site = Site::serve().await;
    let workspace = Workspace::new(&site, "/", PICTURES);
    let page = format!("{}/p/1", site.origin);
    let words = ["spider", "try", "shop.toml", &page, "--links", "--allow-private"];
    let output = workspace.command(&words).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains(&format!("keep   {}/a.png carrying {{\"title\":\"Red hat\"}}", site.origin)),
        "{text}"
    );
    assert_eq!(site.ranges("/a.png").len(), 0);
}

#[tokio::test]
async fn a_download_goes_on_where_a_killed_process_left_it() {
    let site = Site::serve().await;
    let rule = "[[download]]\nto = 'files'\npath = '{stem}.{ext}'\n";
    let workspace = Workspace::of_file(&site, "/large", rule);
    let mut first = workspace.crawl().stdout(Stdio::null()).spawn().unwrap();
    let staging = workspace.path().join("files/.staging");
    let written = || {
        let files = fs::read_dir(&staging).into_iter().flatten().map(Result::unwrap);
        files.filter_map(|file| Some(file.metadata().ok()?.len())).max().unwrap_or_default()
    };
    // The last part may not be written yet.
    timeout(LIMIT, async {
        while written() < (FIRST - (1 << 20)) as u64 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    first.kill().await.unwrap();
    let left = written();
    site.shared.is_open.send_replace(true);
    let stats = workspace.stats().await;
    assert_eq!((&stats["done"], &stats["failed"]), (&json!(1), &json!(0)), "{stats}");
    assert_eq!(site.ranges("/large"), ["".to_owned(), format!("bytes={left}-")]);
    assert!(fs::read(workspace.path().join("files/large.bin")).unwrap() == large());
    assert_eq!(workspace.files(), BTreeMap::from([("large.bin".to_owned(), LARGE as u64)]));
    assert_eq!(workspace.items("file")[0]["fields"]["size"], LARGE);
}

#[tokio::test]
async fn the_check_of_a_spider_shows_its_files_and_every_mistake() {
    let site = Site::serve().await;
    let workspace = Workspace::new(&site, "/", PICTURES);
    let output = workspace.command(&["spider", "check", "shop.toml"]).output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = "picture: `img::attr(src)`, carries title, image/*, 50.0 MB at most, as files/{sha256}.{ext}";
    assert!(text.contains(line), "{text}");
    let wrong =
        "[[download]]\nto = 'files/{x}'\npath = '../{stem}'\npage = 'list'\ntypes = 'image'\n[[download]]\n";
    let workspace = Workspace::new(&site, "/", wrong);
    let output = workspace.command(&["spider", "check", "shop.toml"]).output().await.unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), printed(&output));
    for mistake in [
        "`{x}` stands for nothing",
        "download.path: names a file below `to`",
        "download.page: there is no [[page]] with the name `list`",
        "download.types: write a media type",
        "has the name `file`: give each a `name` of its own",
        "download: `to` is missing",
    ] {
        assert!(text.contains(mistake), "{mistake}: {text}");
    }
    let workspace = Workspace::new(&site, "/", "[[download]]\nto = 'files'\nlink = 'a['\n");
    let output = workspace.command(&["spider", "check", "shop.toml"]).output().await.unwrap();
    assert!(printed(&output).contains("download.file.link: "), "{}", printed(&output));
}
