//! Crawls that are asked for by a form.

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
