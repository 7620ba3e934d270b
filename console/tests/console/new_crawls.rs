//! Crawls submitted with a form.

use trawl_common::ports::{JobFilter, JobPage};

use crate::fixture::{Fixture, OPERATOR};

#[tokio::test]
async fn a_form_asks_for_one_crawl_however_often_it_is_sent() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    let page = anna.get("/crawls/new").await;
    let hidden = |name: &str| {
        let rest = page.text.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let (csrf, nonce) = (hidden("csrf"), hidden("nonce"));
    let fields = [
        ("csrf", csrf.as_str()),
        ("nonce", nonce.as_str()),
        ("urls", "https://shop.example/a\r\n\r\nhttps://shop.example/b\r\n"),
        ("priority", "7"),
        ("max_pages", "5"),
        ("spider", ""),
        ("arguments", ""),
    ];
    let first = anna.post_unproved("/crawls/new", &fields).await;
    let again = anna.post_unproved("/crawls/new", &fields).await;
    assert_eq!(first.location(), again.location());
    let page = JobPage { before: None, max: 10 };
    let jobs = console.backend.jobs.list(&JobFilter::default(), page).await.unwrap();
    let [job] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!((job.new.urls.len(), job.new.priority.get()), (2, 7.0));
    assert_eq!(job.new.settings.max_pages.map(u64::from), Some(5));
    let shown = anna.get("/jobs").await;
    assert!(shown.has(job.new.id.as_str()) && shown.has("status pending"), "{}", shown.text);
    let path = format!("{}/cancel", first.location());
    assert_eq!(anna.submit(&path, &path, &[]).await.status, 303);
    assert!(anna.get("/jobs").await.has("status cancelled"));
}

#[tokio::test]
async fn a_list_of_urls_requests_and_tasks_becomes_one_crawl_and_each_wrong_line_is_named() {
    let console = Fixture::open().await;
    let person = console.nobody();
    let program = b"[handler]\nrun = ['true']\n";
    person.upload("/spiders/deploy", "/spiders/deploy", &[], Some(("payments.toml", program))).await;
    let list = concat!(
        "https://shop.example/a\r\n",
        "\r\n",
        "{\"url\": \"https://shop.example/q\", \"method\": \"POST\", \"body\": \"\u{200d}\u{202e}<b>\"}\r\n",
        "{\"recipe\": \"\u{200d}</textarea><script>alert(1)</script>\", \"priority\": 3}\r\n",
        "\"two\"",
    );
    let wrong = format!("{list}\r\nno url\r\n{{\"id\": 7}}\r\n{{\"recipe\": \"x\", \"spider\": \"other\"}}");
    let fields = |list| [("spider", "payments"), ("list", list)];
    let shown = person.submit("/crawls/new", "/crawls/new", &fields(&wrong)).await;
    assert_eq!(shown.status, 400, "{}", shown.text);
    for says in ["Line 6: ", "Line 7: ", "Line 8: it is for the spider other", "3 lines cannot be read"] {
        assert!(shown.has(says), "{says}: {}", shown.text);
    }
    assert!(
        !shown.has("Line 3") && !shown.has("<script>alert") && !shown.has("</textarea><s"),
        "{}",
        shown.text
    );
    let kept = wrong.replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;").replace('"', "&#34;");
    assert!(shown.has(&kept), "nothing that was written is lost: {}", shown.text);
    let none = person.submit("/crawls/new", "/crawls/new", &[("list", "\"two\"")]).await;
    assert!(none.status == 400 && none.has("Line 1: this is a task"), "{}", none.text);
    let started = person.submit("/crawls/new", "/crawls/new", &fields(list)).await;
    let id = started.location().rsplit('/').next().unwrap().parse().unwrap();
    let job = console.backend.jobs.job(&id).await.unwrap().unwrap();
    assert_eq!((job.new.requests().count(), job.new.tasks().count()), (2, 2));
    let recipe = job.new.tasks().next().unwrap().recipe.as_str();
    assert_eq!(recipe, "\u{200d}</textarea><script>alert(1)</script>");
}

#[tokio::test]
async fn what_is_wrong_in_the_form_is_said_and_nothing_written_is_lost() {
    let console = Fixture::open().await;
    for (name, value, says) in [
        ("urls", "no url", "no url"),
        ("arguments", "colour", "NAME=VALUE"),
        ("max_pages", "many", "max_pages"),
        ("spider", "No Spider", "spider"),
    ] {
        let shown = console
            .nobody()
            .submit("/crawls/new", "/crawls/new", &[(name, value), ("project", "mine")])
            .await;
        assert_eq!(shown.status, 400, "{name}: {}", shown.text);
        assert!(shown.has("role=\"alert\"") && shown.has(says), "{name}: {}", shown.text);
        assert!(shown.has("value=\"mine\""), "{name}: {}", shown.text);
    }
}
