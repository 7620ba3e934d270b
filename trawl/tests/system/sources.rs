//! Sources named by people and pages written by strangers: `trawl crawl` against a site that records its requests.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::process::Command;

/// The content type and the content of each path.
type Files = HashMap<&'static str, (&'static str, String)>;
type Log = Arc<Mutex<Vec<String>>>;

/// A site of a few files. It ends with the test's runtime.
struct Site {
    origin: String,
    log: Log,
}

impl Site {
    async fn new<const N: usize>(files: [(&'static str, &'static str, String); N]) -> Self {
        let files: Files = files.into_iter().map(|(path, kind, text)| (path, (kind, text))).collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let log = Log::default();
        let router = Router::new().fallback(answer).with_state((Arc::new(files), Arc::clone(&log)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { origin, log }
    }

    /// Returns the requested paths in order.
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

async fn answer(State((files, log)): State<(Arc<Files>, Log)>, request: Request) -> Response {
    let target = request.uri().path_and_query().unwrap().to_string();
    log.lock().unwrap().push(target);
    match files.get(request.uri().path()) {
        Some((kind, text)) => ([("content-type", *kind)], text.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn crawl(folder: &Path, words: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
    command.current_dir(folder).env_clear().envs(env.iter().copied()).stdin(Stdio::null()).kill_on_drop(true);
    command.args(["crawl", "--allow-private", "--rate", "unlimited", "--json", "-q"]).args(words);
    command.output().await.unwrap()
}

fn crawl_stats(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const HTML: &str = "text/html";
const TEXT: &str = "text/plain";

#[tokio::test]
async fn a_page_given_as_source_is_asked_for_once_after_its_robots_txt() {
    let page = "<title>A page</title><p>without an html element";
    for kind in [HTML, TEXT, ""] {
        let site = Site::new([("/page", kind, page.to_owned())]).await;
        let folder = tempfile::tempdir().unwrap();
        let output = crawl(folder.path(), &[&format!("{}/page", site.origin)], &[]).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(crawl_stats(&output)["admitted"], 1);
        assert_eq!(site.log(), ["/robots.txt", "/page"], "sent as {kind:?}");
    }
}

#[tokio::test]
async fn a_page_given_as_source_is_not_asked_for_if_its_robots_txt_forbids_it() {
    let robots = || ("/robots.txt", TEXT, "User-agent: *\nDisallow: /private".to_owned());
    let site = Site::new([robots(), ("/private", HTML, "<p>x".to_owned())]).await;
    let folder = tempfile::tempdir().unwrap();
    let output = crawl(folder.path(), &[&format!("{}/private", site.origin)], &[]).await;
    assert_eq!(crawl_stats(&output)["skipped"], 1, "{}", stderr(&output));
    assert_eq!(site.log(), ["/robots.txt"]);
}

#[tokio::test]
async fn a_list_that_a_person_names_is_read_even_if_robots_txt_forbids_it() {
    let robots = ("/robots.txt", TEXT, "User-agent: *\nDisallow: /*.xml".to_owned());
    let urlset = |origin: &str| format!("<urlset><url><loc>{origin}/a</loc></url></urlset>");
    let folder = tempfile::tempdir().unwrap();
    let pages = Site::new([("/a", HTML, "<p>x".to_owned())]).await;
    let site = Site::new([robots, ("/sitemap.xml", HTML, urlset(&pages.origin))]).await;
    let output = crawl(folder.path(), &[&format!("{}/sitemap.xml", site.origin)], &[]).await;
    assert_eq!(crawl_stats(&output)["done"], 1, "{}", stderr(&output));
    assert_eq!(
        (site.log(), pages.log()),
        (vec!["/sitemap.xml".into()], vec!["/robots.txt".into(), "/a".into()])
    );
}

#[tokio::test]
async fn a_page_in_a_list_can_have_options_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), "<!doctype html><p>x").unwrap();
    let output = crawl(folder.path(), &["page.html"], &[]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("page.html: is a web page, not a list of pages"), "{}", stderr(&output));
}

#[tokio::test]
async fn whoever_bans_the_crawler_by_name_is_obeyed() {
    for (user_agent, robots_name, line) in [
        ("MJ12bot/1.0", "", "MJ12bot"),
        ("Mozilla/5.0 (compatible; shopbot2/1.0; +https://shop.example)", "", "shopbot2"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0", "shopbot", "shopbot"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0", "", "trawl"),
    ] {
        let robots = format!("User-agent: *\nAllow: /\n\nUser-agent: {line}\nDisallow: /\n");
        let site = Site::new([("/robots.txt", TEXT, robots), ("/page", HTML, "<p>x".to_owned())]).await;
        let folder = tempfile::tempdir().unwrap();
        let mut env = vec![("TRAWL__FETCH__USER_AGENT", user_agent)];
        env.extend((!robots_name.is_empty()).then_some(("TRAWL__FETCH__ROBOTS_NAME", robots_name)));
        let output = crawl(folder.path(), &[&format!("{}/page", site.origin)], &env).await;
        assert_eq!(crawl_stats(&output)["skipped"], 1, "{user_agent}: {}", stderr(&output));
        assert_eq!(site.log(), ["/robots.txt"], "{user_agent}");
    }
}

#[tokio::test]
async fn a_robots_txt_beyond_its_limit_is_obeyed_up_to_its_last_whole_line() {
    let start = "User-agent: *\nDisallow: /secret\n#";
    let rule = "\nDisallow: /private/\n";
    // The limit is just after the first slash.
    let filler = 500 * 1024 - start.len() - "\nDisallow: /".len();
    let robots = format!("{start}{}{rule}", "x".repeat(filler));
    let site = Site::new([("/robots.txt", TEXT, robots), ("/page", HTML, "<p>x".to_owned())]).await;
    let folder = tempfile::tempdir().unwrap();
    let list = format!("{0}/page\n{0}/secret\n", site.origin);
    std::fs::write(folder.path().join("list.txt"), list).unwrap();
    let stats = crawl_stats(&crawl(folder.path(), &["list.txt"], &[]).await);
    assert_eq!((&stats["done"], &stats["skipped"]), (&1.into(), &1.into()));
}

#[tokio::test]
async fn one_page_in_many_spellings_is_asked_for_once_as_it_was_written_first() {
    let links = ["/~a", "/%7Ea", "/%7ea", "/a%2Db", "/a-b", "/a%2fb", "/a%2Fb", "/a/b"];
    let links: String = links.iter().map(|link| format!("<a href='{link}'>x</a>")).collect();
    let site = Site::new([("/", HTML, links)]).await;
    let folder = tempfile::tempdir().unwrap();
    crawl(folder.path(), &[&format!("{}/", site.origin), "--follow"], &[]).await;
    let mut log = site.log();
    log.sort();
    assert_eq!(log, ["/", "/a%2Db", "/a%2fb", "/a/b", "/robots.txt", "/~a"]);
}

#[tokio::test]
async fn a_page_writes_no_log_however_badly_it_is_nested() {
    let page =
        format!("<title>x</title>{}", "<table><br>".repeat(100) + &"<table><br></table>".repeat(2_000));
    let site = Site::new([("/page", HTML, page)]).await;
    let folder = tempfile::tempdir().unwrap();
    let output =
        crawl(folder.path(), &[&format!("{}/page", site.origin)], &[("TRAWL__ITEMS__FIELDS__X", "h1")]).await;
    assert_eq!(crawl_stats(&output)["done"], 1, "{}", stderr(&output));
    assert!(stderr(&output).lines().count() < 5, "{}", stderr(&output));
}
