//! The fault suite for `trawl crawl`: faults of one process and one state file.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::faults::disk::Disk;
use trawl_testkit::faults::embedded::{Crawl, has_finished, through_kills};
use trawl_testkit::faults::scenario::Sink;
use trawl_testkit::faults::stored;
use trawl_testkit::site::Site;

const LIMIT: Duration = Duration::from_secs(60);
/// Time after which a crawl that waits, and does not end, must have said so.
const WAITS: Duration = Duration::from_secs(10);

fn crawl(folder: &Path) -> Crawl {
    Crawl { trawl: env!("CARGO_BIN_EXE_trawl").into(), folder: folder.to_owned() }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn urls(crawl: &Crawl) -> HashSet<String> {
    stored::items(&crawl.items(), Sink::Files).unwrap().into_iter().map(|item| item.url).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_survives_any_number_of_kills() {
    for seed in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let outcome = through_kills(&crawl(folder.path()), 400, 8, seed).await.unwrap();
        assert!(outcome.verdict.problems.is_empty(), "{}", outcome.complaint());
    }
}

/// Each time other pages were in flight too, or had been.
#[tokio::test(flavor = "multi_thread")]
async fn pages_that_are_in_flight_when_their_process_is_killed_are_no_poison() {
    let site = Site::serve(30).await;
    let source = format!("{}/sitemap.xml", site.origin);
    let folder = tempfile::tempdir().unwrap();
    let crawl = crawl(folder.path());
    site.hold_after(0);
    let mut asked = 0;
    // First all pages that a process requests at once; then the suspects, one at a time.
    for (run, in_flight) in (1..).zip([8, 8, 1, 1, 1, 1, 1, 1]) {
        let mut killed = crawl.command(&source, run).spawn().unwrap();
        asked += in_flight;
        timeout(LIMIT, site.asked_for(asked)).await.unwrap();
        killed.kill().await.unwrap();
    }
    site.answer_all();
    let output = timeout(LIMIT, crawl.command(&source, 9).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(urls(&crawl).len(), 30, "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_a_crawl_whose_disk_is_full() {
    let site = Site::serve(20_000).await;
    let disk = Disk::mount(600).unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut full = crawl(disk.path()).command(&format!("{}/sitemap.xml", site.origin), 1);
    let full = full.env("TRAWL__WORKER__SHUTDOWN_TIMEOUT", "2s").stderr(log.reopen().unwrap());
    let mut full = full.spawn().unwrap();
    let printed = || fs::read_to_string(log.path()).unwrap();
    let reports_it = async {
        while !printed().contains("full") {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, reports_it).await.unwrap();
    let pid = full.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().await.unwrap().success());
    let ended = timeout(LIMIT, full.wait()).await.expect("it ends").unwrap();
    assert_eq!(ended.code(), Some(130), "{}", printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_fills_its_disk_reports_it_and_goes_on_when_space_is_free() {
    let site = Site::serve(2000).await;
    let source = format!("{}/sitemap.xml", site.origin);
    let disk = Disk::mount(400).unwrap();
    let crawl = crawl(disk.path());
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut full = crawl.command(&source, 1);
    let mut full = full.stderr(log.reopen().unwrap()).spawn().unwrap();
    // The crawl may end with an error, or wait for space.
    let ended = timeout(WAITS, full.wait()).await;
    let printed = fs::read_to_string(log.path()).unwrap();
    assert!(urls(&crawl).len() < 2000, "the disk was large enough");
    assert!(printed.contains("full") || printed.contains("No space left"), "{printed}");
    disk.resize(100_000).unwrap();
    if let Ok(ended) = ended {
        let lines = printed.lines().filter(|line| line.starts_with("trawl crawl:")).count();
        assert!(lines == 1 && !ended.unwrap().success(), "{printed}");
    } else {
        let ended = timeout(LIMIT, full.wait()).await;
        assert!(ended.is_ok_and(|ended| ended.is_ok()), "{}", fs::read_to_string(log.path()).unwrap());
    }
    let output = timeout(LIMIT, crawl.command(&source, 2).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(urls(&crawl).len(), 2000, "{printed}{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_file_that_cannot_be_written_is_one_line_that_names_it() {
    let site = Site::serve(5).await;
    let source = format!("{}/sitemap.xml", site.origin);
    let disk = Disk::mount(4000).unwrap();
    let crawl = crawl(disk.path());
    for with_file in [false, true] {
        if with_file {
            let output = crawl.command(&source, 1).output().await.unwrap();
            assert!(has_finished(&output), "{}", stderr(&output));
        }
        disk.read_only().unwrap();
        let output = timeout(LIMIT, crawl.command(&source, 2).output()).await.unwrap().unwrap();
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains("crawl.db") && printed.lines().count() == 1, "{printed}");
        disk.writable().unwrap();
    }
}
