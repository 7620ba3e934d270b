//! Workers without the file of a spider.

use std::fs;

use lapin::options::BasicGetOptions;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::fleet::{await_messages, channel_of};
use crate::support::{Fleet, LIMIT, ends_well};

#[tokio::test]
async fn what_a_worker_has_no_spider_for_comes_back_for_any_other_to_fetch_at_once() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    fs::write(fleet.folder.path().join("list.txt"), site.page(0)).unwrap();
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let produced = fleet.command(&["producer", "list.txt", &spider, &crawl, "-q"]).status().await.unwrap();
    assert!(produced.success());
    let elsewhere = tempfile::tempdir().unwrap();
    let worker = fleet.worker(&[("TRAWL__SPIDERS_DIR", elsewhere.path().to_str().unwrap())]);
    let channel = channel_of(&fleet).await;
    let put_aside = async {
        tokio::select! {
            () = await_messages(&channel, "wait.3", 1) => {}
            () = await_messages(&channel, "wait.10", 1) => {}
        }
    };
    timeout(LIMIT, put_aside).await.unwrap();
    ends_well(worker).await;

    let url = async {
        loop {
            await_messages(&channel, "due_queue", 1).await;
            let options = BasicGetOptions { no_ack: true };
            let taken = channel.basic_get("due_queue".into(), options).await.unwrap().unwrap();
            let headers = taken.delivery.properties.headers().clone().unwrap();
            // A probe of the fleet arrives on the same queue.
            if !headers.inner().contains_key("probe") {
                return headers;
            }
        }
    };
    let headers = timeout(LIMIT, url).await.unwrap();
    let headers = headers.inner();
    assert!(headers.contains_key("wake") && !headers.contains_key("until"), "{headers:?}");
}
