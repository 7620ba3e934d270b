//! Tasks: submitted, found, read, retried, cancelled.

use trawl_common::frontier::TaskKey;
use trawl_common::logs::{LogEntry, LogLevel, TaskEnd};
use trawl_common::names::CrawlRef;
use trawl_common::task::NewTask;

use crate::fixture::{Fixture, OPERATOR, Person, VIEWER};

const NEW: &str = "/tasks/new";
const PROGRAM: &[u8] = b"[handler]\nrun = ['python3', 'run.py']\nconcurrency = 3\n";
const HOSTILE: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}'\"&\u{1b}[31m";

/// Deploys a spider with a program.
async fn deploy(person: &Person<'_>) {
    let path = "/spiders/deploy";
    assert_eq!(person.upload(path, path, &[], Some(("payments.toml", PROGRAM))).await.status, 303);
}

/// Submits a list, and returns its crawl.
async fn submit(person: &Person<'_>, list: &str) -> CrawlRef {
    let shown = person.upload(NEW, NEW, &[("spider", "payments"), ("list", list)], None).await;
    let id = shown.location().strip_prefix("/crawls/").unwrap().parse().unwrap();
    CrawlRef { id, spider: "payments".parse().unwrap() }
}

fn key(recipe: &str) -> TaskKey {
    TaskKey::new(&"payments".parse().unwrap(), &NewTask::from_recipe(recipe.parse().unwrap()))
}

#[tokio::test]
async fn tasks_come_by_a_recipe_a_list_or_a_file_and_the_form_submits_them_once() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    deploy(&anna).await;
    let crawl = submit(&anna, "\"one\"\r\n\r\n{\"recipe\": \"two\"}").await;
    assert_eq!(console.pending(&crawl).await, 2);
    let page = anna.get("/tasks/new?spider=payments").await;
    assert!(page.has("name=\"spider\" value=\"payments\""), "{}", page.text);
    let hidden = |name: &str| {
        let rest = page.text.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let (csrf, own) = (hidden("csrf"), hidden("own"));
    let fields = [
        ("csrf", &*csrf),
        ("own", &*own),
        ("spider", "payments"),
        ("recipe", " three \r\n four "),
        ("priority", "2.5"),
        ("retries", "0"),
    ];
    let first = anna.upload_unproved(NEW, &fields, None).await;
    let again = anna.upload_unproved(NEW, &fields, None).await;
    assert_eq!((first.location(), again.location()), (&*format!("/crawls/{own}"), first.location()));
    let shown = anna.get(&format!("/tasks/{}?crawl={own}", key(" three \n four "))).await;
    assert!(shown.has("2.5") && shown.has("not at all"), "{}", shown.text);
    let file = Some(("tasks.jsonl", &b"\xef\xbb\xbf\"five\"\n"[..]));
    let shown = anna.upload(NEW, NEW, &[("spider", "payments"), ("crawl", &own)], file).await;
    assert_eq!(shown.location(), format!("/crawls/{own}"));
    assert_eq!(anna.get(&format!("/tasks?crawl={own}")).await.text.matches("<th scope=\"row\"").count(), 2);
}

#[tokio::test]
async fn of_a_wrong_list_nothing_is_taken_each_line_is_named_and_what_was_written_is_there() {
    let console = Fixture::open().await;
    let person = console.nobody();
    deploy(&person).await;
    let list = "\"one\"\n[1]\n{\"recipe\": \"x\", \"retrys\": 1}\n</textarea><script>alert(1)</script>";
    let shown =
        person.upload(NEW, NEW, &[("spider", "payments"), ("list", list), ("priority", "7")], None).await;
    assert_eq!(shown.status, 400);
    for says in [
        "3 lines cannot be read",
        "Line 2: ",
        "Line 3: a task has no `retrys`",
        "Line 4: not JSON",
        "value=\"7\"",
    ] {
        assert!(shown.has(says), "{says}: {}", shown.text);
    }
    assert!(shown.has("&#60;/textarea&#62;") && !shown.has("<script>alert"), "{}", shown.text);
    let file = Some(("x.jsonl", list.as_bytes()));
    let shown = person.upload(NEW, NEW, &[("spider", "payments")], file).await;
    assert!(
        shown.status == 400 && shown.has("&#60;/textarea&#62;"),
        "what a file says is there to be mended"
    );
    for (fields, says) in [
        (&[("spider", "payments")][..], "write a recipe or a list"),
        (&[("list", "\"a\"")], "whose program"),
        (&[("spider", "payments"), ("list", "\"a\""), ("recipe", "b")], "send one of them"),
        (&[("spider", "nowhere"), ("list", "\"a\"")], "&#39;nowhere&#39; not found"),
        (&[("spider", "payments"), ("list", "\"a\""), ("priority", "high")], "priority"),
        (&[("spider", "payments"), ("list", "\"a\""), ("crawl", "adhoc.payments")], "never ends"),
    ] {
        let shown = person.upload(NEW, NEW, fields, None).await;
        assert!((400..500).contains(&shown.status) && shown.has(says), "{says}: {}", shown.text);
        assert!(shown.has("<form class=\"panel"), "{says}: what was written is kept");
    }
    assert!(person.get("/tasks").await.has("No task waits"), "nothing was taken");
}

#[tokio::test]
async fn tasks_are_listed_by_place_crawl_and_spider_those_that_run_first() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    deploy(&anna).await;
    let crawl = submit(&anna, "\"one\"\n\"two\"\n\"three\"\n").await;
    let worker = console.worker();
    let failed = worker.begin_task().await;
    worker.fail(vec![failed], HOSTILE).await;
    let runs = worker.begin_task().await;
    let rows = async |query: &str| {
        let shown = anna.get(&format!("/tasks{query}")).await;
        assert_eq!(shown.status, 200, "{query}: {}", shown.text);
        assert!(
            !shown.has("<script>alert") && !shown.has("<img") && !shown.has("\u{202e}"),
            "{}",
            shown.text
        );
        shown.text.matches("<th scope=\"row\"").count()
    };
    assert_eq!(rows("?place=running").await, 1);
    assert_eq!(rows("?place=waiting&spider=payments").await, 1);
    assert_eq!(rows("?place=parked").await, 0);
    assert_eq!(rows(&format!("?place=failed&crawl={}", crawl.id)).await, 1);
    assert_eq!(rows("?spider=other").await, 0);
    assert_eq!(rows("?place=&crawl=&spider=").await, 3);
    let all = anna.get("/tasks").await;
    let places = [all.text.find("status running").unwrap(), all.text.find("status waiting").unwrap()];
    assert!(places.is_sorted() && all.has(" data-live"), "{}", all.text);
    let workers = anna.get("/workers").await;
    assert!(workers.has(&format!("href=\"/tasks/{}\"", runs.message.key())), "{}", workers.text);
    assert!(workers.has("cannot work for away: its file is not there"), "{}", workers.text);
    assert!(workers.has("has the old file of broken: its file has a mistake"), "{}", workers.text);
    assert!(
        ["<h2>Browsers</h2>", ">150.0 MiB<", ">1,234<"].iter().all(|text| workers.has(text)),
        "{}",
        workers.text
    );
    let shown = anna.get(&format!("/crawls/{}", crawl.id)).await;
    assert!(shown.has("1 of 3 tasks have ended") && shown.has("/tasks?crawl="), "{}", shown.text);
}

#[tokio::test]
async fn a_task_is_shown_with_its_recipe_its_failure_and_its_log_whatever_they_say() {
    let console = Fixture::open().await;
    let person = console.nobody();
    deploy(&person).await;
    let recipe =
        format!("{{\"page\": \"{}\", \"id\": 12345678901234567890123}}", "<script>alert(1)</script>\u{202e}");
    let list = serde_json::to_string(&recipe).unwrap();
    let crawl = submit(&person, &list).await;
    let key = key(&recipe);
    let worker = console.worker();
    let claimed = worker.begin_task().await;
    worker.fail(vec![claimed], HOSTILE).await;
    let trace = "Traceback <script>alert(3)</script>\n  File \"run.py\"\u{202e}, line 1";
    let entry =
        LogEntry::new(&"w-1".parse().unwrap(), LogLevel::Error, trace).in_crawl(&crawl).about(key.as_str());
    console.backend.logs.append(&[entry]).await.unwrap();
    let path = format!("/tasks/{key}?crawl={}", crawl.id);
    let shown = person.get(&path).await;
    for says in [
        "status failed",
        "12345678901234567890123",
        "characters that are not seen are spaces here",
        "<summary>Traceback &#60;script",
        "  File &#34;run.py&#34;",
        "Read the dead letter",
    ] {
        assert!(shown.has(says), "{says}: {}", shown.text);
    }
    for never in ["<script>alert", "<img", "\u{202e}", "\u{1b}"] {
        assert!(!shown.has(never), "{never:?}: {}", shown.text);
    }
    for from in [format!("/logs?task={key}"), format!("/dead-letters/one?crawl={}&url={key}", crawl.id)] {
        assert!(person.get(&from).await.has(&format!("href=\"{path}\"")), "{from}");
    }
    let unknown = person.get("/tasks/task:0123456789abcdef0123456789abcdef").await;
    assert!(unknown.status == 200 && unknown.has("neither waits nor runs"), "{}", unknown.text);
}

#[tokio::test]
async fn a_recipe_of_a_megabyte_is_shown_in_part_and_said_how_much_is_not() {
    let console = Fixture::open().await;
    let person = console.nobody();
    deploy(&person).await;
    let recipe = "<b>".repeat(300_000);
    submit(&person, &serde_json::to_string(&recipe).unwrap()).await;
    let list = person.get("/tasks").await;
    assert!(list.text.len() < 20_000 && list.has("\u{2026}</a>"), "{}", list.text.len());
    let shown = person.get(&format!("/tasks/{}", key(&recipe))).await;
    assert!(
        shown.text.len() < 600_000 && shown.has("more are not shown") && !shown.has("<b>"),
        "{}",
        shown.text.len()
    );
}

#[tokio::test]
async fn a_task_that_failed_is_tried_again_and_one_that_waits_is_cancelled_after_a_question() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    deploy(&anna).await;
    let crawl = submit(&anna, "\"one\"\n\"two\"\n\"three\"").await;
    let worker = console.worker();
    let failed = worker.begin_task().await;
    let key = failed.message.key().to_string();
    worker.fail(vec![failed], "it broke").await;
    let (path, retry) =
        (format!("/tasks/{key}?crawl={}", crawl.id), format!("/tasks/{key}/retry?crawl={}", crawl.id));
    assert_eq!(anna.post_unproved(&retry, &[]).await.status, 403);
    let viewer = console.log_in(VIEWER).await;
    let shown = viewer.get(&path).await;
    assert!(shown.has("it broke") && !shown.has("Try again") && !shown.has("<form method"), "{}", shown.text);
    assert_eq!(viewer.post_unproved(&retry, &[]).await.status, 403);
    let shown = anna.submit(&path, &retry, &[]).await;
    assert_eq!((shown.location(), console.pending(&crawl).await), (&*path, 3));
    assert!(anna.get(&path).await.has("status waiting"));
    let cancel = format!("/tasks/cancel?task={}&crawl={}", key.replace(':', "%3A"), crawl.id);
    assert!(anna.get(&path).await.has(&cancel.replace('&', "&#38;")), "it leads to the question");
    let question = anna.get(&cancel).await;
    assert!(
        question.has(&format!("Cancel {key}?")) && console.pending(&crawl).await == 3,
        "{}",
        question.text
    );
    assert_eq!(anna.submit(&cancel, "/tasks/cancel", &[]).await.location(), path);
    assert_eq!(console.pending(&crawl).await, 2);
    assert_eq!(anna.submit(&cancel, "/tasks/cancel", &[]).await.status, 400, "it has ended");
    let all = format!("/tasks/cancel?crawl={}", crawl.id);
    let shown = anna.submit(&all, "/tasks/cancel", &[]).await;
    assert_eq!((shown.location(), console.pending(&crawl).await), (&*format!("/crawls/{}", crawl.id), 0));
}

#[tokio::test]
async fn tasks_come_in_pages_with_the_filter_in_each_address() {
    let console = Fixture::open().await;
    let person = console.nobody();
    deploy(&person).await;
    let list: String = (0..250).map(|number| format!("\"recipe {number}\"\n")).collect();
    let crawl = submit(&person, &list).await;
    let (mut path, mut rows) = (format!("/tasks?crawl={}&place=waiting", crawl.id), 0);
    loop {
        let shown = person.get(&path).await;
        let here = shown.text.matches("<th scope=\"row\"").count();
        assert!(here <= 100);
        rows += here;
        let Some(next) = shown.text.split("rel=\"next\" href=\"").nth(1) else { break };
        path = next.split('"').next().unwrap().replace("&#38;", "&");
        assert!(path.contains("place=waiting") && path.contains("crawl="), "{path}");
    }
    assert_eq!(rows, 250);
}

#[tokio::test]
async fn the_page_of_a_spider_with_a_program_says_so_and_leads_to_its_tasks() {
    let console = Fixture::open().await;
    let person = console.nobody();
    deploy(&person).await;
    let shown = person.get("/spiders/default/payments").await;
    for says in [
        "python3 run.py, once for each task",
        "3 at once",
        "/tasks/new?spider=payments",
        "/tasks?spider=payments",
    ] {
        assert!(shown.has(says), "{says}: {}", shown.text);
    }
}

#[tokio::test]
async fn tasks_that_have_ended_are_shown_with_how_and_nothing_of_them_is_markup() {
    let console = Fixture::open().await;
    let person = console.nobody();
    let (key, crawl) = (key(HOSTILE).to_string(), CrawlRef::adhoc_of("payments".parse().unwrap()));
    let ended = TaskEnd {
        outcome: "failed".to_owned(),
        took_ms: Some(61_000),
        attempts: 4,
        items: 17,
        recipe: HOSTILE.to_owned(),
        recipe_bytes: 5_000,
    };
    let entry = LogEntry::new(&"w-1".parse().unwrap(), LogLevel::Info, HOSTILE).in_crawl(&crawl);
    let entry = LogEntry { ended: Some(ended), ..entry.about(&key).of_class("handler") };
    console.backend.ended_tasks.append(&[entry]).await.unwrap();
    for path in ["/tasks/ended", "/tasks/ended?spider=payments", &*format!("/tasks/{key}")] {
        let page = person.get(path).await;
        assert_eq!(page.status, 200, "{path}");
        for says in ["status failed", "handler", "1 min 01 s", "17", "w-1", "adhoc.payments", "alert(1)"] {
            assert!(page.has(says), "{path}: {says}: {}", page.text);
        }
        for hostile in ["<script>alert", "<img", "\u{202e}", "\u{1b}"] {
            assert!(!page.has(hostile), "{path}: {hostile:?}: {}", page.text);
        }
    }
    assert!(person.get("/tasks/ended?crawl=other").await.has("No task fits"));
    let tasks = person.get("/tasks?spider=payments").await;
    assert!(tasks.has("href=\"/tasks/ended?spider=payments\""), "{}", tasks.text);
}
