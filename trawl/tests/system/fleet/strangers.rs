//! Another program that consumes from trawl's queues but does none of trawl's work.

use std::fs;

use futures::StreamExt;
use lapin::options::BasicConsumeOptions;
use lapin::types::FieldTable;
use serde_json::Value;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::fleet::{channel_of, consumed};
use crate::support::{Fleet, LIMIT, ends_well};

const PAGES: usize = 20;

#[tokio::test]
async fn a_crawl_ends_although_another_program_takes_every_other_message() {
    let fleet = Fleet::new().await;
    let site = Site::serve(PAGES).await;
    let urls: Vec<String> = (0..PAGES).map(|page| site.page(page)).collect();
    fs::write(fleet.folder.path().join("list.txt"), urls.join("\n")).unwrap();
    let worker = fleet.worker(&[]);
    consumed(&fleet).await;
    let channel = channel_of(&fleet).await;
    for queue in ["url_queue_ttl", "priority_queue"] {
        let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
        let mut taking =
            channel.basic_consume(queue.into(), "".into(), options, FieldTable::default()).await.unwrap();
        tokio::spawn(async move { while taking.next().await.is_some() {} });
    }
    let mut producer = fleet.producer("list.txt");
    assert_eq!(timeout(2 * LIMIT, producer.status()).await.unwrap().unwrap().code(), Some(0));
    let printed = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    let stats: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!((&stats["status"], &stats["done"]), (&"finished".into(), &PAGES.into()), "{stats}");
    let log = site.log();
    assert!(log.iter().all(|(path, asked)| !path.starts_with("/page/") || *asked == 1), "{log:?}");
    ends_well(worker).await;
}
