//! Producer and workers as processes, on a real RabbitMQ and a real Redis.

mod doctor;
mod downloads;
mod feeding;
mod fileless;
mod full;
mod handed;
mod items;
mod keys;
mod kinds;
mod priorities;
mod programs;
mod robots;
mod sessions;
mod stores;
mod strangers;
mod zombie;

use std::collections::HashSet;
use std::fs;
use std::process::Stdio;

use lapin::options::{BasicGetOptions, BasicPublishOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use serde_json::Value;
use tokio::time::timeout;
use trawl_testkit::site::Site;

use crate::support::{Fleet, LIMIT, ends_well};

async fn channel_of(fleet: &Fleet) -> Channel {
    let connection = Connection::connect(fleet.vhost.url.reveal(), ConnectionProperties::default());
    connection.await.unwrap().create_channel().await.unwrap()
}

/// Returns the next dead letter: its body, and its headers as text.
async fn dead_letter(channel: &Channel) -> (String, String) {
    let taken = async {
        loop {
            if let Some(dead_letter) =
                channel.basic_get("failed_urls".into(), BasicGetOptions { no_ack: true }).await.unwrap()
            {
                return dead_letter;
            }
            tokio::task::yield_now().await;
        }
    };
    let dead_letter = timeout(LIMIT, taken).await.unwrap().delivery;
    let headers = dead_letter.properties.headers().as_ref().unwrap().inner().iter();
    let headers: String = headers.map(|(name, value)| format!("{name}={} ", shown(value))).collect();
    (String::from_utf8_lossy(&dead_letter.data).into_owned(), headers)
}

fn shown(value: &AMQPValue) -> String {
    match value {
        AMQPValue::LongString(text) => text.to_string(),
        AMQPValue::LongLongInt(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Writes the file of this fleet's spider.
fn write_spider(fleet: &Fleet, text: &str) {
    fs::write(fleet.folder.path().join(format!("spiders/{}.toml", fleet.name)), text).unwrap();
}

/// Waits until a queue holds this many messages.
async fn await_messages(channel: &Channel, queue: &str, count: u32) {
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let counted = async {
        loop {
            let declared = channel.queue_declare(queue.into(), passive, FieldTable::default()).await;
            if declared.unwrap().message_count() >= count {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, counted).await.unwrap();
}

#[tokio::test]
async fn two_workers_fetch_every_page_once_and_a_missing_page_is_a_dead_letter() {
    let fleet = Fleet::new().await;
    let site = Site::serve(120).await;
    let workers = [fleet.worker(&[]), fleet.worker(&[])];
    let list: String = (0..=120).map(|number| format!("{}\n", site.page(number))).collect();
    fs::write(fleet.folder.path().join("list.txt"), list + "not a URL\n").unwrap();
    let produced = timeout(LIMIT, fleet.producer("list.txt").output()).await.unwrap().unwrap();
    let printed = String::from_utf8_lossy(&produced.stderr).into_owned();
    assert_eq!(produced.status.code(), Some(3), "{printed}");
    assert!(printed.contains("121 URLs new") && printed.contains("1 invalid"), "{printed}");

    let items = fleet.items().await;
    let ids: HashSet<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!((items.len(), ids.len()), (120, 120));
    assert!(site.log().values().all(|asked| *asked == 1), "{:?}", site.log());
    let channel = channel_of(&fleet).await;
    let (invalid, headers) = dead_letter(&channel).await;
    assert!(invalid == "not a URL" && headers.contains("reason=invalid"), "{invalid} {headers}");
    let (missing, headers) = dead_letter(&channel).await;
    assert!(
        missing == site.page(120) && headers.contains("reason=final") && headers.contains("status=404"),
        "{missing} {headers}"
    );

    let status = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    let stats: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(
        (&stats["status"], &stats["done"], &stats["failed"]),
        (&"finished".into(), &120.into(), &1.into())
    );
    let again =
        fleet.command(&["producer", "list.txt", &format!("--spider={}", fleet.name)]).output().await.unwrap();
    let printed = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(printed.contains("0 URLs new") && printed.contains("121 seen before"), "{printed}");
    for worker in workers {
        ends_well(worker).await;
    }
}

#[tokio::test]
async fn a_health_check_tells_whether_a_worker_lives() {
    let fleet = Fleet::new().await;
    let check = async || fleet.command(&["workers", "--here", "--json"]).output().await.unwrap();
    assert_eq!(check().await.status.code(), Some(1));
    let worker = fleet.worker(&[]);
    consumed(&fleet).await;
    let checked = check().await;
    let status: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!((checked.status.code(), &status["health"]), (Some(0), &"ok".into()));
    ends_well(worker).await;
}

#[tokio::test]
async fn a_page_that_keeps_failing_is_a_dead_letter_after_three_retries() {
    let fleet = Fleet::new().await;
    let site = Site::serve(0).await;
    let broken = format!("{}/broken", site.origin);
    fs::write(fleet.folder.path().join("list.txt"), &broken).unwrap();
    let mut worker = fleet.command(&["worker", "-q"]);
    let worker = worker.env("TRAWL__RETRY__BACKOFF", "100ms").spawn().unwrap();
    let produced = timeout(LIMIT, fleet.producer("list.txt").output()).await.unwrap().unwrap();
    assert_eq!(produced.status.code(), Some(3));
    let (url, headers) = dead_letter(&channel_of(&fleet).await).await;
    assert_eq!((&url, site.log()["/broken"]), (&broken, 4));
    let redis = redis::Client::open(fleet.redis.reveal()).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let failures: Option<u32> =
        redis::cmd("GET").arg(format!("failures:{broken}")).query_async(&mut redis).await.unwrap();
    assert_eq!(failures, Some(4), "the last one counts too");
    for header in ["reason=retries", "class=http", "status=500", "attempts=4", "worker=", "failed_at="] {
        assert!(headers.contains(header), "{header}: {headers}");
    }
    ends_well(worker).await;
}

/// Each start of the page kills its worker.
async fn poison(settings: &[(&str, &str)]) {
    let fleet = Fleet::new().await;
    let site = Site::serve(30).await;
    let poison = format!("{}/poison", site.origin);
    let pages: String = (0..30).map(|number| site.page(number) + "\n").collect();
    fs::write(fleet.folder.path().join("list.txt"), pages + &poison).unwrap();
    let spawn = |mut command: tokio::process::Command| {
        command.envs(settings.iter().copied()).env("TRAWL__WORKER__PREFETCH", "8").spawn().unwrap()
    };
    let mut producer = spawn(fleet.producer("list.txt"));
    let worker = || spawn(fleet.command(&["worker", "--concurrency", "4", "-q"]));
    for start in 1..=4 {
        let mut doomed = worker();
        timeout(LIMIT, site.asked_for_path("/poison", start)).await.unwrap();
        doomed.kill().await.unwrap();
    }
    let survivor = worker();
    assert_eq!(timeout(LIMIT, producer.wait()).await.unwrap().unwrap().code(), Some(3));
    let (url, headers) = dead_letter(&channel_of(&fleet).await).await;
    assert!(url == poison && headers.contains("reason=poison"), "{url} {headers}");
    assert_eq!(site.log()["/poison"], 4);
    let fetched: HashSet<String> =
        fleet.items().await.iter().map(|item| item["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(fetched.len(), 30, "it takes no other URL with it");
    ends_well(survivor).await;
}

#[tokio::test]
async fn a_page_that_kills_its_worker_four_times_is_poison_on_quorum_queues() {
    poison(&[("TRAWL__QUEUES__TYPE", "quorum")]).await;
}

#[tokio::test]
async fn a_page_that_kills_its_worker_four_times_is_poison_on_classic_queues() {
    poison(&[("TRAWL__QUEUES__TYPE", "classic")]).await;
}

/// Unacknowledged delivery costs delay, not URLs, as long as there are records.
#[tokio::test]
async fn a_killed_worker_loses_no_url_of_a_crawl_where_messages_are_acknowledged_as_they_arrive() {
    poison(&[("TRAWL__QUEUES__BULK__ACKS", "none")]).await;
}

#[tokio::test]
async fn a_worker_logs_each_url_on_demand() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let list = format!("{}\n{}/broken\n", site.page(0), site.origin);
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let mut worker = fleet.command(&["worker"]);
    worker.env("TRAWL__RETRY__BACKOFF", "100ms").env("TRAWL__LOG__URLS", "true").stderr(Stdio::piped());
    let mut worker = worker.spawn().unwrap();
    let mut stderr = worker.stderr.take().unwrap();
    let produced = timeout(LIMIT, fleet.producer("list.txt").output()).await.unwrap().unwrap();
    assert_eq!(produced.status.code(), Some(3));
    ends_well(worker).await;
    let mut log = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stderr, &mut log).await.unwrap();
    let logged = |parts: &[&str]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(logged(&["waiting for messages"]), "{log}");
    assert!(logged(&["fetching", &site.page(0)]), "{log}");
    assert!(logged(&["finished", &site.page(0), "status=200", "bytes=", "items=1", "ms="]), "{log}");
    assert!(logged(&["retrying", "/broken", "3/3", "500"]), "{log}");
    assert!(logged(&["dead letter", "/broken", "attempts=4"]), "{log}");
}

/// Waits until a worker consumes from the lanes: a queue that was just declared may still lose messages published
/// without a confirm, while one with a consumer has a leader.
async fn consumed(fleet: &Fleet) {
    for queue in ["url_queue_ttl", "priority_queue"] {
        let consumed = async {
            loop {
                let look = lapin::options::QueueDeclareOptions { passive: true, ..Default::default() };
                let looked =
                    channel_of(fleet).await.queue_declare(queue.into(), look, Default::default()).await;
                if looked.is_ok_and(|queue| queue.consumer_count() > 0) {
                    return;
                }
            }
        };
        timeout(LIMIT, consumed).await.unwrap();
    }
}

/// The prototype's producer adds a URL to the set before publishing it.
#[tokio::test]
async fn a_url_that_its_publisher_has_marked_as_crawled_is_fetched() {
    let fleet = Fleet::new().await;
    let site = Site::serve(3).await;
    let spider = fleet.name.as_str();
    let redis = redis::Client::open(fleet.redis.reveal()).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let worker = fleet.worker(&[]);
    consumed(&fleet).await;
    let channel = channel_of(&fleet).await;
    let mut headers = FieldTable::default();
    headers.insert("spider".into(), AMQPValue::LongString(spider.into()));
    let properties = BasicProperties::default().with_headers(headers);
    let crawl = format!("adhoc.{spider}");
    let stats = async || {
        let printed = fleet.command(&["status", &crawl, "--json"]).output().await.unwrap();
        serde_json::from_slice::<Value>(&printed.stdout).unwrap_or_default()
    };
    for (number, done, repeats) in [(0, 1, Value::Null), (1, 2, Value::Null), (0, 2, 1.into())] {
        let page = site.page(number);
        let mut add = redis::cmd("SADD");
        add.arg(format!("crawled_urls:{spider}")).arg(&page);
        let _: u64 = add.query_async(&mut redis).await.unwrap();
        let options = BasicPublishOptions::default();
        let sent = channel.basic_publish(
            "".into(),
            "url_queue_ttl".into(),
            options,
            page.as_bytes(),
            properties.clone(),
        );
        sent.await.unwrap();
        let counted = async {
            while stats().await["done"] != done || stats().await["reasons"]["dropped:repeat"] != repeats {}
        };
        timeout(LIMIT, counted).await.unwrap();
    }
    assert_eq!((&stats().await["admitted"], &stats().await["status"]), (&2.into(), &"running".into()));
    let shown = fleet.command(&["status", &crawl]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("asked for again within adhoc.again"));
    assert!(site.log().values().all(|asked| *asked == 1), "{:?}", site.log());
    ends_well(worker).await;
}

#[tokio::test]
async fn a_bare_url_of_any_client_is_fetched_and_what_is_none_is_a_dead_letter() {
    let fleet = Fleet::new().await;
    let site = Site::serve(1).await;
    let worker = fleet.worker(&[]);
    let channel = channel_of(&fleet).await;
    consumed(&fleet).await;
    let with = |name: &str, value: &str| {
        let mut headers = FieldTable::default();
        headers.insert(name.into(), AMQPValue::LongString(value.into()));
        BasicProperties::default().with_headers(headers)
    };
    let (none, page, long) =
        (BasicProperties::default(), site.page(0), format!("http://h/{}", "x".repeat(100_000)));
    let sent = [
        (&b"\xff\xfe"[..], none.clone(), "not UTF-8"),
        (b"javascript:alert(1)", none.clone(), "javascript"),
        (long.as_bytes(), none.clone(), "longer than 8192 bytes"),
        (page.as_bytes(), with("depth", "deep"), "depth"),
        (page.as_bytes(), with("crawl", "no crawl"), "crawl"),
        (page.as_bytes(), with("crawl", "never-was"), "there is no crawl never-was"),
        (page.as_bytes(), none, ""),
    ];
    for (body, properties, _) in &sent {
        let options = BasicPublishOptions::default();
        channel
            .basic_publish("".into(), "url_queue_ttl".into(), options, body, properties.clone())
            .await
            .unwrap();
    }
    let mut printed = Vec::new();
    for _ in 1..sent.len() {
        printed.push(dead_letter(&channel).await.1);
    }
    for (_, _, reason) in &sent {
        assert!(
            printed
                .iter()
                .any(|dead_letter| dead_letter.contains("reason=invalid") && dead_letter.contains(reason)),
            "{reason}: {printed:?}"
        );
    }
    timeout(LIMIT, site.asked_for(1)).await.unwrap();
    ends_well(worker).await;
    assert_eq!(fleet.items().await[0]["crawl"], "adhoc");

    let run = async |words: &[&str]| {
        let done = fleet.command(words).output().await.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let stats: Value = serde_json::from_str(&run(&["status", "adhoc", "--json"]).await).unwrap();
    assert_eq!(stats["reasons"]["dropped:invalid"], sent.len() - 1);
    let listed = run(&["dlq", "list", "--json", "--reason", "invalid"]).await;
    // A page that came in several invalid messages is listed once.
    assert_eq!(listed.lines().count(), 4, "{listed}");
    assert!(run(&["dlq", "show", "javascript:alert(1)"]).await.contains("invalid"));
    assert!(run(&["dlq", "show", &page]).await.contains("invalid"));
    run(&["dlq", "replay", "--yes"]).await;
    run(&["dlq", "purge", "--reason", "invalid"]).await;
    assert_eq!(run(&["dlq", "list", "--json"]).await, "");
}

#[tokio::test]
async fn what_outlives_its_lane_is_fetched_if_trawl_sent_it_and_expires_if_a_stranger_did() {
    let (fleet, site) = (Fleet::new().await, Site::serve(31).await);
    let list: String = (0..30).map(|number| format!("{}\n", site.page(number))).collect();
    fs::write(fleet.folder.path().join("list.txt"), list).unwrap();
    let soon = ("TRAWL__QUEUES__BULK__TTL", "100ms");
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let mut producer = fleet.command(&["producer", "list.txt", &spider, &crawl, "-q"]);
    assert!(producer.env(soon.0, soon.1).status().await.unwrap().success());
    let channel = channel_of(&fleet).await;
    await_messages(&channel, "expired_urls", 30).await;
    let (page, options) = (site.page(30), BasicPublishOptions::default());
    let properties = BasicProperties::default();
    channel
        .basic_publish("".into(), "url_queue_ttl".into(), options, page.as_bytes(), properties)
        .await
        .unwrap();
    await_messages(&channel, "expired_urls", 31).await;

    let worker = fleet.worker(&[soon]);
    let ended = timeout(LIMIT, fleet.command(&["wait", &fleet.name]).status()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));
    let (strangers, headers) = dead_letter(&channel).await;
    assert!(strangers == page && headers.contains("reason=expired"), "{strangers} {headers}");
    ends_well(worker).await;
    let status = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    let stats: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!((&stats["done"], &stats["expired"]), (&30.into(), &0.into()), "{stats}");
}

/// Such a copy remains of a URL that failed, was parked or waited in a pause before an operator replayed it.
#[tokio::test]
async fn a_deadline_in_a_copy_of_a_message_expires_no_url_that_has_none() {
    let (fleet, site) = (Fleet::new().await, Site::serve(1).await);
    fs::write(fleet.folder.path().join("list.txt"), site.page(0)).unwrap();
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let mut producer = fleet.command(&["producer", "list.txt", &spider, &crawl, "-q"]);
    assert!(producer.status().await.unwrap().success());
    let mut headers = FieldTable::default();
    for name in ["crawl", "spider"] {
        headers.insert(name.into(), AMQPValue::LongString(fleet.name.as_str().into()));
    }
    headers.insert("deadline".into(), AMQPValue::LongLongInt(1));
    let (page, options) = (site.page(0), BasicPublishOptions::default());
    let properties = BasicProperties::default().with_headers(headers);
    let channel = channel_of(&fleet).await;
    // In this queue it is ahead of the URL's own message.
    channel
        .basic_publish("".into(), "priority_queue".into(), options, page.as_bytes(), properties)
        .await
        .unwrap();

    let worker = fleet.worker(&[]);
    let ended = timeout(LIMIT, fleet.command(&["wait", &fleet.name]).status()).await.unwrap().unwrap();
    assert_eq!((ended.code(), site.log().get("/page/0")), (Some(0), Some(&1)));
    ends_well(worker).await;
}

#[tokio::test]
async fn four_workers_do_exactly_as_many_pages_as_the_crawl_may() {
    let (fleet, site) = (Fleet::new().await, Site::serve(400).await);
    write_spider(&fleet, "max_pages = 60");
    let workers: Vec<_> = (0..4).map(|_| fleet.worker(&[])).collect();
    let produced = fleet.producer(&format!("{}/sitemap.xml", site.origin)).output();
    let produced = timeout(LIMIT, produced).await.unwrap().unwrap();
    assert_eq!(produced.status.code(), Some(0), "{}", String::from_utf8_lossy(&produced.stderr));
    let status = fleet.command(&["status", &fleet.name, "--json"]).output().await.unwrap();
    let stats: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!((&stats["done"], &stats["skipped"]), (&60.into(), &340.into()), "{stats}");
    assert_eq!(stats["reasons"]["skipped:limit"], 340);
    let pages: HashSet<String> =
        fleet.items().await.iter().map(|item| item["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!(pages.len(), 60);
    for worker in workers {
        ends_well(worker).await;
    }
}

#[tokio::test]
async fn a_queue_with_other_arguments_is_named_with_the_way_out() {
    let fleet = Fleet::new().await;
    let declared = fleet.command(&["producer", "/dev/null", "--spider", &fleet.name]).output().await.unwrap();
    assert_eq!(declared.status.code(), Some(0));
    let mut other = fleet.command(&["producer", "/dev/null", "--spider", &fleet.name, "-q"]);
    let other = other.env("TRAWL__QUEUES__BULK__TTL", "7m").output().await.unwrap();
    let printed = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(2), "{printed}");
    for part in ["url_queue_ttl", "420000", "3600000", "[queues]"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}
