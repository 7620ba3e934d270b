//! Schedules of deployed spiders, and of spiders with files beside the API.

use std::fs;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use trawl_api::Backend;
use trawl_common::ports::{JobFilter, JobPage, ScheduleState};
use trawl_common::settings::Settings;
use trawl_common::time::UnixMs;

use crate::fixture::{Fixture, VIEWER};

promises! {
    a_schedule_is_listed_with_its_next_instants_and_the_spiders_last_job
    a_schedule_is_held_and_let_go_on
    a_schedule_that_only_workers_have_seen_is_held_too
    who_may_only_look_changes_no_schedule
    schedules_are_listed_a_page_at_a_time
}

const SCHEDULES: &str = "/api/v1/schedules";

async fn deploy(fixture: &Fixture, project: &str, spider: &str) {
    let text = "schedule = '0 3 * * *'\n[start]\nurls = ['http://a.example/']\n";
    let path = format!("/api/v1/projects/{project}/versions?spider={spider}");
    let answer = fixture.send(fixture.operator(Method::POST, &path).body(text)).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
}

async fn list(fixture: &Fixture) -> Value {
    fixture.get(SCHEDULES).await.body["schedules"].clone()
}

async fn a_schedule_is_listed_with_its_next_instants_and_the_spiders_last_job(fixture: &Fixture) {
    assert_eq!(list(fixture).await, json!([]));
    deploy(fixture, "books", "shop").await;
    let one = list(fixture).await[0].clone();
    assert_eq!(
        (&one["project"], &one["spider"], &one["paused"]),
        (&"books".into(), &"shop".into(), &false.into())
    );
    assert_eq!((&one["schedule"]["cron"], &one["last"]), (&"0 3 * * *".into(), &Value::Null));
    let next = one["schedule"]["next"].as_array().unwrap();
    assert!(next.len() == 3 && next[0] == one["next"], "{one}");
    assert!(one["next"].as_str().unwrap().ends_with("T03:00:00.000Z"), "{one}");

    let run = fixture.post(&format!("{SCHEDULES}/books/shop/run")).await;
    assert_eq!(
        (run.status, &run.body["status"], &run.body["job"]["project"]),
        (201, &"pending".into(), &"books".into())
    );
    assert_eq!(fixture.get(run.headers["location"].to_str().unwrap()).await.body, run.body);
    let last = list(fixture).await[0]["last"].clone();
    assert_eq!((&last["crawl"], &last["status"]), (&run.body["crawl"], &"pending".into()));
    let all = JobPage { before: None, max: 10 };
    let jobs = fixture.backend.jobs.list(&JobFilter::default(), all).await.unwrap();
    assert!(jobs[0].new.is_scheduled, "it crawls as the schedule would");
}

async fn a_schedule_is_held_and_let_go_on(fixture: &Fixture) {
    deploy(fixture, "default", "shop").await;
    for (verb, paused) in [("pause", true), ("pause", true), ("resume", false), ("resume", false)] {
        let answer = fixture.post(&format!("{SCHEDULES}/default/shop/{verb}")).await;
        assert_eq!(answer.body, json!({ "project": "default", "spider": "shop", "paused": paused }));
        let one = list(fixture).await[0].clone();
        assert_eq!((&one["paused"], one["next"].is_null()), (&paused.into(), paused), "{one}");
    }
    for verb in ["pause", "resume", "run"] {
        for spider in ["default/none", "books/shop", "default/NO", "%2e%2e/shop"] {
            assert_eq!(fixture.post(&format!("{SCHEDULES}/{spider}/{verb}")).await.status, 404, "{spider}");
        }
    }
}

async fn a_schedule_that_only_workers_have_seen_is_held_too(fixture: &Fixture) {
    let (shop, schedules) = ("shop".parse().unwrap(), &fixture.backend.schedules);
    schedules.note(&shop, UnixMs(1)).await.unwrap();
    assert_eq!(list(fixture).await, json!([]), "nobody here knows when it is due");
    assert_eq!(fixture.post(&format!("{SCHEDULES}/default/shop/pause")).await.status, 200);
    assert_eq!(schedules.list().await.unwrap()[&shop], ScheduleState::Paused);
}

async fn who_may_only_look_changes_no_schedule(fixture: &Fixture) {
    deploy(fixture, "default", "shop").await;
    let viewer = |method, path: &str| fixture.send(fixture.request(method, path).bearer_auth(VIEWER));
    assert_eq!(viewer(Method::GET, SCHEDULES).await.status, 200);
    for verb in ["pause", "resume", "run"] {
        assert_eq!(
            viewer(Method::POST, &format!("{SCHEDULES}/default/shop/{verb}")).await.status,
            403,
            "{verb}"
        );
    }
    assert_eq!(list(fixture).await[0]["paused"], false);
}

async fn schedules_are_listed_a_page_at_a_time(fixture: &Fixture) {
    for (project, spider) in [("b", "one"), ("a", "two"), ("a", "one")] {
        deploy(fixture, project, spider).await;
    }
    deploy(fixture, "a", "three").await;
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = fixture.get(&format!("{SCHEDULES}?limit=1{cursor}")).await.body;
        let one = &page["schedules"][0];
        listed.push(format!("{}/{}", one["project"].as_str().unwrap(), one["spider"].as_str().unwrap()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(listed, ["a/three", "b/one"], "a version has all that its project has");
}

#[tokio::test]
async fn the_schedule_of_a_file_beside_the_api_is_listed_as_soon_as_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::embedded().await;
    let settings = Settings { spiders_dir: folder.path().to_owned(), ..Settings::default() };
    let backend = Backend { settings: Arc::new(settings), ..fixture.backend.clone() };
    let fixture = fixture.again_over(backend).await;
    assert_eq!(list(&fixture).await, json!([]));
    let text = "schedule = '0 3 * * *'\n[start]\nurls = ['http://a.example/']\n";
    fs::write(folder.path().join("shop.toml"), text).unwrap();
    let all = list(&fixture).await;
    assert_eq!((&all[0]["project"], &all[0]["spider"]), (&"default".into(), &"shop".into()));
    fs::remove_file(folder.path().join("shop.toml")).unwrap();
    assert_eq!(list(&fixture).await, json!([]));
}
