//! Requests that programs of spiders send through the worker's proxy share each host's schedule with the crawl.

use std::fs;
use std::time::Duration;

use tokio::time::timeout;
use trawl_testkit::many_hosts::{ManyHosts, Plan};

use crate::politeness::{assert_spread, times};
use crate::support::{Fleet, LIMIT, ends_well};

/// A program that requests twenty pages, four at a time, using the environment variables for the proxy.
const ASKS: &str = r#"
import json, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor

def ask(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status

def all_of(recipe):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(ask, [f"{recipe}/page/{number}" for number in range(20)]))
"#;

const ONCE: &str = r#"
task = json.loads(sys.argv[1])
print(json.dumps({"result": 0, "items": [{"statuses": all_of(task["recipe"])}]}))
"#;

const STREAM: &str = r#"
for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "task":
        statuses = all_of(request["task"]["recipe"])
        print(json.dumps({"id": request["id"], "result": 0, "items": [{"statuses": statuses}]}), flush=True)
    elif request["type"] == "page":
        print(json.dumps({"id": request["id"], "result": 0, "items": [{"page": True}]}), flush=True)
"#;

async fn paced_together(mode: &str, program: &str) {
    let web = ManyHosts::serve(&[Plan { pages: 20, ..Plan::default() }]).await.unwrap();
    let (fleet, settings) = (Fleet::new().await, [("TRAWL__POLITENESS__RATE", "10/s")]);
    let spiders = fleet.folder.path().join("spiders");
    let file = format!(
        "[handler]\nrun = ['/usr/bin/env', 'python3', 'ask.py']\nmode = '{mode}'\nproxy = 'all'\nretries = 0\n"
    );
    fs::write(spiders.join(format!("{}.toml", fleet.name)), file).unwrap();
    fs::write(spiders.join("ask.py"), format!("{ASKS}{program}")).unwrap();
    let origin = web.url(0, "");
    fs::write(fleet.folder.path().join("tasks.jsonl"), format!("\"{origin}\"\n")).unwrap();
    fs::write(fleet.folder.path().join("list.txt"), web.pages().join("\n")).unwrap();
    let worker = fleet.worker(&settings);
    let submit = fleet.command(&["task", "submit", "--spider", &fleet.name, "tasks.jsonl"]).output();
    let submitted = timeout(LIMIT, submit).await.unwrap().unwrap();
    assert!(submitted.status.success(), "{submitted:?}");
    // Both send requests from here on.
    timeout(LIMIT, web.asked_of(0, 2)).await.unwrap();
    let mut producer = fleet.producer("list.txt");
    timeout(LIMIT, producer.envs(settings).status()).await.unwrap().unwrap();
    let items = async {
        loop {
            let items = fleet.items().await;
            if items.len() == 21 {
                return items;
            }
        }
    };
    let items = timeout(LIMIT, items).await.unwrap();
    let statuses = items.iter().find_map(|item| item["fields"]["statuses"].as_array());
    assert_eq!(statuses.unwrap(), &vec![serde_json::json!(200); 20]);
    let log = web.log();
    assert_eq!(log.iter().filter(|arrival| arrival.path != "/robots.txt").count(), 40, "{log:?}");
    assert_paced_by_several(&times(&log), Duration::from_millis(100));
    ends_well(worker).await;
}

/// Checks that requests of several processes came at this interval: all of them, and any ten in a row, the first of
/// which may be late by up to three intervals on a busy machine.
fn assert_paced_by_several(times: &[Duration], interval: Duration) {
    let took = times[times.len() - 1] - times[0];
    assert!(took + interval * 3 >= interval * (times.len() as u32 - 1), "{took:?}: {times:?}");
    assert_spread(times, 10, 9 * interval * 7 / 8 - interval * 3);
}

#[tokio::test]
async fn a_program_for_a_task_and_the_crawl_ask_a_host_at_its_rate_together() {
    paced_together("once", ONCE).await;
}

#[tokio::test]
async fn a_program_that_lives_and_the_crawl_ask_a_host_at_its_rate_together() {
    paced_together("stream", STREAM).await;
}
