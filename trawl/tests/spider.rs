//! `trawl spider`, and crawls by the file of a spider, as a person uses them: one process, no server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;
use trawl_testkit::many_hosts::{ManyHosts, Plan};
use trawl_testkit::site::Site;

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_trawl"));
        // Only what a test sets: no settings of the machine it runs on.
        command.args(words).current_dir(self.path()).env_clear().env("TOKEN", "s3cret").stdin(Stdio::null());
        command.kill_on_drop(true).output().await.unwrap()
    }

    fn items(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path().join("items.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
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
async fn check_reports_every_mistake_with_its_place_and_its_line() {
    let workspace = Workspace::new();
    workspace
        .write("shop.toml", "max_page = 1\n[fields]\ntitle = 'h1['\nprice = { css = 'b', type = 'numbr' }\n");
    let output = workspace.run(&["spider", "check", "shop.toml"]).await;
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    let printed = printed(&output);
    for expected in [
        "shop.toml:1:1: there is no key `max_page`: did you mean `max_pages`?\n1 | max_page = 1\n  | ^\n",
        "shop.toml:3:9: ",
        "3 | title = 'h1['\n  |         ^\n",
        "shop.toml:4:29: fields.price.type: there is no `numbr`: did you mean `number`?\n",
    ] {
        assert!(printed.contains(expected), "{expected}\nis not in\n{printed}");
    }
}

#[tokio::test]
async fn check_reports_as_much_to_programs() {
    let workspace = Workspace::new();
    workspace.write("bad.toml", "[follow]\ndeep = 1\n");
    workspace.write("good.toml", "");
    let output = workspace.run(&["spider", "check", "--json", "bad.toml", "good.toml", "none.toml"]).await;
    assert_eq!(output.status.code(), Some(2));
    let lines: Vec<Value> = shown(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["mistakes"][0]["line"], &lines[0]["mistakes"][0]["column"]),
        (&2.into(), &1.into())
    );
    assert_eq!((&lines[1]["spider"], &lines[1]["mistakes"]), (&"good".into(), &serde_json::json!([])));
    assert!(lines[2]["error"].as_str().unwrap().starts_with("none.toml: "), "{}", lines[2]);
}

#[tokio::test]
async fn a_variable_that_is_not_set_is_a_warning_for_check_and_stops_a_crawl() {
    let workspace = Workspace::new();
    let text = "[start]\nurls = ['http://127.0.0.1:1/']\n[request]\nheaders = { A = { env = 'TOKEN' }, B = { env = 'NONE' } }";
    workspace.write("shop.toml", text);
    let checked = workspace.run(&["spider", "check", "shop.toml"]).await;
    let warning = "shop.toml:4:48: warning: the environment variable NONE is not set";
    assert_eq!(checked.status.code(), Some(0));
    assert!(
        printed(&checked).contains(warning) && shown(&checked).contains("no mistakes"),
        "{}",
        printed(&checked)
    );
    let crawled = workspace.run(&[&CRAWL[..], &["--spider=shop.toml"]].concat()).await;
    assert_eq!(crawled.status.code(), Some(2));
    assert!(
        printed(&crawled).contains("NONE is not set") && !printed(&crawled).contains("s3cret"),
        "{}",
        printed(&crawled)
    );
}

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
async fn check_tells_the_arguments_and_warns_of_those_that_must_be_given() {
    let workspace = Workspace::new();
    let text = "allowed_domains = ['{arg.shop}.example', '{arg.other}']\n[arguments]\nshop = { help = 'a name' }\nother = 'b.example'\n";
    workspace.write("shop.toml", text);
    let checked = workspace.run(&["spider", "check", "shop.toml"]).await;
    assert_eq!(checked.status.code(), Some(0), "{}", printed(&checked));
    assert!(
        printed(&checked).contains("shop.toml:3:1: warning: arguments.shop: has no default"),
        "{}",
        printed(&checked)
    );
    let given = workspace.run(&["spider", "check", "shop.toml", "-a", "shop=hats"]).await;
    assert_eq!(printed(&given), "");
    for expected in
        ["given    other = b.example", "given    shop (a name) = hats", "URLs of hats.example, b.example"]
    {
        assert!(shown(&given).contains(expected), "{expected}\n{}", shown(&given));
    }
}

#[tokio::test]
async fn check_names_the_rules_of_robots_txt_that_are_obeyed_and_warns_without_a_name() {
    let workspace = Workspace::new();
    let browser = "user_agent = 'Mozilla/5.0 (X11; rv:125.0) Gecko/20100101 Firefox/125.0'";
    for (text, name, is_warned) in [
        (String::new(), "`trawl`", false),
        ("[request]\nuser_agent = 'Mozilla/5.0 (compatible; shopbot/1.0)'".to_owned(), "`shopbot`", false),
        (format!("[request]\n{browser}\nrobots_name = 'MJ12bot'"), "`MJ12bot`", false),
        (format!("[request]\n{browser}"), "`trawl`", true),
        (format!("[politeness]\nrobots = false\n[request]\n{browser}"), "no robots.txt", false),
    ] {
        workspace.write("shop.toml", &text);
        let checked = workspace.run(&["spider", "check", "shop.toml"]).await;
        assert_eq!(checked.status.code(), Some(0), "{}", printed(&checked));
        assert!(shown(&checked).contains(name), "{text}: {}", shown(&checked));
        assert_eq!(
            printed(&checked).contains("set `request.robots_name`"),
            is_warned,
            "{text}: {}",
            printed(&checked)
        );
    }
    workspace.write("shop.toml", "[request]\nrobots_name = 'my bot/1.0'");
    let checked = workspace.run(&["spider", "check", "shop.toml"]).await;
    let mistake = "shop.toml:2:15: request.robots_name: `my bot/1.0` is no name for robots.txt";
    assert!(printed(&checked).contains(mistake), "{}", printed(&checked));
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
async fn try_shows_what_one_page_gives() {
    let site = Site::serve(3).await;
    let workspace = Workspace::new();
    workspace.write("shop.toml", "[fields]\nheading = 'title::text'\nnothing = 'h6::text'\n");
    let page = site.page(1);
    let output = workspace.run(&["spider", "try", "--allow-private", "shop.toml", &page]).await;
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let text = shown(&output);
    assert!(text.starts_with(&format!("200 {page}\n")), "{text}");
    assert!(text.contains("heading        Page 1\n") && text.contains("nothing        -\n"), "{text}");
    let output = workspace.run(&["spider", "try", "--json", "--allow-private", "shop.toml", &page]).await;
    let json: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!((&json["status"], &json["items"][0]["fields"]["heading"]), (&200.into(), &"Page 1".into()));
    let refused = workspace.run(&["spider", "try", "shop.toml", &page]).await;
    assert!(refused.status.code() == Some(1) && printed(&refused).contains("is not a public address"));
}

#[tokio::test]
async fn try_follows_a_redirect_where_a_worker_does_and_nowhere_else() {
    let world = ManyHosts::serve(&[Plan::default(), Plan { pages: 1, ..Plan::default() }]).await.unwrap();
    let workspace = Workspace::new();
    let (from, to) = (world.url(0, "/to/0"), world.url(1, "/page/0"));
    let mut ended = Vec::new();
    let rules = ["", "allowed_domains = ['127.0.0.0']", "[ban]\nredirect = ['/page/']"];
    for rules in rules {
        workspace.write("mine.toml", &format!("{rules}\n[fields]\nheading = 'title::text'\n"));
        let output = workspace.run(&["spider", "try", "--allow-private", "mine.toml", &from]).await;
        ended.push((output.status.code(), printed(&output)));
    }
    assert_eq!(ended[0].0, Some(0), "{}", ended[0].1);
    let elsewhere = format!("redirected to {to}, which is not within the spider's domains");
    assert!(ended[1].0 == Some(1) && ended[1].1.contains(&elsewhere), "{}", ended[1].1);
    assert!(ended[2].0 == Some(1) && ended[2].1.contains("banned"), "{}", ended[2].1);
    assert_eq!(world.log().iter().filter(|arrival| arrival.host == 1).count(), 1);
}

#[tokio::test]
async fn try_reads_a_page_that_was_saved_as_if_it_came_from_its_url() {
    let workspace = Workspace::new();
    workspace
        .write("spiders/shop.toml", "[follow]\n[fields]\nlink = { css = 'a::attr(href)', type = 'url' }\n");
    workspace.write("page.html", "<meta charset=utf-8><a href=x>\u{e4}</a>");
    let words = ["spider", "try", "shop", "page.html", "--url", "https://a.example/dir/", "--json"];
    let output = workspace.run(&words).await;
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let json: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!(json["items"][0]["fields"]["link"], "https://a.example/dir/x");
    assert_eq!(json["links"][0]["url"], "https://a.example/dir/x");
    workspace.write("api.toml", "[fields]\nname = { json = '/name' }\n");
    workspace.write("page.json", "{\"name\": \"x\"}");
    let output = workspace.run(&["spider", "try", "api.toml", "page.json", "--json"]).await;
    let json: Value = serde_json::from_str(&shown(&output)).unwrap();
    assert_eq!(json["items"][0]["fields"]["name"], "x", "{}", printed(&output));
    let none = workspace.run(&["spider", "try", "shop", "none.html"]).await;
    assert!(none.status.code() == Some(2) && printed(&none).contains("none.html: "), "{}", printed(&none));
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
async fn check_finds_dates_that_cannot_be_and_names_that_stand_for_nothing() {
    let workspace = Workspace::new();
    let text = "[fields]\nday = { css = 'b', type = 'date', format = 'DD.MM.YYYY' }\n[[sinks]]\nkind = 'jsonl'\npath = '{date}.jsonl'\n";
    workspace.write("shop.toml", text);
    let output = workspace.run(&["spider", "check", "shop.toml"]).await;
    assert_eq!(output.status.code(), Some(2));
    let printed = printed(&output);
    assert!(printed.contains("shop.toml:2:44: ") && printed.contains("it has no `%`"), "{printed}");
    assert!(printed.contains("shop.toml:5:8: sinks.path: `{date}` stands for nothing"), "{printed}");
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

#[tokio::test]
async fn every_example_in_the_repository_has_no_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spiders");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 4, "{files:?}");
    let workspace = Workspace::new();
    for file in files {
        let output = workspace.run(&["spider", "check", file.to_str().unwrap()]).await;
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    }
}

#[tokio::test]
async fn mistakes_in_settings_are_shown_as_those_of_spiders_are() {
    let workspace = Workspace::new();
    workspace.write(
        "trawl.toml",
        "[fetch]\ntimout = '5s'\n[rabbitmq]\nurl = 'http://me:s3cret@mq/'\n[worker]\nprefetch = 'x'\n",
    );
    let output = workspace.run(&["config", "check"]).await;
    assert_eq!(output.status.code(), Some(2));
    let printed = printed(&output);
    for expected in [
        "trawl.toml:2:1: there is no key `fetch.timout`: did you mean `timeout`?\n2 | timout = '5s'\n  | ^\n",
        "trawl.toml:6:12: worker.prefetch: a whole number is wanted, not a text\n6 | prefetch = 'x'\n  |            ^\n",
        "settings: 2 mistakes",
    ] {
        assert!(printed.contains(expected), "{expected}\nis not in\n{printed}");
    }
    workspace.write("trawl.toml", "[rabbitmq]\nurl = 'http://me:s3cret@mq/'\n");
    let output = workspace.run(&["config", "check"]).await;
    let printed = self::printed(&output);
    assert!(
        printed.contains("trawl.toml:2:7: rabbitmq.url: write amqp://") && !printed.contains("s3cret"),
        "{printed}"
    );
    workspace.write("trawl.toml", "");
    let output = workspace.run(&["config", "check"]).await;
    assert_eq!(
        (output.status.code(), shown(&output), self::printed(&output)),
        (Some(0), String::new(), String::new())
    );
}
