//! `trawl spider`, and crawls with a spider's file, as a person runs them: one process, no server.

mod attempts;
mod check;
mod reextract;

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use trawl_testkit::site::Site;

use crate::support::items_in;

struct Workspace(TempDir);

impl Workspace {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn run(&self, words: &[&str]) -> Output {
        self.run_with(words, "").await
    }

    /// Runs trawl with these lines as its standard input.
    async fn run_with(&self, words: &[&str], lines: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        // Only the variables that a test sets: no settings of the machine it runs on.
        command.args(words).current_dir(self.path()).env_clear().env("TOKEN", "s3cret");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        // It may end before it has read them.
        let _ = input.write_all(lines.as_bytes()).await;
        drop(input);
        process.wait_with_output().await.unwrap()
    }

    fn items(&self) -> Vec<Value> {
        items_in(self.path())
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const CRAWL: [&str; 4] = ["crawl", "--allow-private", "--rate=unlimited", "--json"];

#[tokio::test]
async fn a_crawl_takes_the_values_of_its_arguments_and_goes_on_by_the_same_alone() {
    let (workspace, site) = (Workspace::new(), Site::serve(3).await);
    let text = format!(
        "[start]\nurls = ['{}{{arg.page}}']\n[arguments]\npage = {{ help = 'its number' }}\n",
        site.page(0).strip_suffix('0').unwrap()
    );
    workspace.write("shop.toml", &text);
    let crawl = async |state: &str, arguments: &[&str]| {
        let words = [&CRAWL[..], &["--spider=shop.toml", state], arguments].concat();
        workspace.run(&words).await
    };
    let without = crawl("--state=a.db", &[]).await;
    assert_eq!(without.status.code(), Some(2));
    let missing = "shop.toml:4:1: arguments.page: has no default and is not given: -a page=VALUE";
    assert!(printed(&without).contains(missing), "{}", printed(&without));
    let unknown = crawl("--state=a.db", &["-a", "pgae=1"]).await;
    assert!(
        printed(&unknown).contains("there is no argument `pgae`: did you mean `page`?"),
        "{}",
        printed(&unknown)
    );
    let twice = crawl("--state=a.db", &["-a", "page=1", "-a", "page=1"]).await;
    assert!(printed(&twice).contains("the argument `page` is given twice"), "{}", printed(&twice));
    let crawled = crawl("--state=a.db", &["-a", "page=2"]).await;
    assert_eq!(crawled.status.code(), Some(0), "{}", printed(&crawled));
    let urls: Vec<_> =
        workspace.items().iter().map(|item| item["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(urls, [site.page(2)]);
}

#[tokio::test]
async fn new_writes_an_example_without_mistakes_and_overwrites_nothing() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run(&["spider", "new", "shop"]).await.status.code(), Some(0));
    let checked = workspace.run(&["spider", "check", "spiders/shop.toml"]).await;
    assert_eq!(checked.status.code(), Some(0), "{}", printed(&checked));
    assert!(shown(&checked).contains("title (required)"), "{}", shown(&checked));
    workspace.write("spiders/shop.toml", "max_pages = 1");
    let again = workspace.run(&["spider", "new", "shop"]).await;
    assert!(
        again.status.code() == Some(2) && printed(&again).contains("is there already"),
        "{}",
        printed(&again)
    );
    assert_eq!(fs::read_to_string(workspace.path().join("spiders/shop.toml")).unwrap(), "max_pages = 1");
    let listed = shown(&workspace.run(&["spider", "list"]).await);
    assert!(listed.starts_with("shop ") && listed.lines().count() == 1, "{listed}");
}

#[tokio::test]
async fn commands_take_a_spider_by_its_name_or_by_its_file_alike() {
    let workspace = Workspace::new();
    workspace.write("spiders/shop.toml", "[fields]\nheading = 'h1'\n");
    workspace.write("page.html", "<h1>x</h1>");
    for spider in ["shop", "spiders/shop.toml"] {
        for words in [&["spider", "check", spider][..], &["spider", "try", spider, "page.html"]] {
            let output = workspace.run(words).await;
            assert_eq!(output.status.code(), Some(0), "{words:?}: {}", printed(&output));
        }
    }
    for words in [&["spider", "check", "shpo"][..], &["spider", "try", "shpo", "page.html"]] {
        let output = workspace.run(words).await;
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(printed(&output).contains("spiders/shpo.toml"), "{words:?}: {}", printed(&output));
    }
}

#[tokio::test]
async fn a_spider_without_a_file_is_an_error_unless_that_is_meant() {
    let site = Site::serve(2).await;
    let workspace = Workspace::new();
    workspace.write("spiders/shop.toml", "");
    let page = site.page(0);
    for words in [
        vec!["producer", &page, "--dry-run", "--spider=shpo"],
        [&CRAWL[..], &["--spider=shpo", &page]].concat(),
    ] {
        let output = workspace.run(&words).await;
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", printed(&output));
        assert!(printed(&output).contains("spiders/shpo.toml: did you mean `shop`?"), "{}", printed(&output));
    }
    let output = workspace.run(&[&CRAWL[..], &["--spider=shpo", "--no-file", &page]].concat()).await;
    let stats: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!((&stats["spider"], &stats["done"]), (&"shpo".into(), &1.into()), "{}", printed(&output));
    let output = workspace.run(&[&CRAWL[..], &["--spider=shop", "--no-file", &page]].concat()).await;
    assert!(
        output.status.code() == Some(2) && printed(&output).contains("--no-file: there is a"),
        "{}",
        printed(&output)
    );
}

#[tokio::test]
async fn items_go_to_standard_output_and_all_else_to_standard_error() {
    let site = Site::serve(3).await;
    let workspace = Workspace::new();
    let sitemap = format!("{}/sitemap.xml", site.origin);
    let words = ["crawl", "--allow-private", "--rate=unlimited", "--out", "-", &sitemap];
    let output = workspace.run(&words).await;
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let titles: HashSet<String> = shown(&output)
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["fields"]["title"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(titles, ["Page 0", "Page 1", "Page 2"].map(str::to_owned).into());
    assert!(
        printed(&output).contains("3 pages in") && printed(&output).contains("-> standard output"),
        "{}",
        printed(&output)
    );
    assert!(!workspace.path().join("-").exists());
    let both = workspace.run(&[&CRAWL[..], &["--out=-", &sitemap]].concat()).await;
    assert!(
        both.status.code() == Some(2) && printed(&both).contains("--json and --out -"),
        "{}",
        printed(&both)
    );
}

#[tokio::test]
async fn a_crawl_starts_extracts_and_stays_in_scope_as_its_spider_configures() {
    let site = Site::serve(5).await;
    let workspace = Workspace::new();
    workspace.write("list.txt", &format!("{}\n{}\nhttp://elsewhere.example/\n", site.page(1), site.page(2)));
    let file = format!(
        "allowed_domains = ['127.0.0.1']\n[start]\nurls = ['{}']\nsitemaps = ['list.txt']\n\
         [politeness]\nrate = '1/h'\n[fields]\nheading = 'title::text'\n",
        site.page(0)
    );
    workspace.write("spiders/shop.toml", &file);
    let output = workspace.run(&[&CRAWL[..], &["--spider=shop"]].concat()).await;
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let stats: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!((&stats["spider"], &stats["done"]), (&"shop".into(), &3.into()));
    assert!(printed(&output).contains("1 outside allowed_domains"), "{}", printed(&output));
    let headings: HashSet<_> =
        workspace.items().iter().map(|item| item["fields"]["heading"].as_str().unwrap().to_owned()).collect();
    assert_eq!(headings, ["Page 0", "Page 1", "Page 2"].map(str::to_owned).into());
}

#[tokio::test]
async fn a_state_file_goes_on_for_its_own_spider_alone() {
    let site = Site::serve(2).await;
    let workspace = Workspace::new();
    workspace.write("one.toml", &format!("[start]\nurls = ['{}', '{}']\n", site.page(0), site.page(1)));
    workspace.write("two.toml", &format!("[start]\nurls = ['{}']\n", site.page(0)));
    site.hold_after(1);
    let crawl = |spider: &'static str| [&CRAWL[..], &[spider]].concat();
    let words = crawl("--spider=one.toml");
    tokio::select! {
        output = workspace.run(&words) => panic!("{}", printed(&output)),
        () = site.asked_for(2) => {}
    }
    site.answer_all();
    let other = workspace.run(&crawl("--spider=two.toml")).await;
    assert_eq!(other.status.code(), Some(2), "{}", printed(&other));
    assert!(printed(&other).contains("an unfinished crawl of the spider one"), "{}", printed(&other));
    let same = workspace.run(&words).await;
    let stats: Value = serde_json::from_str(&shown(&same)).unwrap();
    assert_eq!((&stats["spider"], &stats["done"]), (&"one".into(), &2.into()), "{}", printed(&same));
}

#[tokio::test]
async fn without_a_source_and_without_a_start_there_is_nothing_to_do() {
    let workspace = Workspace::new();
    let output = workspace.run(&[&CRAWL[..], &["--spider=shop", "--no-file"]].concat()).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).contains("give the spider `shop` a [start]"), "{}", printed(&output));
}

#[tokio::test]
async fn a_dry_run_shows_the_routes_of_the_spider_before_those_of_the_settings() {
    let workspace = Workspace::new();
    let text = "allowed_domains = ['a.example']\n[start]\nurls = ['http://a.example/sale/1', 'http://a.example/news']\n\
                [[route]]\nwhen = { url = ['/sale/'] }\nlane = 'priority'\nttl = '7m'\n";
    workspace.write("spiders/shop.toml", text);
    let output = workspace.run(&["producer", "--dry-run", "--spider", "shop"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let lines = shown(&output);
    assert!(lines.contains("priority  7m      http://a.example/sale/1"), "{lines}");
    assert!(lines.contains("priority  -       http://a.example/news"), "{lines}");
}
