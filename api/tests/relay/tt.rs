//! Drones of task_tracker, which send what its client for Python sends, and nothing else.

use std::sync::Arc;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use trawl_api::Backend;
use trawl_common::frontier::crawl::CrawlStats;
use trawl_common::names::ProjectName;
use trawl_common::ports::{Access, LogPlace};
use trawl_common::project::{CloneUrl, HookSecret, ProjectSecret, SealedSecret, SealingKey, Source, Wanted};
use trawl_common::settings::{Secrets, Settings};
use trawl_common::time::UnixMs;
use trawl_testkit::servers::VirtualHost;

use crate::fixture::{LIMIT, Serving, eventually};
use crate::support;

const SECRET: &str = r#"{"CLIENT_ID":"s3cret"}"#;

/// A drone: its worker, as it keeps it in `worker.json`.
struct Drone {
    client: Client,
    url: String,
    id: String,
    secret: String,
    alias: String,
}

/// The status and the body of an answer.
type Answer = (StatusCode, Value);

impl Drone {
    /// Registers with an alias.
    async fn register(serving: &Serving, alias: &str) -> Self {
        let client = Client::builder().no_proxy().timeout(LIMIT).build().unwrap();
        let url = format!("http://{}/api/tt", serving.address);
        let mut drone = Self { client, url, id: "None".into(), secret: "None".into(), alias: String::new() };
        let (status, made) = drone.post("/worker/create", json!({ "alias": alias })).await;
        assert_eq!((status, &made["ok"]), (StatusCode::OK, &true.into()), "{made}");
        let worker = &made["content"]["worker"];
        drone.id = worker["id"].as_u64().unwrap().to_string();
        drone.secret = worker["secret"].as_str().unwrap().to_owned();
        drone.alias = worker["alias"].as_str().unwrap().to_owned();
        drone
    }

    /// Registers, and is approved for a project.
    async fn approved(serving: &Serving, alias: &str, project: &str) -> Self {
        let drone = Self::register(serving, alias).await;
        serving.allow(&drone.alias, project, Access::Assign).await;
        drone
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request
            .header("User-Agent", "tt_py_client1.0")
            .header("X-Worker-Id", &self.id)
            .header("X-Secret", &self.secret);
        let request = match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status();
        let bytes = response.bytes().await.unwrap();
        (status, if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() })
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, Some(body)).await
    }

    /// Returns the numbers of all projects.
    async fn projects(&self) -> Vec<u64> {
        let (status, listed) = self.get("/project/list").await;
        assert_eq!((status, &listed["ok"]), (StatusCode::OK, &true.into()), "{listed}");
        let projects = listed["content"]["projects"].as_array().unwrap().iter();
        projects.map(|project| project["id"].as_u64().unwrap()).collect()
    }

    /// Submits a task as the client does, with `null` for what a program leaves out.
    async fn submit(&self, project: u64, recipe: &str, more: Value) -> Answer {
        let mut body = json!({
            "project": project, "recipe": recipe, "priority": null, "max_assign_time": null, "hash_u64": null,
            "unique_str": null, "verification_count": null, "max_retries": null,
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.post("/task/submit", body).await
    }

    /// Asks for a task until there is one.
    async fn task(&self, project: u64) -> Value {
        let mut got = Value::Null;
        eventually(async || {
            let (status, answer) = self.get(&format!("/task/get/{project}")).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            got = answer["content"]["task"].clone();
            answer["ok"] == true
        })
        .await;
        got
    }

    async fn release(&self, task: &Value, result: u8) -> bool {
        let body = json!({ "task_id": task["id"], "result": result, "verification": 0 });
        let (status, answer) = self.post("/task/release", body).await;
        assert_eq!((status, &answer["ok"]), (StatusCode::OK, &true.into()), "{answer}");
        answer["content"]["updated"].as_bool().unwrap()
    }
}

/// An API with a key, a spider `artists` with a program, and its project `music`, whose code is in Git.
struct Music {
    serving: Serving,
    _folder: TempDir,
    _vhost: Option<VirtualHost>,
}

impl std::ops::Deref for Music {
    type Target = Serving;

    fn deref(&self) -> &Serving {
        &self.serving
    }
}

impl Music {
    /// Over a state file.
    async fn embedded() -> Self {
        Self::with_time("1h").await
    }

    /// Over a state file, with this time for a task.
    async fn with_time(time: &str) -> Self {
        let (backend, _) = support::state_file(|_| Arc::new(|_, _, _| unreachable!("no page is tried")));
        Self::over(backend, None, time).await
    }

    /// Over a fleet's servers.
    async fn fleet() -> Self {
        let fleet = support::fleet(|_| Arc::new(|_, _, _| unreachable!("no page is tried")));
        let (backend, _, _, vhost) = fleet.await;
        Self::over(backend, Some(vhost), "1h").await
    }

    async fn over(backend: Backend, vhost: Option<VirtualHost>, time: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spider = format!("[handler]\nrun = ['./run']\ntimeout = '{time}'\n[retry]\nbackoff = '100ms'\n");
        std::fs::write(folder.path().join("artists.toml"), spider).unwrap();
        std::fs::write(folder.path().join("key"), support::KEY).unwrap();
        let settings = Settings {
            spiders_dir: folder.path().to_owned(),
            secrets: Secrets { key_file: Some(folder.path().join("key")) },
            ..Settings::default()
        };
        let serving = Serving::over(Backend { settings: settings.into(), ..backend }, "127.0.0.1:0").await;
        let (projects, music): (_, ProjectName) = (&serving.backend.projects, "music".parse().unwrap());
        projects.create(&music).await.unwrap();
        projects.add_spider(&music, &"artists".parse().unwrap()).await.unwrap();
        let clone_url: CloneUrl = "https://git.example/me/music.git".parse().unwrap();
        let source = Source { clone_url: clone_url.clone(), branch: "main".parse().unwrap() };
        projects.set_source(&music, Some(&source)).await.unwrap();
        projects.want(&music, &Wanted { clone_url, commit: "7".repeat(40).parse().unwrap() }).await.unwrap();
        let (key, secret): (SealingKey, _) =
            (support::KEY.parse().unwrap(), ProjectSecret::from_json(SECRET.as_bytes()).unwrap());
        projects.set_secret(&music, Some(&SealedSecret::seal(&secret, &music, &key))).await.unwrap();
        Self { serving, _folder: folder, _vhost: vhost }
    }
}

/// Makes a test of each promise for each engine.
macro_rules! promises {
    ($($promise:ident)*) => {
        mod embedded {
            $(#[tokio::test] async fn $promise() { super::$promise(super::Music::embedded().await).await; })*
        }
        mod fleet {
            $(#[tokio::test] async fn $promise() { super::$promise(super::Music::fleet().await).await; })*
        }
    };
}

promises! {
    a_drone_does_a_task_from_its_submission_to_its_end
    a_task_that_fails_is_tried_again_as_often_as_it_says_and_then_is_a_dead_letter
    a_task_that_a_drone_skips_is_for_others_and_does_not_count_as_failed
    a_drone_whose_access_is_taken_back_loses_what_it_has
}

/// Returns the stats of the only crawl.
async fn crawl(serving: &Serving) -> CrawlStats {
    let mut crawls = serving.backend.stats.crawls().await.unwrap();
    assert_eq!(crawls.len(), 1, "{crawls:?}");
    crawls.remove(0)
}

async fn a_drone_does_a_task_from_its_submission_to_its_end(serving: Music) {
    let drone = Drone::register(&serving, "worker alias").await;
    assert_eq!(drone.alias, "worker-alias");
    let projects = drone.projects().await;
    let [project] = projects[..] else { panic!("{projects:?}") };
    let asked = json!({ "project": project, "assign": true, "submit": false });
    assert_eq!(drone.post("/project/request_access", asked).await, (StatusCode::OK, json!({ "ok": true })));
    let (status, none) = drone.get(&format!("/task/get/{project}")).await;
    assert_eq!((status, &none["ok"]), (StatusCode::OK, &false.into()), "it waits to be approved: {none}");
    serving.allow("worker-alias", "music", Access::Assign).await;
    let (_, none) = drone.get(&format!("/task/get/{project}")).await;
    assert_eq!(none, json!({ "ok": false, "message": "No task available" }));

    let recipe = r#"[{"name": "Ä", "mbid": 7}]"#;
    let more = json!({ "priority": 2, "max_retries": 5, "max_assign_time": 3600, "verification_count": 1 });
    assert_eq!(drone.submit(project, recipe, more).await, (StatusCode::OK, json!({ "ok": true })));
    let task = drone.task(project).await;
    let of_project = &task["project"];
    for (key, value) in [
        ("recipe", json!(recipe)),
        ("retries", json!(0)),
        ("max_retries", json!(5)),
        ("priority", json!(2.0)),
        ("status", json!(1)),
        ("verification_count", json!(1)),
        ("max_assign_time", json!(3600)),
    ] {
        assert_eq!(task[key], value, "{key}: {task}");
    }
    assert!(task["id"].is_u64() && task["assign_time"].is_u64(), "{task}");
    for (key, value) in [
        ("id", json!(project)),
        ("name", json!("music")),
        ("clone_url", json!("https://git.example/me/music.git")),
        ("git_repo", json!("me/music")),
        ("version", json!("7".repeat(40))),
        ("motd", json!("")),
        ("public", json!(false)),
    ] {
        assert_eq!(of_project[key], value, "{key}: {of_project}");
    }
    let (status, secret) = drone.get(&format!("/project/secret/{project}")).await;
    assert_eq!((status, &secret["content"]["secret"]), (StatusCode::OK, &SECRET.into()));

    let entry =
        json!({ "level": 3, "message": "no such artist", "timestamp": 1_559_393_394, "scope": "artists" });
    assert_eq!(drone.post("/log/error", entry).await, (StatusCode::NO_CONTENT, Value::Null));
    let logged = serving.backend.logs.before(LogPlace::END, 9).await.unwrap();
    assert!(format!("{logged:?}").contains("artists: no such artist"), "{logged:?}");

    assert!(drone.release(&task, 0).await);
    assert!(!drone.release(&task, 0).await, "it has ended");
    let stats = crawl(&serving).await;
    assert_eq!((stats.counts.done, stats.pending), (1, 0));
    let (_, none) = drone.get(&format!("/task/get/{project}")).await;
    assert_eq!(none["ok"], false);
}

async fn a_task_that_fails_is_tried_again_as_often_as_it_says_and_then_is_a_dead_letter(serving: Music) {
    let drone = Drone::approved(&serving, "drone", "music").await;
    let project = drone.projects().await[0];
    drone.submit(project, "x", json!({ "max_retries": 1 })).await;
    for retries in [0, 1] {
        let task = drone.task(project).await;
        assert_eq!((&task["retries"], &task["recipe"]), (&json!(retries), &json!("x")));
        assert!(drone.release(&task, 1).await);
    }
    let stats = crawl(&serving).await;
    assert_eq!((stats.counts.failed, stats.pending), (1, 0));
    let failed = serving.backend.control.failed(&stats.crawl_ref(), 0).await.unwrap().failed;
    assert!(failed[0].1.cause.error.contains("result 1") && failed[0].1.cause.attempts == 2, "{failed:?}");
}

async fn a_task_that_a_drone_skips_is_for_others_and_does_not_count_as_failed(serving: Music) {
    let (drone, other) =
        (Drone::approved(&serving, "one", "music").await, Drone::approved(&serving, "two", "music").await);
    let project = drone.projects().await[0];
    drone.submit(project, "x", json!({})).await;
    let task = drone.task(project).await;
    assert!(drone.release(&task, 2).await);
    assert_eq!(other.task(project).await["retries"], 0);
}

#[tokio::test]
async fn tasks_go_to_ten_contexts_each_to_one() {
    let serving = Music::embedded().await;
    let drone = Drone::approved(&serving, "drone", "music").await;
    let project = drone.projects().await[0];
    let requests: Vec<Value> =
        (0..10).map(|number| json!({ "project": project, "recipe": format!("{number}") })).collect();
    let (status, _) = drone.post("/task/bulk_submit", json!({ "requests": requests })).await;
    assert_eq!(status, StatusCode::OK);
    let tasks = futures::future::join_all((0..10).map(|_| drone.task(project))).await;
    let mut recipes: Vec<&str> = tasks.iter().map(|task| task["recipe"].as_str().unwrap()).collect();
    recipes.sort_unstable();
    assert_eq!(recipes, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    for task in &tasks {
        assert!(drone.release(task, 0).await);
    }
    assert_eq!(crawl(&serving).await.counts.done, 10);
}

#[tokio::test]
async fn a_drone_that_asks_all_the_time_leaves_tasks_to_others() {
    let serving = Music::embedded().await;
    let greedy = Arc::new(Drone::approved(&serving, "greedy", "music").await);
    let other = Drone::approved(&serving, "other", "music").await;
    let project = other.projects().await[0];
    other.submit(project, "held", json!({})).await;
    let held = other.task(project).await;
    let mut asking = JoinSet::new();
    for _ in 0..24 {
        let greedy = Arc::clone(&greedy);
        asking.spawn(async move { greedy.get(&format!("/task/get/{project}")).await.1 });
    }
    for _ in 0..20 {
        assert_eq!(asking.join_next().await.unwrap().unwrap()["ok"], false, "four wait");
    }
    let requests: Vec<Value> =
        (0..6).map(|task| json!({ "project": project, "recipe": format!("{task}") })).collect();
    other.post("/task/bulk_submit", json!({ "requests": requests })).await;
    let task = other.task(project).await;
    assert!(other.release(&task, 0).await && other.release(&held, 0).await);
}

#[tokio::test]
async fn a_hash_makes_tasks_one_and_without_it_each_is_its_own() {
    let serving = Music::embedded().await;
    let drone = Drone::approved(&serving, "drone", "music").await;
    let project = drone.projects().await[0];
    for (more, statuses) in [
        (json!({}), [200, 200]),
        (json!({ "unique_str": "doc 1" }), [200, 400]),
        (json!({ "hash_u64": u64::MAX }), [200, 400]),
        (json!({ "hash_u64": 0, "unique_str": "" }), [200, 200]),
        (json!({ "verification_count": 2 }), [400, 400]),
        (json!({ "recipe": "" }), [400, 400]),
        (json!({ "max_retries": -1 }), [400, 400]),
        (json!({ "project": project + 1 }), [404, 404]),
        (json!({ "project": "music" }), [200, 200]),
    ] {
        for status in statuses {
            let (answered, answer) = drone.submit(project, "x", more.clone()).await;
            assert_eq!(answered.as_u16(), status, "{more}: {answer}");
            assert_eq!(answer["ok"], status == 200);
        }
    }
}

#[tokio::test]
async fn a_task_of_which_a_drone_says_nothing_is_tried_again_after_its_time() {
    let serving = Music::with_time("1s").await;
    let drone = Drone::approved(&serving, "drone", "music").await;
    let project = drone.projects().await[0];
    drone.submit(project, "x", json!({})).await;
    let first = drone.task(project).await;
    let again = drone.task(project).await;
    assert_eq!((&first["retries"], &again["retries"]), (&json!(0), &json!(1)));
    assert!(!drone.release(&first, 0).await && drone.release(&again, 0).await);
}

async fn a_drone_whose_access_is_taken_back_loses_what_it_has(serving: Music) {
    let (drone, other) =
        (Drone::approved(&serving, "one", "music").await, Drone::approved(&serving, "two", "music").await);
    let project = drone.projects().await[0];
    drone.submit(project, "x", json!({})).await;
    let task = drone.task(project).await;
    serving.backend.runners.revoke(&"one".parse().unwrap(), None).await.unwrap();
    assert_eq!(other.task(project).await["recipe"], "x");
    assert!(!drone.release(&task, 0).await);
}

#[tokio::test]
async fn a_drone_that_lies_gets_nothing_and_ends_nothing() {
    let serving = Music::embedded().await;
    let honest = Drone::approved(&serving, "honest", "music").await;
    let project = honest.projects().await[0];
    honest.submit(project, "x", json!({})).await;
    let task = honest.task(project).await;
    let liar = Drone::register(&serving, "honest").await;
    assert_ne!(liar.alias, "honest", "a name belongs to the secret that took it first");

    let (_, listed) = liar.get("/project/list").await;
    let seen = listed.to_string();
    assert!(!seen.contains("music") && !seen.contains("git.example") && !seen.contains("777"), "{seen}");
    assert!(!liar.release(&task, 0).await, "the task is another's");
    for (path, status) in [
        (format!("/project/secret/{project}"), 404),
        (format!("/project/get/{project}"), 404),
        (format!("/worker/get/{}", honest.id), 404),
        ("/project/secret/none".to_owned(), 404),
    ] {
        let (answered, answer) = liar.send(Method::GET, &path, None).await;
        assert_eq!(answered.as_u16(), status, "{path}: {answer}");
        assert!(!answer.to_string().contains("s3cret"));
    }
    assert_eq!(liar.submit(project, "y", json!({})).await.0, StatusCode::NOT_FOUND);
    serving.allow(&liar.alias, "music", Access::Submit).await;
    assert_eq!(liar.submit(project, "y", json!({})).await.0, StatusCode::OK);
    let (status, none) = liar.get(&format!("/task/get/{project}")).await;
    assert_eq!((status, &none["ok"]), (StatusCode::OK, &false.into()));
    assert_eq!(liar.get(&format!("/project/secret/{project}")).await.0, StatusCode::FORBIDDEN);

    let thief = Drone { secret: liar.secret.clone(), id: honest.id.clone(), ..liar };
    assert_eq!(thief.get("/project/list").await.0, StatusCode::UNAUTHORIZED);
    for (result, body) in
        [(9, json!({ "task_id": task["id"], "result": 9 })), (0, json!({ "task_id": -1, "result": 0 }))]
    {
        let (status, answer) = honest.post("/task/release", body).await;
        assert_eq!((status, &answer["ok"]), (StatusCode::BAD_REQUEST, &false.into()), "{result}");
    }
    assert!(honest.release(&task, 0).await, "nothing of this ended the task");
}

#[tokio::test]
async fn a_page_of_another_site_calls_in_vain() {
    let serving = Music::embedded().await;
    let client = Client::builder().no_proxy().build().unwrap();
    let call = client.post(format!("http://{}/api/tt/worker/create", serving.address));
    let call = call.header("Origin", "https://evil.example").body("{\"alias\": \"x\"}");
    assert_eq!(call.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(serving.backend.runners.runners().await.unwrap(), []);
}

#[tokio::test]
async fn strangers_that_guess_are_slowed_down_and_told_for_how_long() {
    let serving = Music::embedded().await;
    let drone = Drone::register(&serving, "drone").await;
    let guess = Drone { secret: "A".repeat(44), id: "7".into(), ..drone };
    let mut slowed = Value::Null;
    for _ in 0..20 {
        let (status, answer) = guess.get("/project/list").await;
        match status {
            StatusCode::TOO_MANY_REQUESTS => slowed = answer,
            status => assert_eq!(status, StatusCode::UNAUTHORIZED),
        }
    }
    assert!(slowed["rate_limit_delay"].as_f64().is_some_and(|delay| delay > 0.0), "{slowed}");
}

/// Tells of a push, as Gogs does.
async fn push(serving: &Serving, secret: &HookSecret, body: &Value) -> StatusCode {
    let body = body.to_string();
    let signature = secret.sign(body.as_bytes());
    let client = Client::builder().no_proxy().timeout(LIMIT).build().unwrap();
    let call = client.post(format!("http://{}/api/tt/git/receivehook", serving.address));
    let call = call.header("X-Gogs-Event", "push").header("X-Gogs-Signature", signature);
    call.header("Content-Type", "application/json").body(body).send().await.unwrap().status()
}

#[tokio::test]
async fn a_push_to_a_repository_is_heard_for_the_project_that_has_signed_it() {
    let serving = Music::embedded().await;
    let (projects, music): (_, ProjectName) = (&serving.backend.projects, "music".parse().unwrap());
    let created = projects.project(&music).await.unwrap().unwrap().created;
    let key: SealingKey = support::KEY.parse().unwrap();
    let secret = HookSecret::new(&key, &music, created);
    let of = |url: &str, branch: &str| {
        json!({ "ref": format!("refs/heads/{branch}"), "after": "1".repeat(40), "repository": {
            "full_name": "me/music", "clone_url": url, "ssh_url": "git@git.example:me/music.git" } })
    };
    let own = of("https://git.example/me/music.git", "main");
    let wanted = async || projects.project(&music).await.unwrap().unwrap().wanted.unwrap().commit;
    assert_eq!(
        push(&serving, &HookSecret::new(&key, &music, UnixMs(7)), &own).await,
        StatusCode::UNAUTHORIZED
    );
    let elsewhere = of("https://git.example/me/films.git", "main");
    assert_eq!(push(&serving, &secret, &elsewhere).await, StatusCode::UNAUTHORIZED);
    let branch = of("https://git.example/me/music.git", "other");
    assert_eq!(push(&serving, &secret, &branch).await, StatusCode::OK);
    assert_eq!(wanted().await.as_str(), "7".repeat(40));
    assert_eq!(push(&serving, &secret, &own).await, StatusCode::OK);
    assert_eq!(wanted().await.as_str(), support::COMMIT);
}
