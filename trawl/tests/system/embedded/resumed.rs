//! A crawl that is interrupted and resumed.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::faults::clock::Clock;
use trawl_testkit::many_hosts::{ManyHosts, Plan};
use trawl_testkit::site::Site;

use super::{LIMIT, crawl_stats, stderr, trawl};

/// A crawl of the URLs in `list.txt`.
fn crawl_at(folder: &std::path::Path, rate: &str, more: &[&str]) -> Command {
    let mut command = trawl(folder);
    command.args(["crawl", "list.txt", "--allow-private", "--json", "--rate", rate]).args(more);
    command
}

/// Regardless of the requests that the previous process had just sent, and the slots it had reserved.
#[tokio::test]
async fn a_host_is_asked_at_its_rate_by_processes_that_follow_each_other() {
    let world = ManyHosts::serve(&[Plan { pages: 24, ..Plan::default() }]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("list.txt"), world.pages().join("\n")).unwrap();
    let interval = Duration::from_millis(500);
    for asked in [6, 12, 18] {
        let mut killed =
            crawl_at(folder.path(), "2/s", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        timeout(LIMIT, world.asked_for(asked)).await.unwrap();
        killed.kill().await.unwrap();
    }
    let output = timeout(LIMIT, crawl_at(folder.path(), "2/s", &[]).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let times: Vec<Duration> = world.log().iter().map(|arrival| arrival.at).collect();
    let took = times[times.len() - 1] - times[0];
    assert!(
        took + interval / 2 >= interval * (times.len() as u32 - 1),
        "{} in {took:?}: {times:?}",
        times.len()
    );
    for three in times.windows(3) {
        assert!(three[2] - three[0] >= interval * 3 / 2, "{times:?}");
    }
}

#[tokio::test]
async fn a_faster_rate_holds_at_once() {
    let world = ManyHosts::serve(&[Plan { pages: 12, ..Plan::default() }]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("list.txt"), world.pages().join("\n")).unwrap();
    let mut slow =
        crawl_at(folder.path(), "6/m", &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    timeout(LIMIT, world.asked_for(2)).await.unwrap();
    let pid = slow.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    timeout(LIMIT, slow.wait()).await.unwrap().unwrap();
    let begun = std::time::Instant::now();
    let output = timeout(LIMIT, crawl_at(folder.path(), "20/s", &[]).output()).await.unwrap().unwrap();
    assert_eq!(crawl_stats(&output)["done"], 12, "{}", stderr(&output));
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn another_recrawl_than_the_crawl_began_with_is_warned_of() {
    let site = Site::serve(4).await;
    let folder = tempfile::tempdir().unwrap();
    let list: String = (0..4).map(|number| site.page(number) + "\n").collect();
    fs::write(folder.path().join("list.txt"), list).unwrap();
    site.hold_after(1);
    let mut killed = crawl_at(folder.path(), "unlimited", &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    timeout(LIMIT, site.asked_for(2)).await.unwrap();
    killed.kill().await.unwrap();
    site.answer_all();
    let output = crawl_at(folder.path(), "unlimited", &["--recrawl", "always"]).output();
    let output = timeout(LIMIT, output).await.unwrap().unwrap();
    let said = "recrawl = always (dedup = crawl) has no effect: the crawl goes on with recrawl = never (dedup = spider), as it began";
    assert!(output.status.success() && stderr(&output).contains(said), "{}", stderr(&output));
}

#[tokio::test]
async fn a_crawl_goes_on_in_time_though_the_clock_is_set_back() {
    let site = Site::serve(1).await;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("list.txt"), format!("{}/broken", site.origin)).unwrap();
    let clock = Clock::new(folder.path()).unwrap();
    let mut command = crawl_at(folder.path(), "unlimited", &[]);
    command.envs(clock.env()).env("TRAWL__RETRY__BACKOFF", "4s").env("TRAWL__RETRY__MAX", "1");
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    timeout(LIMIT, site.asked_for_path("/broken", 1)).await.unwrap();
    clock.set_off(-3_600).unwrap();
    timeout(LIMIT / 2, site.asked_for_path("/broken", 2)).await.expect("it is tried again in time");
    assert_eq!(timeout(LIMIT, running.wait()).await.unwrap().unwrap().code(), Some(3));
}
