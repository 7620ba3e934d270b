//! robots.txt files, kept for the whole fleet.

use std::time::Duration;

use bytes::Bytes;
use trawl_common::politeness::robots::{RobotsFile, RobotsKey};
use trawl_common::ports::{Result, RobotsEntry};

use super::{Frugal, HostPorts};
use crate::conformance::{eventually, page, unique};

fn robots_key(site: &str) -> RobotsKey {
    RobotsKey::origin(&page(site, 0).origin())
}

fn robots_file() -> RobotsFile {
    RobotsFile { status: 200, body: Bytes::from_static(b"User-agent: *\nDisallow: /\xff\n"), failure: None }
}

/// If several workers need a robots.txt, one fetches it; the others wait for it, and get it.
pub async fn one_of_all_that_need_a_robots_file_fetches_it(ports: &HostPorts) -> Result<()> {
    let file = robots_key(&unique("host"));
    let lease = Duration::from_secs(60);
    let hosts = &ports.hosts;
    assert_eq!(hosts.robots(&file, lease).await?, RobotsEntry::Yours);
    assert_eq!(hosts.robots(&file, lease).await?, RobotsEntry::Awaited);
    hosts.keep_robots(&file, &robots_file(), lease).await?;
    assert_eq!(hosts.robots(&file, lease).await?, RobotsEntry::Known(robots_file()));
    Ok(())
}

/// A robots.txt is kept for its time, and then fetched again, by one worker.
pub async fn a_robots_file_is_kept_for_its_time(ports: &HostPorts) -> Result<()> {
    let file = robots_key(&unique("host"));
    ports.hosts.keep_robots(&file, &robots_file(), Duration::from_millis(20)).await?;
    let lease = Duration::from_secs(60);
    let is_mine = async || Ok(ports.hosts.robots(&file, lease).await? == RobotsEntry::Yours);
    eventually(Duration::from_secs(10), is_mine).await
}

/// A worker that cannot fetch a robots.txt leaves it to another, at once or when its lease has expired.
pub async fn a_worker_that_cannot_fetch_a_robots_file_leaves_it_to_another(ports: &HostPorts) -> Result<()> {
    let file = robots_key(&unique("host"));
    let brief = Duration::from_millis(20);
    assert_eq!(ports.hosts.robots(&file, Duration::from_secs(60)).await?, RobotsEntry::Yours);
    ports.hosts.give_up_robots(&file).await?;
    assert_eq!(ports.hosts.robots(&file, brief).await?, RobotsEntry::Yours);
    let is_mine = async || Ok(ports.hosts.robots(&file, brief).await? == RobotsEntry::Yours);
    eventually(Duration::from_secs(10), is_mine).await
}

/// robots.txt files keep to their budget, even if they do not compress. A file within the budget is kept.
pub async fn robots_files_keep_to_their_budget(frugal: &Frugal) -> Result<()> {
    const SIZE: usize = 50_000;
    let Frugal { hosts, robots_bytes } = frugal;
    let body: Bytes = std::iter::repeat_with(rand::random::<u8>).take(SIZE).collect();
    let file = RobotsFile { status: 200, body, failure: None };
    let site = unique("site");
    let key = |number| robots_key(&format!("{site}-{number}"));
    let keys: Vec<RobotsKey> = (0..3 * robots_bytes / SIZE).map(key).collect();
    let hour = Duration::from_secs(3_600);
    for key in &keys {
        hosts.keep_robots(key, &file, hour).await?;
    }
    let kept = async || {
        let mut kept = 0;
        for key in &keys {
            kept += usize::from(hosts.robots(key, hour).await? == RobotsEntry::Known(file.clone()));
        }
        Result::Ok(kept * SIZE)
    };
    eventually(Duration::from_secs(10), async || Ok(kept().await? <= *robots_bytes)).await?;
    let kept = kept().await?;
    assert!(kept >= robots_bytes / 2, "{kept} of {robots_bytes}");
    Ok(())
}
