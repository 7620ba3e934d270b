//! `trawl doctor` on real servers.

use std::fs;

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use serde_json::Value;
use tokio::time::timeout;

use crate::fleet::{channel_of, consumed};
use crate::support::{Fleet, LIMIT, ends_well};

/// Returns the findings, each as `redis error: text`, of a run that ends with `code`.
async fn findings(fleet: &Fleet, settings: &[(&str, &str)], code: i32) -> Vec<String> {
    let mut command = fleet.command(&["doctor", "--json"]);
    let output = timeout(LIMIT, command.envs(settings.iter().copied()).output()).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let findings = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let shown = |finding: Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("subject"), text("verdict"), text("text"))
    };
    findings.map(shown).collect()
}

fn has(findings: &[String], begin: &str, part: &str) -> bool {
    findings.iter().any(|finding| finding.starts_with(begin) && finding.contains(part))
}

#[tokio::test]
async fn what_a_fleet_lacks_is_told_before_it_runs_and_nothing_is_declared_for_it() {
    let fleet = Fleet::new().await;
    let found = findings(&fleet, &[], 0).await;
    assert!(has(&found, "redis ok", "answers in"), "{found:?}");
    assert!(has(&found, "rabbitmq ok", "no queues yet"), "{found:?}");
    assert!(has(&found, "workers warning", "no worker"), "{found:?}");
    let look = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let looked =
        channel_of(&fleet).await.queue_declare("url_queue_ttl".into(), look, FieldTable::default()).await;
    assert!(looked.is_err());

    let worker = fleet.worker(&[]);
    consumed(&fleet).await;
    let found = findings(&fleet, &[], 0).await;
    assert!(has(&found, "rabbitmq ok", "as the settings say"), "{found:?}");
    assert!(has(&found, "workers ok", "1 worker"), "{found:?}");

    let found = findings(&fleet, &[("TRAWL__QUEUES__BULK__TTL", "2h")], 1).await;
    assert!(has(&found, "rabbitmq error", "url_queue_ttl"), "{found:?}");
    ends_well(worker).await;
}

#[tokio::test]
async fn a_server_that_is_away_and_a_spider_with_a_mistake_are_errors_beside_all_else() {
    let fleet = Fleet::new().await;
    let spiders = fleet.folder.path().join("spiders");
    fs::create_dir_all(&spiders).unwrap();
    fs::write(spiders.join("broken.toml"), "[fields]\nprice = 7\n").unwrap();
    let away = [("REDIS_URL", "redis://127.0.0.1:1")];
    let found = findings(&fleet, &away, 1).await;
    assert!(has(&found, "redis error", "127.0.0.1:1"), "{found:?}");
    assert!(has(&found, "rabbitmq ok", "answers"), "{found:?}");
    assert!(has(&found, "spiders error", "broken.toml:2"), "{found:?}");
    assert!(!has(&found, "workers", ""), "{found:?}");
}
