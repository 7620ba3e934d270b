//! Submitted crawls: started, known before they start, waited for, cancelled.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::jobs::{Hold, Job, JobOutcome, NewJob};
use trawl_common::names::{CrawlRef, WorkerId};
use trawl_common::ports::{JobFilter, JobPage};
use trawl_common::request::NewRequest;

use crate::events::Events;
use crate::fixture::{Answer, Fixture};

promises! {
    a_crawl_that_is_asked_for_is_pending_and_stands_where_the_answer_says
    what_is_asked_for_is_what_a_worker_is_given
    a_crawl_of_urls_needs_no_spider
    a_crawl_may_begin_with_tasks_of_a_spider_with_a_program
    whoever_asks_again_with_the_same_key_is_given_the_same_crawl
    as_many_urls_as_a_body_holds_are_taken
    what_is_no_crawl_is_refused_by_its_name_and_asked_for_by_nobody
    crawls_that_have_not_begun_are_listed_with_the_others
    a_crawl_that_begins_between_two_pages_is_on_one_of_them
    one_answer_looks_at_a_bounded_number_of_crawls_and_all_together_have_each_once
    a_wait_outlasts_the_line_and_ends_with_the_crawl
    a_job_that_fails_before_its_crawl_begins_ends_the_wait_and_says_why
    a_crawl_whose_job_is_failing_is_not_over_before_that_says_why
    a_crawl_is_cancelled_out_of_the_line
    a_crawl_that_a_worker_is_about_to_begin_is_cancelled_by_that_worker
    a_crawl_that_runs_is_cancelled_with_its_job
    what_needs_a_crawl_that_has_begun_is_a_conflict_before
}

const CRAWLS: &str = "/api/v1/crawls";
const LONG: Duration = Duration::from_secs(600);

async fn ask(fixture: &Fixture, body: Value) -> Answer {
    fixture.post_json(CRAWLS, &body).await
}

async fn ask_with(fixture: &Fixture, key: &str, body: &Value) -> Answer {
    let request = fixture.operator(Method::POST, CRAWLS).header("content-type", "application/json");
    fixture
        .send(
            request
                .header("idempotency-key", HeaderValue::from_bytes(key.as_bytes()).unwrap())
                .body(body.to_string()),
        )
        .await
}

/// Submits a crawl, and returns it and its path.
async fn asked(fixture: &Fixture, spider: &str) -> (CrawlRef, String) {
    let answer = ask(fixture, json!({"spider": spider})).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let id = answer.body["crawl"].as_str().unwrap();
    (CrawlRef { id: id.parse().unwrap(), spider: spider.parse().unwrap() }, format!("{CRAWLS}/{id}"))
}

async fn jobs(fixture: &Fixture) -> Vec<Job> {
    let page = JobPage { before: None, max: 1000 };
    fixture.backend.jobs.list(&JobFilter::default(), page).await.unwrap()
}

fn runner() -> WorkerId {
    "runner".parse().unwrap()
}

/// Takes the next job as a worker.
async fn take(fixture: &Fixture) -> Job {
    fixture.backend.jobs.take(&runner(), LONG).await.unwrap().unwrap()
}

/// Takes the next job as a worker, and starts its crawl with `pages` pages.
async fn begin(fixture: &Fixture, pages: usize) -> CrawlRef {
    let CrawlRef { id, spider } = take(fixture).await.new.crawl();
    let crawl = fixture.crawl(id.as_str(), spider.as_str(), pages).await;
    fixture.backend.jobs.fed(&runner(), &id, None).await.unwrap();
    crawl
}

fn ids(page: &Value) -> Vec<String> {
    let crawls = page["crawls"].as_array().unwrap().iter();
    crawls.map(|crawl| crawl["crawl"].as_str().unwrap().to_owned()).collect()
}

async fn a_crawl_that_is_asked_for_is_pending_and_stands_where_the_answer_says(fixture: &Fixture) {
    let answer = ask(fixture, json!({"spider": "shop", "priority": 2.5, "project": "p"})).await;
    assert_eq!((answer.status, &answer.body["status"]), (201, &"pending".into()), "{}", answer.body);
    let job = &answer.body["job"];
    assert_eq!(
        (&job["status"], &job["priority"], &job["project"]),
        (&"pending".into(), &json!(2.5), &"p".into())
    );
    assert_eq!(
        (&job["started"], &job["worker"], &job["problem"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let location = answer.headers["location"].to_str().unwrap();
    assert_eq!(fixture.get(location).await.body, answer.body);
}

async fn what_is_asked_for_is_what_a_worker_is_given(fixture: &Fixture) {
    let body = json!({
        "spider": "shop",
        "urls": ["HTTP://one.example:80/a?utm_source=x&b=1#top", {"url": "HTTP://one.example:80/q", "body": "S3", "data": [1]}],
        "sources": ["http://one.example/sitemap.xml"],
        "arguments": {"area": "north"},
        "settings": {"recrawl": "12h", "max_pages": 7, "limit": 3},
    });
    ask(fixture, body).await;
    let new = take(fixture).await.new;
    assert_eq!((new.spider.as_str(), new.project.as_str(), new.priority.get()), ("shop", "default", 0.0));
    let request = r#"{"url": "http://one.example/q", "body": "S3", "data": [1]}"#;
    let request = NewRequest::from_json(request).unwrap();
    assert_eq!(new.urls, [NewRequest::get("http://one.example/a?b=1").into(), request.into()]);
    assert_eq!(new.sources, ["http://one.example/sitemap.xml".parse().unwrap()]);
    assert_eq!(new.arguments.get("area").map(|value| value.as_str()), Some("north"));
    assert_eq!(json!(new.settings), json!({"recrawl": "12h", "max_pages": 7, "limit": 3}));
}

async fn a_crawl_of_urls_needs_no_spider(fixture: &Fixture) {
    let answer = ask(fixture, json!({"urls": ["http://one.example/"]})).await;
    assert_eq!((answer.status, &answer.body["spider"]), (201, &"default".into()));
}

async fn whoever_asks_again_with_the_same_key_is_given_the_same_crawl(fixture: &Fixture) {
    let body = json!({"spider": "shop"});
    let answers = join_all((0..8).map(|_| ask_with(fixture, "one", &body))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    let crawls: BTreeSet<&str> =
        answers.iter().map(|answer| answer.body["crawl"].as_str().unwrap()).collect();
    assert_eq!((crawls.len(), jobs(fixture).await.len()), (1, 1));
    let quoted = ask_with(fixture, "\"one\"", &body).await;
    assert_eq!((quoted.status, &quoted.body["crawl"]), (200, &answers[0].body["crawl"]));
    assert_eq!(ask_with(fixture, "two", &body).await.status, 201);
    assert_eq!(ask(fixture, body.clone()).await.status, 201);
    for wrong in ["", "\"\"", "a b", "\u{e9}", &"x".repeat(256)] {
        let answer = ask_with(fixture, wrong, &body).await;
        let detail = answer.body["detail"].as_str().unwrap();
        assert_eq!((answer.status, detail.contains("Idempotency-Key")), (400, true), "{wrong}: {detail}");
    }
    let request = fixture.operator(Method::POST, CRAWLS).header("content-type", "application/json");
    let request = request.header("idempotency-key", "a").header("idempotency-key", "b");
    assert_eq!(fixture.send(request.body(body.to_string())).await.status, 400);
    assert_eq!(jobs(fixture).await.len(), 3);
}

async fn as_many_urls_as_a_body_holds_are_taken(fixture: &Fixture) {
    let path = "x".repeat(70);
    let urls: Vec<String> = (0..10_000).map(|number| format!("http://one.example/{number}/{path}")).collect();
    let answer = ask(fixture, json!({ "urls": urls })).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert_eq!(take(fixture).await.new.urls.len(), 10_000);
    let urls = vec!["http://a.example/"; 10_001];
    let answer = ask(fixture, json!({ "urls": urls })).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
}

async fn what_is_no_crawl_is_refused_by_its_name_and_asked_for_by_nobody(fixture: &Fixture) {
    let long = format!("http://one.example/{}", "x".repeat(9000));
    for (body, named) in [
        (r#"{}"#, "spider"),
        (r#"{"spider": "UPPER"}"#, "UPPER"),
        (r#"{"spider": "../etc"}"#, "../etc"),
        (r#"{"spider": "a", "project": ""}"#, "name"),
        (
            r#"{"spider": "a", "urls": ["http://one.example/", "ftp://two.example/"]}"#,
            "urls: `ftp://two.example/`",
        ),
        (r#"{"spider": "a", "sources": ["sitemap.xml"]}"#, "sources: `sitemap.xml`"),
        (&format!(r#"{{"urls": ["{long}"]}}"#), "urls"),
        (r#"{"spider": "a", "urls": "http://one.example/"}"#, "sequence"),
        (r#"{"spider": "a", "priority": 1e999}"#, "out of range"),
        (r#"{"spider": "a", "priority": NaN}"#, "column"),
        (r#"{"spider": "a", "priority": "high"}"#, "high"),
        (r#"{"spider": "a", "settings": {"max_pages": 0}}"#, "nonzero"),
        (r#"{"spider": "a", "settings": {"limit": -1}}"#, "-1"),
        (r#"{"spider": "a", "settings": {"recrawl": "often"}}"#, "often"),
        (r#"{"spider": "a", "settings": {"max_page": 1}}"#, "max_page"),
        (r#"{"spider": "a", "arguments": {"a b": "c"}}"#, "a b"),
        (r#"{"spider": "a", "arguments": {"a": 1}}"#, "integer"),
        (r#"{"spider": "a", "spyder": "a"}"#, "spyder"),
        (r#"{"spider": "a", "spider": "b"}"#, "duplicate"),
        (r#"["a"]"#, "object"),
    ] {
        let request = fixture.operator(Method::POST, CRAWLS).header("content-type", "application/json");
        let answer = fixture.send(request.body(body.to_owned())).await;
        let detail = answer.body["detail"].as_str().unwrap();
        assert_eq!((answer.status, detail.contains(named)), (400, true), "{body}: {detail}");
    }
    assert_eq!(jobs(fixture).await.len(), 0);
}

async fn crawls_that_have_not_begun_are_listed_with_the_others(fixture: &Fixture) {
    let (asked_for, _) = asked(fixture, "a").await;
    fixture.crawl("one", "b", 1).await;
    for (query, found) in [
        ("status=pending", vec![asked_for.id.as_str()]),
        ("status=pending&spider=b", vec![]),
        ("spider=a", vec![asked_for.id.as_str()]),
        ("status=running", vec!["one"]),
        ("job=true", vec![asked_for.id.as_str()]),
        ("job=false", vec!["one"]),
    ] {
        assert_eq!(ids(&fixture.get(&format!("{CRAWLS}?{query}")).await.body), found, "{query}");
    }
    let all = fixture.get(CRAWLS).await.body;
    let is_of_job: Vec<bool> =
        all["crawls"].as_array().unwrap().iter().map(|crawl| crawl["job"].is_object()).collect();
    assert_eq!(is_of_job.iter().filter(|is_of_job| **is_of_job).count(), 1);
    assert_eq!(is_of_job.len(), 2);
    begin(fixture, 1).await;
    assert_eq!(ids(&fixture.get(&format!("{CRAWLS}?status=pending")).await.body), [""; 0]);
    assert_eq!(ids(&fixture.get(CRAWLS).await.body).len(), 2, "each is there once");
}

async fn a_crawl_that_begins_between_two_pages_is_on_one_of_them(fixture: &Fixture) {
    asked(fixture, "a").await;
    for id in ["one", "two", "three"] {
        fixture.crawl(id, id, 1).await;
    }
    let all: BTreeSet<String> = ids(&fixture.get(CRAWLS).await.body).into_iter().collect();
    let mut page = fixture.get(&format!("{CRAWLS}?limit=1")).await.body;
    let mut listed = ids(&page);
    begin(fixture, 1).await;
    while let Some(next) = page["next"].as_str() {
        page = fixture.get(&format!("{CRAWLS}?limit=1&cursor={next}")).await.body;
        listed.extend(ids(&page));
    }
    assert_eq!(listed.len(), 4, "{listed:?}");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), all);
}

async fn one_answer_looks_at_a_bounded_number_of_crawls_and_all_together_have_each_once(fixture: &Fixture) {
    const MANY: usize = 2_100;
    fixture.crawl("first", "rare", 1).await;
    asked(fixture, "rare").await;
    for number in 0..MANY {
        let new = NewJob::new(format!("j{number}").parse().unwrap(), "usual".parse().unwrap());
        fixture.backend.jobs.submit(&new).await.unwrap();
    }
    fixture.crawl("last", "usual", 1).await;
    let pages = async |query: &str| {
        let mut page = fixture.get(&format!("{CRAWLS}?{query}")).await.body;
        let mut pages = vec![ids(&page)];
        while let Some(next) = page["next"].as_str() {
            page = fixture.get(&format!("{CRAWLS}?{query}&cursor={next}")).await.body;
            pages.push(ids(&page));
        }
        pages
    };
    let rare = pages("spider=rare").await;
    assert_eq!((rare.len(), rare[0].len(), rare.concat().len()), (2, 0, 2), "{rare:?}");
    let all = pages("limit=1000").await;
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000, MANY + 3 - 2000]);
    let different: BTreeSet<String> = all.concat().into_iter().collect();
    assert_eq!(different.len(), MANY + 3, "each is there once");
}

async fn a_wait_outlasts_the_line_and_ends_with_the_crawl(fixture: &Fixture) {
    let (_, path) = asked(fixture, "a").await;
    let mut events = Events::of_path(fixture, &path).await;
    let (name, crawl) = events.next().await.unwrap();
    assert_eq!((name.as_str(), &crawl["status"]), ("progress", &"pending".into()));
    assert_eq!(fixture.get(&format!("{path}?wait=10ms")).await.body["status"], "pending");
    let waiting = format!("{path}?wait=15s");
    let (waited, ()) = tokio::join!(fixture.get(&waiting), async {
        begin(fixture, 1).await;
        fixture.worker().end_all(1, Terminal::Done).await;
    });
    assert_eq!((&waited.body["status"], &waited.body["done"]), (&"finished".into(), &1.into()));
    let mut last = None;
    while let Some((name, crawl)) = events.next().await {
        last = Some((name, crawl["status"].clone()));
    }
    assert_eq!(last, Some(("end".to_owned(), "finished".into())));
}

async fn a_job_that_fails_before_its_crawl_begins_ends_the_wait_and_says_why(fixture: &Fixture) {
    let (crawl, path) = asked(fixture, "a").await;
    let outcome = JobOutcome::failed("there is no spiders/a.toml on this worker");
    let waiting = format!("{path}?wait=15s");
    let (waited, ()) = tokio::join!(fixture.get(&waiting), async {
        take(fixture).await;
        fixture.backend.jobs.end(&crawl.id, &outcome).await.unwrap();
    });
    let job = &waited.body["job"];
    assert_eq!((&waited.body["status"], &job["status"]), (&"cancelled".into(), &"failed".into()));
    assert_eq!(
        (&job["problem"], &job["worker"]),
        (&"there is no spiders/a.toml on this worker".into(), &"runner".into())
    );
    assert!(job["started"].is_string() && job["ended"].is_string(), "{job}");
    assert_eq!(ids(&fixture.get(&format!("{CRAWLS}?status=cancelled")).await.body), [crawl.id.as_str()]);
    assert_eq!(fixture.post(&format!("{path}/cancel")).await.status, 409);
}

async fn a_crawl_whose_job_is_failing_is_not_over_before_that_says_why(fixture: &Fixture) {
    let (crawl, path) = asked(fixture, "a").await;
    take(fixture).await;
    fixture.crawl(crawl.id.as_str(), "a", 0).await;
    let mut events = Events::of_path(fixture, &path).await;
    let (name, update) = events.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &update["status"], &update["job"]["status"]),
        ("progress", &"finished".into(), &"running".into())
    );
    assert_eq!(update["over"], false);
    fixture.backend.jobs.end(&crawl.id, &JobOutcome::failed("nothing could be read")).await.unwrap();
    let (name, update) = events.next().await.unwrap();
    assert_eq!((name.as_str(), &update["job"]["problem"]), ("end", &"nothing could be read".into()));
    assert_eq!((&update["status"], &update["over"]), (&"cancelled".into(), &true.into()));
    assert_eq!(ids(&fixture.get(&format!("{CRAWLS}?status=finished")).await.body), [""; 0]);
}

async fn a_crawl_is_cancelled_out_of_the_line(fixture: &Fixture) {
    let (_, path) = asked(fixture, "a").await;
    for _ in 0..2 {
        let answer = fixture.post(&format!("{path}/cancel")).await;
        assert_eq!((answer.status, &answer.body["status"]), (200, &"cancelled".into()), "{}", answer.body);
        assert_eq!(answer.body["job"]["status"], "cancelled");
    }
    assert_eq!(fixture.get(&format!("{path}?wait=15s")).await.body["status"], "cancelled", "at once");
    assert_eq!(fixture.backend.jobs.take(&runner(), LONG).await.unwrap(), None);
}

async fn a_crawl_that_a_worker_is_about_to_begin_is_cancelled_by_that_worker(fixture: &Fixture) {
    let (crawl, path) = asked(fixture, "a").await;
    take(fixture).await;
    let answer = fixture.post(&format!("{path}/cancel")).await;
    assert_eq!((answer.status, &answer.body["job"]["status"]), (200, &"running".into()), "{}", answer.body);
    let ids = std::slice::from_ref(&crawl.id);
    assert_eq!(fixture.backend.jobs.extend(&runner(), ids, LONG).await.unwrap(), [Hold::Cancelled]);
    fixture.backend.jobs.end(&crawl.id, &JobOutcome::Cancelled).await.unwrap();
    assert_eq!(fixture.get(&format!("{path}?wait=15s")).await.body["status"], "cancelled");
}

async fn a_crawl_that_runs_is_cancelled_with_its_job(fixture: &Fixture) {
    let (_, path) = asked(fixture, "a").await;
    let crawl = begin(fixture, 2).await;
    let answer = fixture.post(&format!("{path}/cancel")).await;
    assert_eq!((&answer.body["status"], &answer.body["cancelled"]), (&"cancelled".into(), &2.into()));
    let job = fixture.backend.jobs.job(&crawl.id).await.unwrap().unwrap();
    assert!(matches!(job.state, trawl_common::jobs::JobState::Fed { is_cancelled: true, .. }), "{job:?}");
    assert_eq!(fixture.get(&format!("{path}?wait=15s")).await.body["status"], "cancelled", "at once");
}

async fn what_needs_a_crawl_that_has_begun_is_a_conflict_before(fixture: &Fixture) {
    let (crawl, path) = asked(fixture, "a").await;
    for command in ["pause", "resume"] {
        let answer = fixture.post(&format!("{path}/{command}")).await;
        let detail = answer.body["detail"].as_str().unwrap();
        assert_eq!((answer.status, detail.contains("pending")), (409, true), "{command}: {detail}");
    }
    let urls = json!({"urls": ["http://one.example/"]});
    assert_eq!(fixture.post_json(&format!("{path}/urls"), &urls).await.status, 409);
    assert_eq!(fixture.get(&format!("{path}/url?url=http://one.example/")).await.status, 409);
    assert_eq!(fixture.get(&format!("{path}/hosts")).await.body["hosts"], json!([]));
    let letters = fixture.get(&format!("/api/v1/dead-letters?crawl={}", crawl.id)).await.body;
    assert_eq!(letters, json!({"dead_letters": []}));
    assert_eq!(fixture.backend.stats.crawl_stats(&crawl.id).await.unwrap(), None, "nothing has begun it");
}

async fn a_crawl_may_begin_with_tasks_of_a_spider_with_a_program(fixture: &Fixture) {
    let path = "/api/v1/projects/shop/versions?spider=payments";
    let deployed =
        fixture.send(fixture.operator(Method::POST, path).body("[handler]\nrun = ['true']\n")).await;
    assert_eq!(deployed.status, 201, "{}", deployed.body);
    let tasks = json!(["one", {"recipe": "two", "retries": 0}]);
    let body =
        json!({"project": "shop", "spider": "payments", "urls": ["http://a.example/"], "tasks": tasks});
    let answer = ask(fixture, body).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let id = answer.body["crawl"].as_str().unwrap().parse().unwrap();
    let job = fixture.backend.jobs.job(&id).await.unwrap().unwrap();
    assert_eq!((job.new.requests().count(), job.new.tasks().count()), (1, 2));
    let plain = "/api/v1/projects/shop/versions?spider=plain";
    fixture.send(fixture.operator(Method::POST, plain).body("[start]\nurls = ['http://a.example/']\n")).await;
    for (body, says) in [
        (json!({"tasks": ["one"]}), "spider"),
        (json!({"urls": ["http://a.example/"], "tasks": ["one"]}), "spider"),
        (json!({"project": "shop", "spider": "plain", "tasks": ["one"]}), "no [handler]"),
        (
            json!({"spider": "x", "tasks": ["one", {"recipe": "b", "spider": "y"}]}),
            "task 2: it is for the spider y",
        ),
        (json!({"spider": "x", "tasks": [{"url": "b"}]}), "`url`"),
    ] {
        let answer = ask(fixture, body.clone()).await;
        let detail = answer.body["detail"].as_str().unwrap();
        assert_eq!((answer.status, detail.contains(says)), (400, true), "{body}: {detail}");
    }
}
