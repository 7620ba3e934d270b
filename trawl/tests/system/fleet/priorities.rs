//! Priorities of tasks in a fleet.

use std::collections::BTreeSet;
use std::fs;

use tokio::time::{Duration, sleep, timeout};

use crate::fleet::write_spider;
use crate::support::{Fleet, LIMIT, ends_well};

/// Records each task that starts, and waits until the task may end; all may once there is a file `go`.
const PROGRAM: &str = r#"recipe=$(printf '%s\n' "$1" | sed 's/.*"recipe":"\([^"]*\)".*/\1/')
echo "$recipe" >> FOLDER/begun
until [ -e "FOLDER/go $recipe" ] || [ -e FOLDER/go ]; do sleep 0.02; done
echo '{"result": 0}'
"#;

const LOW: usize = 180;
const URGENT: usize = 20;

#[tokio::test]
async fn the_most_urgent_tasks_begin_first_in_a_fleet_though_they_were_submitted_last() {
    let fleet = Fleet::new().await;
    let path = |name: &str| fleet.folder.path().join(name);
    fs::write(path("run.sh"), PROGRAM.replace("FOLDER", &fleet.folder.path().to_string_lossy())).unwrap();
    write_spider(&fleet, &format!("[handler]\nrun = ['/bin/sh', '{}']", path("run.sh").display()));
    let begun = || -> Vec<String> {
        fs::read_to_string(path("begun")).unwrap_or_default().lines().map(str::to_owned).collect()
    };
    let low: Vec<String> = (0..LOW).map(|number| format!("\"low {number}\"\n")).collect();
    fs::write(path("low.jsonl"), low.concat()).unwrap();
    // The most urgent task is the last one.
    let line = |number| format!("{{\"recipe\": \"urgent {number}\", \"priority\": {number}.5}}\n");
    let urgent: Vec<String> = (0..URGENT).map(line).collect();
    fs::write(path("urgent.jsonl"), urgent.concat()).unwrap();

    let mut first = fleet.producer("low.jsonl").spawn().unwrap();
    let workers = [(); 2].map(|()| fleet.worker(&[("TRAWL__WORKER__HANDLERS", "1")]));
    let begin = async |count: usize| {
        let waiting = async {
            while begun().len() < count {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LIMIT, waiting).await.unwrap();
    };
    begin(2).await;
    let (spider, crawl) = (format!("--spider={}", fleet.name), format!("--crawl={}", fleet.name));
    let submitting = fleet.command(&["producer", "urgent.jsonl", &spider, &crawl, "-q"]).output();
    assert!(timeout(LIMIT, submitting).await.unwrap().unwrap().status.success());
    // One task ends at a time, and the next one starts.
    for at in 0..URGENT {
        fs::write(path(&format!("go {}", begun()[at])), "").unwrap();
        begin(at + 3).await;
    }
    fs::write(path("go"), "").unwrap();
    assert!(timeout(LIMIT, first.wait()).await.unwrap().unwrap().success());

    let begun = begun();
    let urgent: Vec<String> = (0..URGENT).rev().map(|number| format!("urgent {number}")).collect();
    assert_eq!(begun[2..2 + URGENT], urgent);
    let all: BTreeSet<&String> = begun.iter().collect();
    assert_eq!((begun.len(), all.len()), (LOW + URGENT, LOW + URGENT), "each is done once");
    for worker in workers {
        ends_well(worker).await;
    }
}
