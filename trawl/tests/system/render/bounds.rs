//! No page holds up another, and a browser that dies costs nothing.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use trawl_testkit::script_site::ScriptSite;

use crate::render::support::{LIMIT, Workspace, shop, stats};

#[tokio::test]
async fn a_page_that_never_ends_fails_alone_and_a_dialog_is_closed() {
    let site = ScriptSite::serve().await;
    site.page("/", "<a href=/endless>1</a><a href=/busy>2</a><a href=/dialog>3</a><a href=/polls>4</a><a href=/crash>5</a>");
    site.page("/endless", "<h1>Endless</h1><script>for (;;) {}</script>");
    site.page(
        "/busy",
        "<h1>Busy</h1><script>addEventListener('load', () => setTimeout(() => { for (;;) {} }))</script>",
    );
    site.page(
        "/dialog",
        "<script>alert(1); confirm(2); prompt(3); document.write('<h1>Dialog</h1>')</script>",
    );
    site.page("/polls", "<h1>Polls</h1><script>setInterval(() => fetch('/none'), 100)</script>");
    let workspace = Workspace::new(&site);
    let settings = [("TRAWL__FETCH__TIMEOUT", "3s"), ("TRAWL__RETRY__MAX", "0")];
    let stats = stats(&workspace.crawl_with(&[], &settings).await);
    let mut names: Vec<_> = workspace.items().iter().map(|item| item["fields"]["name"].clone()).collect();
    names.retain(|name| !name.is_null());
    names.sort_by_key(ToString::to_string);
    assert_eq!((names, &stats["failed"]), (vec![json!("Dialog"), json!("Polls")], &json!(3)), "{stats}");
}

#[tokio::test]
async fn a_killed_browser_costs_neither_a_page_nor_a_retry() {
    let site = ScriptSite::serve().await;
    shop(&site, 12);
    let workspace = Workspace::new(&site);
    let crawl = workspace.start(&[], &[("TRAWL__RETRY__MAX", "0"), ("TRAWL__BROWSER__CONTEXTS", "2")]);
    let killing = async {
        for hats in [3, 6] {
            while site.paths().iter().filter(|path| path.starts_with("/api/hat/")).count() < hats {
                sleep(Duration::from_millis(20)).await;
            }
            let (browser, _) = *browsers(&workspace).first().unwrap();
            kill_process(browser, Signal::KILL).unwrap();
        }
    };
    let (output, ()) = tokio::join!(timeout(LIMIT, crawl.wait_with_output()), killing);
    let stats = stats(&output.unwrap().unwrap());
    assert_eq!((&stats["done"], &stats["failed"]), (&json!(13), &json!(0)), "{stats}");
    assert_eq!(workspace.items().len(), 13);
    // The supervisor ends the last one.
    let ending = async {
        while !browsers(&workspace).is_empty() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LIMIT, ending).await.unwrap();
}

#[tokio::test]
async fn a_page_whose_browsers_die_is_rendered_alone_and_fails_without_stopping_others() {
    let site = ScriptSite::serve().await;
    shop(&site, 12);
    let links: String = (0..12).map(|hat| format!("<a href=/hat/{hat}></a>")).collect();
    site.page("/", format!("<a href=/kills></a>{links}"));
    // It is never loaded, and so never at rest before its browser is killed, however slow the machine is.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let never = silent.local_addr().unwrap();
    site.page(
        "/kills",
        format!("<h1>Kills</h1><script>fetch('/killing')</script><script src='http://{never}/'></script>"),
    );
    let workspace = Workspace::new(&site);
    let crawl = workspace.start(&[], &[("TRAWL__RETRY__MAX", "0")]);
    let killing = async {
        for times in 1.. {
            while site.paths().iter().filter(|path| *path == "/killing").count() < times {
                sleep(Duration::from_millis(20)).await;
            }
            for (browser, _) in browsers(&workspace).into_iter().filter(|(_, is_helper)| !is_helper) {
                // It may have ended by now.
                let _ = kill_process(browser, Signal::KILL);
            }
        }
    };
    // Less than the minute for which many deaths stop all rendering.
    let output = tokio::select! {
        output = timeout(Duration::from_secs(50), crawl.wait_with_output()) => output.unwrap().unwrap(),
        () = killing => unreachable!("it never ends"),
    };
    let stats = stats(&output);
    let paths = site.paths();
    let killings = paths.iter().filter(|path| *path == "/killing").count();
    let counts = (stats["done"].as_u64(), stats["failed"].as_u64(), killings);
    assert_eq!(counts, (Some(13), Some(1), 3), "{output:?} {paths:?}");
}

/// Returns the processes of the browsers of a workspace, each with whether it is a helper, the main ones first.
fn browsers(workspace: &Workspace<'_>) -> Vec<(Pid, bool)> {
    let profile = format!("--user-data-dir={}", workspace.path().display());
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid = entry.unwrap().file_name().to_str()?.parse().ok()?;
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        let is_helper = command.contains("--type=");
        command.contains(&profile).then_some((Pid::from_raw(pid)?, is_helper))
    });
    let mut processes: Vec<_> = processes.collect();
    processes.sort_by_key(|(_, is_helper)| *is_helper);
    processes
}
