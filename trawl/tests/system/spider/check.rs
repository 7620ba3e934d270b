//! `trawl spider check`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{CRAWL, Workspace, printed, shown};

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
async fn a_schedule_whose_tasks_only_its_first_crawl_would_do_is_a_warning() {
    let workspace = Workspace::new();
    let rest = "schedule = '0 3 * * *'\n[start]\ntasks = ['x']\n[handler]\nrun = ['python3', 'run.py']\nmode = 'once'\n";
    workspace.write("run.py", "");
    workspace.write("once.toml", rest);
    workspace.write("each.toml", &format!("dedup = 'crawl'\n{rest}"));
    workspace.write("meant.toml", &format!("dedup = 'spider'\n{rest}"));
    let output = workspace.run(&["spider", "check", "--json", "once.toml", "each.toml", "meant.toml"]).await;
    let lines: Vec<Value> = shown(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let warned = lines[0]["warnings"].as_array().unwrap();
    let tasks =
        |warning: &&Value| warning.as_str().unwrap().contains("its first crawl alone does the `tasks`");
    assert_eq!(warned.iter().filter(tasks).count(), 1, "{}", lines[0]);
    for meant in &lines[1..] {
        assert_eq!(meant["warnings"], serde_json::json!([]));
    }
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
async fn check_lists_the_arguments_and_warns_of_those_that_must_be_given() {
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
async fn a_spider_with_a_folder_of_its_own_is_named_by_that_too() {
    let workspace = Workspace::new();
    workspace.write("mine/shop/spider.toml", "max_pages = 7");
    let output = workspace.run(&["spider", "check", "mine/shop"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    assert!(shown(&output).contains("mine/shop/spider.toml: no mistakes"), "{}", shown(&output));
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

#[tokio::test]
async fn check_counts_the_requests_and_tasks_that_a_spider_starts_from_and_names_those_that_are_none() {
    let workspace = Workspace::new();
    let start = "[start]\nrequests = [{ url = 'https://a.example/', method = 'POST', body = 'q=1' }]\n\
                 tasks = ['one', { recipe = 'two', priority = 2 }]\n";
    workspace.write("a.toml", &format!("{start}[handler]\nrun = ['/bin/sh']\n"));
    let checked = workspace.run(&["spider", "check", "a.toml"]).await;
    assert!(shown(&checked).contains("from 1 request, 2 tasks"), "{}", shown(&checked));
    workspace.write("a.toml", start);
    let lacking = workspace.run(&["spider", "check", "a.toml"]).await;
    assert!(printed(&lacking).contains("its `tasks` need a program"), "{}", printed(&lacking));
    workspace.write(
        "a.toml",
        "allowed_domains = ['a.example']\n[start]\nrequests = [{ url = 'https://b.example/' }, { uri = 'x' }]\n\
         tasks = [{ recip = 'x' }, { recipe = 'x', spider = 'y' }]\n[handler]\nrun = ['/bin/sh']\n",
    );
    let wrong = workspace.run(&["spider", "check", "a.toml"]).await;
    for part in [
        "b.example is not among `allowed_domains`",
        "a request has no `uri`",
        "a task has no `recip`",
        "leave out its `spider`",
    ] {
        assert!(printed(&wrong).contains(part), "{part}: {}", printed(&wrong));
    }
}
