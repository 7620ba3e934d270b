//! Submitted tasks: one or many, all or none.

use std::fs;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{Task, TaskKey};
use trawl_common::logs::{LogEntry, LogLevel, TaskEnd};
use trawl_common::names::CrawlRef;
use trawl_common::settings::Settings;
use trawl_common::task::NewTask;

use crate::fixture::{Answer, Fixture, VIEWER};

promises! {
    tasks_are_taken_once_and_their_crawl_ends_with_them
    a_task_comes_alone_in_a_list_or_on_a_line
    whoever_asks_again_for_the_same_crawl_submits_nothing_twice
    tasks_go_to_one_crawl_from_many_at_once
    a_deployed_spider_takes_tasks
    of_a_request_with_one_mistake_no_task_is_taken_and_its_place_is_named
    tasks_need_a_spider_with_a_program_and_a_crawl_of_it_that_is_not_over
    the_keys_of_more_than_a_thousand_tasks_are_not_told
    who_may_only_look_submits_nothing
    tasks_that_are_not_done_are_listed_with_where_they_are
    what_a_request_says_of_its_tasks_counts_for_those_that_do_not_say_it
    recipes_in_a_list_are_as_long_as_one_asks_for
    tasks_that_run_are_found_by_what_their_worker_says
    tasks_are_cancelled_by_their_keys_or_with_all_of_their_crawl
    a_crawl_tells_what_it_has_of_tasks
    tasks_that_have_ended_are_listed_the_last_first
    a_wait_goes_on_until_the_tasks_are_done_that_the_crawl_handed_to_other_spiders
}

const TASKS: &str = "/api/v1/tasks";
const LINES: &str = "application/x-ndjson";
const PROGRAM: &str = "[handler]\nrun = ['true']\n";

/// An API beside the files of two spiders, one with a program and one without.
async fn with_spiders(fixture: &Fixture) -> (Fixture, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("payments.toml"), PROGRAM).unwrap();
    fs::write(folder.path().join("plain.toml"), "[start]\nurls = ['http://a.example/']\n").unwrap();
    fs::write(folder.path().join("broken.toml"), "[handler]\nrunn = 7\n").unwrap();
    let settings = Settings { spiders_dir: folder.path().to_owned(), ..Settings::default() };
    (fixture.also_with(settings).await, folder)
}

async fn submit(api: &Fixture, query: &str, media_type: &str, body: impl Into<reqwest::Body>) -> Answer {
    let request = api.operator(Method::POST, &format!("{TASKS}?{query}"));
    api.send(request.header("content-type", media_type).body(body)).await
}

async fn submit_json(api: &Fixture, query: &str, body: &Value) -> Answer {
    submit(api, query, "application/json", body.to_string()).await
}

fn counts(answer: &Answer) -> (u64, u64) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    (answer.body["new"].as_u64().unwrap(), answer.body["known"].as_u64().unwrap())
}

fn detail(answer: &Answer) -> &str {
    answer.body["detail"].as_str().unwrap()
}

async fn stats(api: &Fixture, crawl: &str) -> Value {
    api.get(&format!("/api/v1/crawls/{crawl}")).await.body
}

async fn tasks_are_taken_once_and_their_crawl_ends_with_them(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    let body = json!(["one", {"recipe": "two", "unique": "2", "priority": 1.5, "retries": 0}, "one"]);
    let answer = submit_json(&api, "spider=payments", &body).await;
    assert_eq!(counts(&answer), (2, 1));
    let keys: Vec<&str> =
        answer.body["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    let two: TaskKey = keys[1].parse().unwrap();
    let expected = NewTask::from_line(&body[1].to_string()).unwrap();
    assert_eq!(
        (keys.len(), keys[0], &two),
        (3, keys[2], &TaskKey::new(&"payments".parse().unwrap(), &expected))
    );
    let id = answer.body["crawl"].as_str().unwrap();
    let crawl = CrawlRef { id: id.parse().unwrap(), spider: "payments".parse().unwrap() };
    let kept = api.backend.control.work(&crawl, &two.into()).await.unwrap();
    assert_eq!(kept, Some(Task::new(&crawl.spider, expected).into()));
    assert_eq!(stats(&api, id).await["pending"], 2);
    api.worker().end_tasks(2, Terminal::Done).await;
    let over = stats(&api, id).await;
    assert_eq!((&over["status"], &over["done"]), (&"finished".into(), &2.into()), "{over}");
    let again = submit_json(&api, "spider=payments", &body).await;
    assert_eq!(counts(&again), (0, 3), "the spider has had them");
}

async fn a_task_comes_alone_in_a_list_or_on_a_line(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    let own = json!({"recipe": "b", "spider": "payments"});
    for (query, media_type, body) in [
        ("spider=payments", "application/json; charset=utf-8", json!("a").to_string()),
        ("", "application/json", own.to_string()),
        ("spider=payments", LINES, "\"c\"".to_owned()),
        ("spider=payments", "application/jsonl", "\r\n\n  \"d\" \r\n\n".to_owned()),
    ] {
        let answer = submit(&api, query, media_type, body.clone()).await;
        assert_eq!((counts(&answer), &answer.body["spider"]), ((1, 0), &"payments".into()), "{body}");
    }
    let answer = submit(&api, "", LINES, format!("{own}\n\"e\"\n")).await;
    assert_eq!(counts(&answer), (1, 1), "the first one names the spider of all");
}

async fn whoever_asks_again_for_the_same_crawl_submits_nothing_twice(fixture: &Fixture) {
    let (api, folder) = with_spiders(fixture).await;
    fs::write(folder.path().join("daily.toml"), format!("recrawl = 'always'\n{PROGRAM}")).unwrap();
    let body = json!(["one", "two"]);
    for (crawl, expected) in [("first", (2, 0)), ("first", (0, 2)), ("second", (2, 0))] {
        let answer = submit_json(&api, &format!("spider=daily&crawl={crawl}"), &body).await;
        assert_eq!((counts(&answer), &answer.body["crawl"]), (expected, &crawl.into()));
        if stats(&api, "first").await["pending"] == 2 && expected == (0, 2) {
            api.worker().end_tasks(2, Terminal::Done).await;
        }
    }
}

async fn tasks_go_to_one_crawl_from_many_at_once(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    let answers = join_all((0..8).map(|number| {
        let body = json!([format!("one of {number}"), "one of all"]);
        let api = &api;
        async move { submit_json(api, "spider=payments&crawl=mine", &body).await }
    }))
    .await;
    let new: u64 = answers.iter().map(|answer| counts(answer).0).sum();
    assert_eq!((new, &stats(&api, "mine").await["pending"]), (9, &9.into()));
}

async fn a_deployed_spider_takes_tasks(fixture: &Fixture) {
    let path = "/api/v1/projects/default/versions?spider=deployed";
    let deployed = fixture.send(fixture.operator(Method::POST, path).body(PROGRAM)).await;
    assert_eq!(deployed.status, 201, "{}", deployed.body);
    let answer = submit_json(fixture, "spider=deployed&crawl=mine", &json!("one")).await;
    assert_eq!(counts(&answer), (1, 0));
    let crawl = CrawlRef { id: "mine".parse().unwrap(), spider: "deployed".parse().unwrap() };
    let text = fixture.backend.stats.spider_text(&crawl).await.unwrap();
    assert_eq!(text.as_ref().map(|text| text.as_str()), Some(PROGRAM));
}

async fn of_a_request_with_one_mistake_no_task_is_taken_and_its_place_is_named(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    let many = vec!["\"x\""; 10_001];
    for (media_type, body, named) in [
        (LINES, "\"a\"\n\nno JSON\n\"b\"", "line 3: not JSON"),
        (LINES, "\"a\"\n{\"recipe\": \"b\", \"spider\": \"other\"}", "line 2: it is for the spider other"),
        (LINES, "\"a\"\n[\"b\"]", "line 2: a task is"),
        (LINES, "\n \r\n", "1 to 10000 tasks"),
        (LINES, &many.join("\n"), "not 10001"),
        ("application/json", "[\"a\", {\"recipe\": [1]}]", "task 2: `recipe` is text"),
        ("application/json", "[\"a\", {\"recipe\": \"b\", \"url\": \"c\"}]", "task 2: a task has no `url`"),
        ("application/json", "[\"a\", \"\"]", "task 2: the recipe is empty"),
        ("application/json", "7", "task 1: a task is"),
        ("application/json", "[]", "1 to 10000 tasks"),
        ("application/json", "[\"a\"] \"b\"", "body: trailing characters"),
        ("application/json", "", "body: EOF"),
        ("application/json", &"[".repeat(100_000), "recursion limit"),
    ] {
        let answer = submit(&api, "spider=payments", media_type, body.to_owned()).await;
        assert_eq!((answer.status, detail(&answer).contains(named)), (400, true), "{named}: {}", answer.body);
    }
    let answer = submit(&api, "spider=payments", LINES, b"\"a\"\n\"\xff\"".to_vec()).await;
    assert_eq!((answer.status, detail(&answer).starts_with("line 2: not UTF-8")), (400, true));
    assert_eq!(submit(&api, "spider=payments", "text/plain", "\"a\"").await.status, 415);
    assert_eq!(submit(&api, "spider=payments", LINES, vec![b' '; 1024 * 1024 + 1]).await.status, 413);
    assert_eq!(api.get("/api/v1/crawls").await.body["crawls"], json!([]));
}

async fn tasks_need_a_spider_with_a_program_and_a_crawl_of_it_that_is_not_over(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    fixture.crawl("of-another", "plain", 1).await;
    submit_json(&api, "spider=payments&crawl=over", &json!("one")).await;
    assert_eq!(api.post("/api/v1/crawls/over/cancel").await.status, 200);
    let asked = api.post_json("/api/v1/crawls", &json!({"spider": "payments"})).await;
    let pending = format!("spider=payments&crawl={}", asked.body["crawl"].as_str().unwrap_or_default());
    for (query, status, named) in [
        ("", 400, "say in the query or in the first task"),
        ("spider=UPPER", 400, "UPPER"),
        ("spider=payments&project=x", 400, "project"),
        ("spider=plain", 400, "no [handler]"),
        ("spider=broken", 400, "runn"),
        ("spider=nowhere", 404, "'nowhere' not found"),
        ("spider=payments&crawl=adhoc.payments", 400, "never ends"),
        ("spider=payments&crawl=of-another", 409, "of the spider plain"),
        ("spider=payments&crawl=over", 409, "over"),
        (&pending, 409, "is pending"),
    ] {
        let answer = submit_json(&api, query, &json!("two")).await;
        assert_eq!(
            (answer.status, detail(&answer).contains(named)),
            (status, true),
            "{query}: {}",
            answer.body
        );
    }
    assert_eq!(stats(&api, "over").await["admitted"], 1);
}

async fn the_keys_of_more_than_a_thousand_tasks_are_not_told(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    for (count, are_told) in [(1000, true), (1001, false)] {
        let lines: String = (0..count).map(|number| format!("\"{count} {number}\"\n")).collect();
        let answer = submit(&api, "spider=payments&crawl=mine", LINES, lines).await;
        assert_eq!((counts(&answer), answer.body["keys"].is_array()), ((count, 0), are_told));
    }
}

async fn who_may_only_look_submits_nothing(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    let request = api.request(Method::POST, &format!("{TASKS}?spider=payments")).bearer_auth(VIEWER);
    let answer = api.send(request.header("content-type", "application/json").body("\"one\"")).await;
    assert_eq!(answer.status, 403);
    assert_eq!(api.get("/api/v1/crawls").await.body["crawls"], json!([]));
}

async fn tasks_that_are_not_done_are_listed_with_where_they_are(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    let tasks: Vec<String> = (0..700).map(|number| format!("recipe {number}")).collect();
    let answer = submit_json(&api, "spider=payments&crawl=many", &json!(tasks)).await;
    let key = answer.body["keys"][7].as_str().unwrap().to_owned();
    let (mut found, mut cursor) = (std::collections::BTreeSet::new(), String::new());
    loop {
        let page = api.get(&format!("{TASKS}?crawl=many&place=waiting{cursor}")).await.body;
        for task in page["tasks"].as_array().unwrap() {
            assert_eq!((&task["place"], &task["attempts"]), (&"waiting".into(), &0.into()), "{task}");
            found.insert(task["recipe"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, tasks.into_iter().collect());
    let one = api.get(&format!("{TASKS}/{key}")).await;
    assert_eq!(
        (one.status, &one.body["recipe"], &one.body["crawl"]),
        (200, &"recipe 7".into(), &"many".into())
    );
    for nothing in ["task:0123456789abcdef0123456789abcdef", "x"] {
        assert_eq!(api.get(&format!("{TASKS}/{nothing}")).await.status, 404);
    }
    assert_eq!(api.get(&format!("{TASKS}?crawl=none")).await.status, 404);
    assert_eq!(api.get(&format!("{TASKS}?place=nowhere")).await.status, 400);
}

async fn what_a_request_says_of_its_tasks_counts_for_those_that_do_not_say_it(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    let body = json!(["one", {"recipe": "two", "priority": -1, "retries": 0}]);
    let answer = submit_json(&api, "spider=payments&priority=5.5&retries=2", &body).await;
    assert_eq!(counts(&answer), (2, 0));
    for (key, priority, retries) in [(0, 5.5, 2), (1, -1.0, 0)] {
        let key = answer.body["keys"][key].as_str().unwrap();
        let task = api.get(&format!("{TASKS}/{key}")).await.body;
        assert_eq!(
            (task["priority"].as_f64(), task["retries"].as_u64()),
            (Some(priority), Some(retries)),
            "{task}"
        );
    }
    for wrong in ["priority=high", "retries=-1", "retries=1000001", "priority=inf"] {
        let answer = submit_json(&api, &format!("spider=payments&{wrong}"), &json!("three")).await;
        let name = wrong.split('=').next().unwrap();
        assert_eq!((answer.status, detail(&answer).contains(name)), (400, true), "{wrong}: {}", answer.body);
    }
}

async fn recipes_in_a_list_are_as_long_as_one_asks_for(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    submit_json(&api, "spider=payments", &json!({"recipe": "\u{e4}".repeat(300_000), "unique": "1"})).await;
    for (query, bytes) in [("?recipe_bytes=0", 0), ("?recipe_bytes=5", 4), ("", 600_000)] {
        let task = &api.get(&format!("{TASKS}{query}")).await.body["tasks"][0];
        let recipe = task["recipe"].as_str().unwrap();
        assert_eq!(
            (recipe.len(), &task["recipe_bytes"], &task["unique"]),
            (bytes, &600_000.into(), &"1".into())
        );
    }
}

async fn tasks_that_run_are_found_by_what_their_worker_says(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    submit_json(&api, "spider=payments&crawl=mine", &json!(["one", "two", "three"])).await;
    let worker = api.worker();
    let begun = worker.begin_tasks(2).await;
    let running = api.get(&format!("{TASKS}?place=running")).await.body;
    let tasks = running["tasks"].as_array().unwrap();
    assert_eq!((tasks.len(), running["next"].is_null()), (2, true), "{running}");
    assert!(tasks.iter().all(|task| task["worker"] == worker.name.as_str() && task["since"].is_string()));
    let workers = api.get("/api/v1/workers").await.body;
    assert_eq!(workers["workers"][0]["running"].as_object().unwrap().len(), 2, "{workers}");
    worker.end(begun, Terminal::Done).await;
    let ended = api.get(&format!("{TASKS}?place=running")).await.body;
    assert_eq!(ended["tasks"], json!([]), "what a worker said of them is old");
}

async fn tasks_are_cancelled_by_their_keys_or_with_all_of_their_crawl(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    let tasks: Vec<String> = (0..700).map(|number| format!("recipe {number}")).collect();
    let answer = submit_json(&api, "spider=payments&crawl=mine", &json!(tasks)).await;
    let cancel = async |body: Value| api.post_json("/api/v1/tasks/cancel", &body).await;
    let key = &answer.body["keys"][0];
    for (body, cancelled) in [
        (json!({"tasks": [key], "crawl": "mine"}), 1),
        (json!({"tasks": [key]}), 0),
        (json!({"tasks": [answer.body["keys"][1], answer.body["keys"][2]]}), 2),
        (json!({"crawl": "mine"}), 697),
    ] {
        let answer = cancel(body.clone()).await;
        assert_eq!((answer.status, &answer.body["cancelled"]), (200, &cancelled.into()), "{body}");
        assert!(answer.body["next"].is_null());
    }
    assert_eq!(stats(&api, "mine").await["cancelled"], 700);
    for (body, status) in [
        (json!({}), 400),
        (json!({"tasks": []}), 400),
        (json!({"tasks": ["x"]}), 400),
        (json!({"crawl": "mine", "cursor": "x"}), 400),
        (json!({"crawl": "none"}), 404),
    ] {
        assert_eq!(cancel(body.clone()).await.status, status, "{body}");
    }
    let viewer = api.request(Method::POST, "/api/v1/tasks/cancel").bearer_auth(VIEWER);
    let viewer = viewer.header("content-type", "application/json").body("{\"crawl\": \"mine\"}");
    assert_eq!(api.send(viewer).await.status, 403);
}

async fn a_crawl_tells_what_it_has_of_tasks(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    fixture.crawl("pages", "plain", 2).await;
    submit_json(&api, "spider=payments&crawl=mine", &json!(["one", "two"])).await;
    api.worker().end_tasks(1, Terminal::Failed).await;
    let of = async |path: &str| api.get(&format!("/api/v1/crawls/{path}")).await.body;
    let tasks = &of("mine/hosts").await["tasks"];
    assert_eq!((&tasks["admitted"], &tasks["failed"], &tasks["pending"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!(of("pages/hosts").await["tasks"]["admitted"], 0);
    assert!(of("pages/hosts?limit=1").await["tasks"].is_null(), "other hosts may follow");
}

async fn a_wait_goes_on_until_the_tasks_are_done_that_the_crawl_handed_to_other_spiders(fixture: &Fixture) {
    let (api, _folder) = with_spiders(fixture).await;
    submit_json(&api, "spider=payments&crawl=mine", &json!(["first"])).await;
    let worker = api.worker();
    worker.hand_on("plain", "second").await;
    worker.hand_on("third", "third").await;
    let mine = api.get("/api/v1/crawls/mine?wait=50ms").await.body;
    let state =
        |crawl: &Value| (crawl["status"].clone(), crawl["over"].clone(), crawl["handed_pending"].clone());
    assert_eq!(state(&mine), ("finished".into(), false.into(), 1.into()), "{mine}");
    let listed = async || {
        let listed = api.get("/api/v1/crawls?spider=payments").await.body;
        state(&listed["crawls"][0])
    };
    assert_eq!(listed().await, state(&mine));
    let (waited, ()) =
        tokio::join!(api.get("/api/v1/crawls/mine?wait=15s"), worker.end_tasks(1, Terminal::Done));
    assert_eq!(state(&waited.body), ("finished".into(), true.into(), 0.into()), "{}", waited.body);
    assert_eq!(listed().await, state(&waited.body));
}

async fn tasks_that_have_ended_are_listed_the_last_first(fixture: &Fixture) {
    let entry = |number: u64| {
        let outcome = if number == 2 { "failed" } else { "done" };
        let ended = TaskEnd {
            outcome: outcome.to_owned(),
            took_ms: Some(1_250),
            attempts: 1,
            items: number,
            recipe: format!("recipe {number}"),
            recipe_bytes: 8,
        };
        let crawl = CrawlRef { id: "mine".parse().unwrap(), spider: "payments".parse().unwrap() };
        let error = if number == 2 { "no luck" } else { "" };
        let entry = LogEntry::new(&"w-1".parse().unwrap(), LogLevel::Info, error).in_crawl(&crawl);
        LogEntry { ended: Some(ended), ..entry.about(&format!("task:{number}")) }
    };
    let left_out = LogEntry::new(&"w-1".parse().unwrap(), LogLevel::Warn, "entries left out: 7");
    let entries: Vec<LogEntry> = (0..3).map(entry).chain([left_out]).collect();
    fixture.backend.ended_tasks.append(&entries).await.unwrap();
    let page = fixture.get(&format!("{TASKS}/ended?limit=3&spider=payments")).await.body;
    let task = &page["tasks"][0];
    for (name, value) in
        [("task", "task:2"), ("crawl", "mine"), ("spider", "payments"), ("outcome", "failed")]
    {
        assert_eq!(task[name], value, "{task}");
    }
    for (name, value) in [("error", "no luck"), ("worker", "w-1"), ("recipe", "recipe 2")] {
        assert_eq!(task[name], value, "{task}");
    }
    assert_eq!((&task["items"], &task["seconds"]), (&2.into(), &1.25.into()));
    assert!(page["next"].is_null() && page["tasks"][1]["error"].is_null(), "{page}");
    let page = fixture.get(&format!("{TASKS}/ended?limit=2&spider=payments")).await.body;
    let next = page["next"].as_str().unwrap();
    let rest = fixture.get(&format!("{TASKS}/ended?limit=2&spider=payments&cursor={next}")).await.body;
    assert_eq!((&rest["tasks"][0]["task"], rest["tasks"].as_array().unwrap().len()), (&"task:0".into(), 1));
    for (query, count) in [("task=task:1", 1), ("crawl=mine", 3), ("crawl=other", 0), ("spider=other", 0)] {
        let found = fixture.get(&format!("{TASKS}/ended?{query}")).await.body;
        assert_eq!(found["tasks"].as_array().unwrap().len(), count, "{query}");
    }
}
