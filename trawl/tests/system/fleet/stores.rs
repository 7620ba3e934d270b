//! Sinks that accept nothing, or are slow.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

/// Writes the file of a spider that starts with these paths of a site and stores its items in a JSON Lines file.
fn write(fleet: &Fleet, name: &str, site: &Site, paths: &[String], sink: &Path) {
    let folder = fleet.folder.path().join("spiders");
    fs::create_dir_all(&folder).unwrap();
    let urls: Vec<String> = paths.iter().map(|path| format!("'{}{path}'", site.origin)).collect();
    let text = format!(
        "[start]\nurls = [{}]\n[[sinks]]\nkind = 'jsonl'\npath = '{}'\n",
        urls.join(", "),
        sink.display()
    );
    fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

/// Waits for the crawl named like its spider to end, and returns its stats.
async fn crawled(fleet: &Fleet, name: &str) -> Value {
    let waited = fleet.command(&["wait", name, "--json"]).output();
    let Ok(waited) = timeout(LIMIT, waited).await else {
        let status = fleet.command(&["status", name]).output().await.unwrap();
        panic!("{name} does not end: {}", String::from_utf8_lossy(&status.stdout));
    };
    serde_json::from_slice(&waited.unwrap().stdout).unwrap()
}

async fn feed(fleet: &Fleet, name: &str) {
    let words = ["producer", "--spider", name, "--crawl", name, "-q"];
    assert!(timeout(LIMIT, fleet.command(&words).status()).await.unwrap().unwrap().success());
}

#[tokio::test]
async fn a_spider_whose_sink_takes_nothing_holds_up_no_other_and_loses_nothing() {
    const PAGES: usize = 60;
    let fleet = Fleet::new().await;
    let site = Site::serve(2 * PAGES).await;
    let (stuck, free) = (format!("{}-stuck", fleet.name), format!("{}-free", fleet.name));
    let paths = |first: usize| -> Vec<String> {
        (first..first + PAGES).map(|number| format!("/page/{number}")).collect()
    };
    let [items, others] = ["items.jsonl", "others.jsonl"].map(|name| fleet.folder.path().join(name));
    write(&fleet, &stuck, &site, &paths(0), Path::new("/dev/full"));
    write(&fleet, &free, &site, &paths(PAGES), &others);

    // The pages of one spider are more than this worker may hold.
    let settings = [("TRAWL__WORKER__PREFETCH", "16"), ("TRAWL__WORKER__SHUTDOWN_TIMEOUT", "1s")];
    let worker = fleet.worker(&settings);
    feed(&fleet, &stuck).await;
    timeout(LIMIT, site.asked_for(1)).await.unwrap();
    feed(&fleet, &free).await;
    assert_eq!(crawled(&fleet, &free).await["done"], PAGES);
    let reported = async {
        loop {
            let status = fleet.command(&["status"]).output().await.unwrap();
            let status = String::from_utf8_lossy(&status.stdout).into_owned();
            if status.contains(&format!("spider {stuck}: jsonl /dev/full")) {
                return;
            }
        }
    };
    timeout(LIMIT, reported).await.unwrap();
    ends_well(worker).await;

    write(&fleet, &stuck, &site, &paths(0), &items);
    let worker = fleet.worker(&settings);
    let stats = crawled(&fleet, &stuck).await;
    assert_eq!((&stats["done"], &stats["failed"]), (&PAGES.into(), &0.into()));
    assert_eq!(fs::read_to_string(&items).unwrap().lines().count(), PAGES);
    ends_well(worker).await;
}

/// A full pipe, which accepts nothing until it is read.
fn full_pipe(path: &Path) -> File {
    const NONBLOCK: i32 = 0o4000;
    let mut pipe = OpenOptions::new().read(true).write(true).custom_flags(NONBLOCK).open(path).unwrap();
    loop {
        match pipe.write(b"\n") {
            Ok(_) => {}
            Err(full) if full.kind() == ErrorKind::WouldBlock => return pipe,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn nothing_waits_for_a_slow_sink_but_what_it_is_to_store_and_that_stays_in_hand() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let path = fleet.folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().await.unwrap().success());
    let mut pipe = full_pipe(&path);
    write(&fleet, &fleet.name, &site, &["/page/0", "/broken"].map(str::to_owned), &path);
    let worker = fleet.worker(&[("TRAWL__RETRY__BACKOFF", "1s")]);
    feed(&fleet, &fleet.name).await;
    // Tried until the last attempt while the other page waits, for several times the length of a lease.
    timeout(LIMIT, site.asked_for_path("/broken", 4)).await.unwrap();
    let reading = std::thread::spawn(move || {
        let mut all = Vec::new();
        while !all.ends_with(b"}\n") {
            let mut block = [0; 4096];
            match pipe.read(&mut block) {
                Ok(count) => all.extend_from_slice(&block[..count]),
                Err(empty) if empty.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        String::from_utf8(all).unwrap()
    });
    let stats = crawled(&fleet, &fleet.name).await;
    assert_eq!((&stats["done"], &stats["failed"]), (&1.into(), &1.into()));
    assert_eq!(stats["reasons"]["failed:http"], 1, "{stats}");
    assert_eq!(site.log()["/page/0"], 1);
    assert_eq!(reading.join().unwrap().trim().lines().count(), 1);
    ends_well(worker).await;
}
