//! Programs whose files change while their worker runs.

use std::fs;

use serde_json::Value;
use tokio::time::timeout;

use crate::support::{Fleet, LIMIT, ends_well};

/// A program that lives, and says which version of it did a task.
fn program(version: u32) -> String {
    format!(
        r#"import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "task":
        print(json.dumps({{"id": request["id"], "result": 0, "items": [{{"version": {version}}}]}}), flush=True)
"#
    )
}

#[tokio::test]
async fn a_program_whose_files_have_changed_is_started_anew_and_the_workers_say_which_version_they_use() {
    let fleet = Fleet::new().await;
    let spider = format!("{}p", fleet.name);
    let folder = fleet.folder.path().join("spiders").join(&spider);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("run.py"), program(1)).unwrap();
    let file = "[handler]\nrun = ['/usr/bin/env', 'python3', 'run.py']\nmode = 'stream'\n";
    fs::write(folder.join("spider.toml"), file).unwrap();
    let worker = fleet.worker(&[]);
    let run = async |words: &[&str]| {
        let ran = timeout(LIMIT, fleet.command(words).output()).await.unwrap().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let does = async |task: &str, by: u32| {
        let list = fleet.folder.path().join("tasks.jsonl");
        fs::write(&list, format!("\"{task}\"\n")).unwrap();
        run(&["producer", "tasks.jsonl", "--spider", &spider, "--wait", "-q"]).await;
        let items = fleet.items().await;
        assert_eq!(items.last().unwrap()["fields"]["version"], by, "{items:?}");
    };
    let version = async || {
        let shown = run(&["workers", "--json"]).await;
        let state: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
        state["programs"][&spider].as_str().map(str::to_owned)
    };
    does("one", 1).await;
    let known = async {
        loop {
            if let Some(version) = version().await {
                return version;
            }
        }
    };
    let before = timeout(LIMIT, known).await.unwrap();
    fs::write(folder.join("run.py"), program(2)).unwrap();
    let changes = async { while version().await.as_ref() == Some(&before) {} };
    timeout(LIMIT, changes).await.unwrap();
    does("two", 2).await;
    let (now, shown) = (version().await.unwrap(), run(&["workers"]).await);
    assert!(shown.lines().any(|line| line.contains(&spider) && line.contains(&now)), "{shown}");
    ends_well(worker).await;
}
