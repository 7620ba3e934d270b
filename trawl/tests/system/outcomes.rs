//! Outcomes of a fleet's crawls as commands tell them: dedup, empty and incomplete crawls, items, sinks that are away,
//! expectations.

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;
use trawl_testkit::changing_site::{ChangingPage, ChangingSite};
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well, run};

async fn status(fleet: &Fleet, crawl: &str) -> Value {
    serde_json::from_str(&run(fleet.command(&["status", crawl, "--json"]), 0).await.0).unwrap()
}

/// Returns how often the site was asked for its page of this number.
fn asked(site: &Site, number: usize) -> usize {
    let path = format!("/page/{number}");
    site.log().into_iter().filter(|(asked, _)| *asked == path).map(|(_, times)| times).sum()
}

#[tokio::test]
async fn each_crawl_that_is_asked_for_fetches_its_pages_and_one_by_spider_says_that_nothing_came_of_it() {
    let (fleet, site) = (Fleet::new().await, Site::serve(2).await);
    fs::write(fleet.folder.path().join("spiders/shop.toml"), "").unwrap();
    let page = site.page(0);
    let submit = async |more: &[&str]| {
        let words = [&["jobs", "submit", "shop", "--url", &page], more].concat();
        run(fleet.command(&words), 0).await.0
    };
    let worker = fleet.worker(&[]);
    for _ in 0..2 {
        let crawl = submit(&[]).await;
        run(fleet.command(&["wait", &crawl]), 0).await;
        assert_eq!(status(&fleet, &crawl).await["dedup"], "crawl");
    }
    assert_eq!(asked(&site, 0), 2);

    let seen = submit(&["--dedup", "spider"]).await;
    let (_, warned) = run(fleet.command(&["wait", &seen]), 0).await;
    let nothing_new =
        format!("nothing new in crawl {seen}: all that its sources name (1) was seen by spider shop before");
    assert!(warned.contains(&nothing_new) && !warned.contains("warning"), "{warned}");
    run(fleet.command(&["wait", &seen, "--fail-if-empty"]), 6).await;
    let (shown, _) = run(fleet.command(&["status"]), 0).await;
    assert!(shown.contains(" nothing new ") && !shown.contains("nothing came of"), "{shown}");
    let (_, error) = run(fleet.command(&["producer", &site.page(0), "--fail-if-empty"]), 2).await;
    assert!(error.contains("needs --wait"), "{error}");
    let stats = status(&fleet, &seen).await;
    assert_eq!((&stats["empty"], &stats["nothing_new"]), (&false.into(), &true.into()));
    assert_eq!((&stats["dedup"], &stats["reasons"]["dropped:seen"]), (&"spider".into(), &1.into()));
    // By default nobody has said that this is in order.
    fs::write(fleet.folder.path().join("list.txt"), &page).unwrap();
    let producer = ["producer", "list.txt", "--spider=shop", "--wait"];
    let (usual, warned) = run(fleet.command(&producer), 0).await;
    assert!(warned.contains("nothing came of crawl") && warned.contains("1 URL was seen before"), "{warned}");
    assert_eq!(status(&fleet, &usual).await["empty"], true);
    assert_eq!(asked(&site, 0), 2);
    ends_well(worker).await;
}

#[tokio::test]
async fn a_crawl_is_incomplete_whose_producer_was_killed_while_another_read_on() {
    let (fleet, site) = (Fleet::new().await, Site::serve(2).await);
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let feed = || {
        let mut command = fleet.command(&["producer", "-", &spider, &crawl, "-q"]);
        command.stdin(Stdio::piped()).spawn().unwrap()
    };
    let worker = fleet.worker(&[]);
    let (mut dying, mut living) = (feed(), feed());
    for (number, producer) in [&mut dying, &mut living].into_iter().enumerate() {
        let line = format!("{}\n", site.page(number));
        producer.stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
        timeout(LIMIT, site.asked_for(number + 1)).await.unwrap();
    }
    dying.kill().await.unwrap();
    let incomplete = async { while status(&fleet, &fleet.name).await["incomplete"] != true {} };
    timeout(LIMIT, incomplete).await.expect("its lease lapses while another reads");
    drop(living.stdin.take());
    assert!(timeout(LIMIT, living.wait()).await.unwrap().unwrap().success());
    let (_, warned) = run(fleet.command(&["wait", &fleet.name]), 1).await;
    assert!(warned.contains("is incomplete"), "{warned}");
    let (shown, _) = run(fleet.command(&["status", &fleet.name]), 0).await;
    assert!(shown.contains(" incomplete ") && shown.contains("note: crawl"), "{shown}");
    ends_well(worker).await;
}

#[tokio::test]
async fn items_are_counted_and_a_selector_that_matches_nothing_is_told() {
    const PAGES: usize = 24;
    let (fleet, site) = (Fleet::new().await, Site::serve(PAGES).await);
    for (spider, each) in [("whole", "body"), ("broken", ".no-such")] {
        let file = format!("[[items]]\nname = 'offer'\neach = '{each}'\n[items.fields]\nname = 'body'\n");
        fs::write(fleet.folder.path().join(format!("spiders/{spider}.toml")), file).unwrap();
    }
    let sitemap = format!("{}/sitemap.xml", site.origin);
    let worker = fleet.worker(&[]);
    let crawl = async |spider: &str| {
        let words = ["producer", &sitemap, &format!("--spider={spider}"), "--wait"];
        let (id, warned) = run(fleet.command(&words), 0).await;
        (status(&fleet, &id).await, warned)
    };
    let (stats, warned) = crawl("whole").await;
    assert_eq!((&stats["items"], &stats["item_kinds"]["offer"]), (&PAGES.into(), &PAGES.into()), "{stats}");
    assert!(!warned.contains("gives no item"), "{warned}");
    let (stats, warned) = crawl("broken").await;
    let without = &stats["reasons"]["done:without_items"];
    assert_eq!((&stats["items"], without), (&0.into(), &PAGES.into()), "{stats}");
    assert!(warned.contains("gives no item"), "{warned}");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_worker_is_well_again_once_the_crawl_is_cancelled_whose_sink_is_away() {
    let (fleet, site) = (Fleet::new().await, Site::serve(3).await);
    let file = fleet.folder.path().join("spiders/shop.toml");
    // Nothing listens there.
    fs::write(file, "[[sinks]]\nkind = 'postgres'\nurl = 'postgres://trawl@127.0.0.1:1/items'\n").unwrap();
    let sitemap = format!("{}/sitemap.xml", site.origin);
    let worker = fleet.worker(&[]);
    run(fleet.command(&["producer", &sitemap, "--spider=shop", "--crawl=doomed", "-q"]), 0).await;
    run(fleet.command(&["producer", &sitemap, "--spider=default", "--crawl=other", "-q"]), 0).await;
    let health_is = async |is_it: fn(&str) -> bool| {
        loop {
            let (shown, _) = run(fleet.command(&["workers", "--json"]), 0).await;
            let state: Value = serde_json::from_str(&shown).unwrap();
            if is_it(state["health"].as_str().unwrap()) {
                return;
            }
        }
    };
    timeout(LIMIT, health_is(|health| health.starts_with("spider shop: "))).await.expect("its sink is away");
    let waits = async |crawl: &str| status(&fleet, crawl).await["waits"].to_string();
    assert!(waits("doomed").await.contains("spider shop: "));
    assert!(!waits("other").await.contains("spider shop: "));
    run(fleet.command(&["cancel", "doomed"]), 0).await;
    timeout(LIMIT, health_is(|health| health == "ok")).await.expect("nobody wants its items any more");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_crawl_that_yields_less_than_its_spider_expects_says_so_and_its_job_has_a_problem() {
    let (fleet, site) = (Fleet::new().await, Site::serve(4).await);
    let file = format!(
        "[start]\nsitemaps = ['{}/sitemap.xml']\n[fields]\nname = {{ css = 'body' }}\nprice = {{ css = '.no-such' }}\n\
         [expect]\nitems = 4\nfields.name = 1\nfields.price = 0.5\n",
        site.origin
    );
    fs::write(fleet.folder.path().join("spiders/shop.toml"), &file).unwrap();
    let worker = fleet.worker(&[]);
    let missing = "[expect] fields.price: 0.0 % of items have it, and 50 % were expected";
    run(fleet.command(&["events", "--name=all", "-q"]), 0).await;
    let (crawl, warned) = run(fleet.command(&["producer", "--spider=shop", "--wait"]), 6).await;
    assert!(warned.contains(missing) && warned.matches("[expect]").count() == 1, "{warned}");
    for words in [&["status"][..], &["status", &crawl]] {
        let (shown, _) = run(fleet.command(words), 0).await;
        assert!(shown.contains(missing), "{words:?}: {shown}");
    }
    fs::remove_file(fleet.folder.path().join("spiders/shop.toml")).unwrap();
    run(fleet.command(&["wait", &crawl]), 6).await;
    fs::write(fleet.folder.path().join("spiders/shop.toml"), &file).unwrap();
    let told = events(&fleet, &crawl).await;
    assert!(told.contains("crawl.quality") && told.contains(missing), "{told}");
    let (job, _) = run(fleet.command(&["jobs", "submit", "shop"]), 0).await;
    let (_, problem) = run(fleet.command(&["wait", &job]), 1).await;
    assert!(problem.contains(&format!("problem: {missing}")), "{problem}");
    ends_well(worker).await;
}

#[tokio::test]
async fn whoever_waits_is_told_what_failed_and_what_was_no_url_and_the_commands_that_list_them() {
    const FAILING: usize = 24;
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let list: String = (1..=FAILING).map(|number| site.page(number) + "\n").collect();
    fs::write(fleet.folder.path().join("list.txt"), list + "/relative\n").unwrap();
    let worker = fleet.worker(&[]);
    let mut producer = fleet.producer("list.txt");
    producer.arg("-q");
    let crawl = &fleet.name;
    for told in [run(producer, 3).await, run(fleet.command(&["wait", crawl, "-q"]), 3).await] {
        for line in [
            &*format!("warning: all of crawl {crawl} fails: {FAILING} of {FAILING} URLs (http)"),
            &format!("{FAILING} failed: `trawl dlq list --crawl {crawl}`\n"),
            &format!("1 invalid: `trawl dlq list --crawl {crawl} --reason invalid`\n"),
        ] {
            assert!(told.1.contains(line), "{line}: {}", told.1);
        }
    }
    let spider = format!("--spider={crawl}");
    let (_, again) = run(fleet.command(&["producer", "list.txt", &spider, "-q"]), 0).await;
    let replay =
        format!("{FAILING} URLs failed before; `trawl dlq replay --spider {crawl}` sends what failed again");
    assert!(again.contains(&replay), "{again}");
    let (_, summary) = run(fleet.command(&["wait", crawl]), 3).await;
    assert!(summary.contains(&format!("crawl {crawl}: 0 pages in ")), "{summary}");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_crawl_that_yields_less_than_expected_ends_with_6_though_urls_of_it_failed() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let urls = [site.page(0), site.page(1)];
    let file = format!("[start]\nurls = {urls:?}\n[expect]\ndone = 2\n");
    fs::write(fleet.folder.path().join("spiders/shop.toml"), file).unwrap();
    let worker = fleet.worker(&[]);
    let unmet = "warning: [expect] done: 1, and 2 were expected";
    let (crawl, told) = run(fleet.command(&["producer", "--spider=shop", "--wait"]), 6).await;
    assert!(told.contains(unmet) && told.contains("1 failed: "), "{told}");
    let (_, told) = run(fleet.command(&["wait", &crawl]), 6).await;
    assert!(told.contains(unmet), "{told}");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_producer_that_waits_names_the_sink_that_is_away() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    // Nothing listens there.
    let file = "[[sinks]]\nkind = 'postgres'\nurl = 'postgres://trawl@127.0.0.1:1/items'\n";
    fs::write(fleet.folder.path().join(format!("spiders/{}.toml", fleet.name)), file).unwrap();
    let worker = fleet.worker(&[]);
    let mut waiting = fleet.producer(&site.page(0).replace("page/0", "sitemap.xml"));
    let mut waiting = waiting.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let named = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("0 of 1 URL ended; waits: the worker ") && line.contains("postgres") {
                return;
            }
        }
        panic!("the producer ended");
    };
    timeout(LIMIT, named).await.expect("the line of progress names it");
    waiting.kill().await.unwrap();
    run(fleet.command(&["cancel", &fleet.name]), 0).await;
    ends_well(worker).await;
}

#[tokio::test]
async fn the_source_that_could_not_be_read_is_named_where_the_crawl_is_looked_at_later() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let missing = format!("{}/missing.xml", site.origin);
    let crawl = format!("--crawl={}", fleet.name);
    run(fleet.command(&["producer", &missing, &crawl, "-q"]), 1).await;
    let (shown, _) = run(fleet.command(&["status", &fleet.name]), 0).await;
    let named = format!("note: source not read to its end: {missing}: cannot be fetched: http: 404");
    assert!(shown.contains(&named), "{shown}");
}

/// Waits for the events of a finished crawl that the reader `all` has not read.
async fn events(fleet: &Fleet, crawl: &str) -> String {
    let reading = async {
        let mut told = String::new();
        while !told.contains(&format!("\"{crawl}.finished\"")) {
            told += &run(fleet.command(&["events", "--name=all", "--json", "-q"]), 0).await.0;
        }
        told
    };
    timeout(LIMIT, reading).await.unwrap()
}

#[tokio::test]
async fn that_no_product_has_a_required_field_is_told_though_lists_need_none() {
    let (fleet, site) = (Fleet::new().await, ChangingSite::serve().await);
    let products = ["/p/1", "/p/2", "/p/3"];
    let list = products.map(|path| format!("<a class=row href='{path}'>x</a>")).concat();
    site.put("/", ChangingPage { body: format!("<html>{list}"), ..ChangingPage::default() });
    for path in products {
        site.put(path, ChangingPage { body: "<html><h1>x</h1>".to_owned(), ..ChangingPage::default() });
    }
    let file = format!(
        "[start]\nurls = ['{}/']\n[follow]\n\
         [[items]]\nname = 'row'\neach = '.row'\n[items.fields]\nname = {{ css = '::text', required = true }}\n\
         [[items]]\nname = 'product'\neach = 'h1'\n[items.fields]\nname = '::text'\nprice = {{ css = '.price::text', required = true }}\n",
        site.origin
    );
    fs::write(fleet.folder.path().join("spiders/shop.toml"), file).unwrap();
    run(fleet.command(&["events", "--name=all", "-q"]), 0).await;
    let worker = fleet.worker(&[]);
    let (crawl, warned) = run(fleet.command(&["producer", "--spider=shop", "--wait"]), 0).await;
    let missing = "missing are `product.price` on 3 pages";
    assert!(warned.contains(missing), "{warned}");
    let (shown, _) = run(fleet.command(&["status"]), 0).await;
    assert!(shown.contains(missing), "{shown}");
    let told = events(&fleet, &crawl).await;
    assert!(told.contains("crawl.quality") && told.contains(missing), "{told}");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_crawl_whose_only_page_or_task_fails_is_failing_and_gave_nothing() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    run(fleet.command(&["events", "--name=all", "-q"]), 0).await;
    let worker = fleet.worker(&[]);
    let gone = format!("{}/gone", site.origin);
    fs::write(fleet.folder.path().join("list.txt"), &gone).unwrap();
    let (crawl, warned) = run(fleet.command(&["producer", "list.txt", "--wait", "--fail-if-empty"]), 6).await;
    let fails = format!("all of crawl {crawl} fails: 1 of 1 URL (http)");
    assert!(warned.contains(&fails), "{warned}");
    let (shown, _) = run(fleet.command(&["status"]), 0).await;
    assert!(shown.contains(&fails), "{shown}");
    let told = events(&fleet, &crawl).await;
    assert!(told.contains("crawl.failing") && !told.contains("crawl.empty"), "{told}");
    // With what is well beside it, it is a new page that fails.
    let list = format!("{}\n{gone}/too", site.page(0));
    fs::write(fleet.folder.path().join("list.txt"), site.page(0)).unwrap();
    run(fleet.command(&["producer", "list.txt", "--wait", "-q"]), 0).await;
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let (_, warned) = run(fleet.command(&["producer", "list.txt", "--wait"]), 3).await;
    assert!(!warned.contains("fails:"), "{warned}");
    ends_well(worker).await;
}

#[tokio::test]
async fn jobs_and_events_say_what_is_amiss_as_the_status_does() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    let sitemaps = ["/sitemap.xml", "/no-such.xml"].map(|path| format!("{}{path}", site.origin));
    fs::write(fleet.folder.path().join("spiders/shop.toml"), format!("[start]\nsitemaps = {sitemaps:?}\n"))
        .unwrap();
    run(fleet.command(&["events", "--name=all", "-q"]), 0).await;
    let worker = fleet.worker(&[]);
    let (failing, _) =
        run(fleet.command(&["jobs", "submit", "shop", "--url", &format!("{}/gone", site.origin)]), 0).await;
    run(fleet.command(&["wait", &failing]), 3).await;
    let (listed, _) = run(fleet.command(&["jobs", "list"]), 0).await;
    assert!(listed.contains(&format!("all of crawl {failing} fails: 1 of 1 URL (http)")), "{listed}");
    let (incomplete, _) = run(fleet.command(&["jobs", "submit", "shop"]), 0).await;
    run(fleet.command(&["wait", &incomplete]), 1).await;
    let told = events(&fleet, &incomplete).await;
    let unread = format!("source not read to its end: {}", sitemaps[1]);
    let end = told.lines().find(|line| line.contains(&format!("\"{incomplete}.finished\""))).unwrap();
    assert!(end.contains(&unread) && end.contains("404"), "{end}");
    ends_well(worker).await;
}

#[tokio::test]
async fn tasks_that_are_submitted_again_are_nothing_new_and_a_task_that_fails_alone_is_told() {
    let fleet = Fleet::new().await;
    for (spider, program) in [("does", r#"echo {\"result\":0}"#), ("fails", "exit 1")] {
        let file = format!("[handler]\nrun = ['/bin/sh', '-c', '{program}']\n");
        fs::write(fleet.folder.path().join(format!("spiders/{spider}.toml")), file).unwrap();
    }
    fs::write(fleet.folder.path().join("tasks.jsonl"), "\"one\"\n\"two\"\n").unwrap();
    run(fleet.command(&["events", "--name=all", "-q"]), 0).await;
    let worker = fleet.worker(&[]);
    let submit = async |words: &[&str]| run(fleet.command(&[&["task", "submit"], words].concat()), 0).await.0;
    let first = submit(&["--spider=does", "tasks.jsonl"]).await;
    run(fleet.command(&["wait", &first]), 0).await;
    let again = submit(&["--spider=does", "tasks.jsonl"]).await;
    let (_, said) = run(fleet.command(&["wait", &again]), 0).await;
    assert!(said.contains(&format!("nothing new in crawl {again}")), "{said}");
    let stats = status(&fleet, &again).await;
    assert_eq!((&stats["empty"], &stats["reasons"]["dropped:seen"]), (&false.into(), &2.into()), "{stats}");
    let told = events(&fleet, &again).await;
    assert!(!told.contains("crawl.empty"), "{told}");
    let failing = submit(&["--spider=fails", "--recipe=x", "--retries=0"]).await;
    run(fleet.command(&["wait", &failing]), 3).await;
    let (shown, _) = run(fleet.command(&["status"]), 0).await;
    assert!(shown.contains(&format!("all of crawl {failing} fails: 1 of 1")), "{shown}");
    ends_well(worker).await;
}
