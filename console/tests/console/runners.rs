//! Runners and projects: shown to all, changed by operators.

use trawl_common::ports::{Access, RunnerKey};
use trawl_common::project::{Source, VersionReport, VersionResult, Wanted};
use trawl_common::time::UnixMs;

use crate::fixture::{Fixture, OPERATOR, VIEWER};

/// A fixture where a runner has asked for access.
async fn with_runner(console: Fixture) -> (Fixture, RunnerKey) {
    let key = RunnerKey::generate();
    console.backend.runners.ask(&"desk-7".parse().unwrap(), &key.digest()).await.unwrap();
    console.backend.projects.create(&"books".parse().unwrap()).await.unwrap();
    (console, key)
}

#[tokio::test]
async fn a_runner_is_approved_revoked_and_forgotten_on_a_page() {
    let (console, key) = with_runner(Fixture::fleet().await).await;
    let anna = console.log_in(OPERATOR).await;
    let shown = anna.get("/runners").await;
    assert!(shown.has("desk-7") && shown.has(&key.digest().fingerprint()), "{}", shown.text);
    assert!(shown.has("requested") && shown.has("<option>books</option>"), "{}", shown.text);
    let runners = &console.backend.runners;
    let access =
        async || runners.runner(&"desk-7".parse().unwrap()).await.unwrap().map(|runner| runner.access);
    let approval = [("project", "books"), ("access", "assign")];
    assert_eq!(anna.submit("/runners", "/runners/approve", &approval).await.location(), "/runners");
    assert_eq!(access().await, Some([("books".parse().unwrap(), Access::Assign)].into()));
    assert!(anna.get("/runners").await.has("books: assign"));
    assert_eq!(anna.submit("/runners", "/runners/revoke", &[]).await.location(), "/runners");
    assert_eq!(access().await, Some(Default::default()));
    let ask = "/runners/forget?runner=desk-7";
    assert!(anna.get(ask).await.has("Forget desk-7?"));
    assert_eq!(anna.submit(ask, "/runners/forget", &[]).await.location(), "/runners");
    assert_eq!(access().await, None);
    assert!(anna.get("/runners").await.has("No runner has asked"));
}

#[tokio::test]
async fn a_viewer_sees_runners_and_changes_none() {
    let (console, _) = with_runner(Fixture::embedded().await).await;
    console
        .backend
        .runners
        .allow(&"desk-7".parse().unwrap(), &"books".parse().unwrap(), Access::Assign)
        .await
        .unwrap();
    let viewer = console.log_in(VIEWER).await;
    for path in ["/runners", "/projects/books"] {
        let shown = viewer.get(path).await;
        assert!(shown.has("books") && !shown.has("<button>") && !shown.has("Revoke"), "{}", shown.text);
    }
    let anna = console.log_in(OPERATOR).await;
    for (path, fields) in [
        ("/runners/approve", vec![("runner", "desk-7"), ("project", "news"), ("access", "assign")]),
        ("/runners/revoke", vec![("runner", "desk-7"), ("project", "books")]),
        ("/runners/forget", vec![("runner", "desk-7")]),
        ("/projects/books/pause", vec![]),
        ("/projects/books/reset", vec![]),
    ] {
        assert_eq!(viewer.post_unproved(path, &fields).await.status, 403, "{path}");
        assert_eq!(
            anna.post_unproved(path, &fields).await.status,
            403,
            "{path}: it is not of a page of hers"
        );
    }
    let runner = console.backend.runners.runner(&"desk-7".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(runner.access, [("books".parse().unwrap(), Access::Assign)].into());
}

#[tokio::test]
async fn a_project_shows_the_log_of_a_failed_setup_as_text_and_pauses_its_crawls() {
    let (console, _) = with_runner(Fixture::embedded().await).await;
    let (projects, books) = (&console.backend.projects, "books".parse().unwrap());
    projects.add_spider(&books, &"shop".parse().unwrap()).await.unwrap();
    let clone_url: trawl_common::project::CloneUrl = "https://git.example/books.git".parse().unwrap();
    let source = Source { clone_url: clone_url.clone(), branch: "main".parse().unwrap() };
    projects.set_source(&books, Some(&source)).await.unwrap();
    let wanted = Wanted { clone_url, commit: "7".repeat(40).parse().unwrap() };
    projects.want(&books, &wanted).await.unwrap();
    let failure = "its setup ended with status 3:\n<script>alert(1)</script>".to_owned();
    let report = VersionReport {
        project: books.clone(),
        wanted,
        machine: "desk-7 (runner)".to_owned().into(),
        at: UnixMs(1_700_000_000_000),
        result: VersionResult::Failed(failure.into()),
    };
    projects.note_version(&report).await.unwrap();
    let crawl = console.crawl("20260101-120000-a1b2c3", 1).await;
    let anna = console.log_in(OPERATOR).await;
    let shown = anna.get("/projects/books").await;
    for text in
        ["shop", "https://git.example/books.git", &"7".repeat(40), "desk-7 (runner)", "not taken", "status 3"]
    {
        assert!(shown.has(text), "{text}: {}", shown.text);
    }
    assert!(!shown.has("<script>alert"), "{}", shown.text);
    let state = async || console.backend.stats.crawl_stats(&crawl.id).await.unwrap().unwrap().status.as_str();
    for (verb, then) in [("pause", "paused"), ("resume", "running")] {
        let changed = anna.submit("/projects/books", &format!("/projects/books/{verb}"), &[]).await;
        assert_eq!((changed.location(), state().await), ("/projects/books", then));
    }
    assert_eq!(anna.submit("/projects/books", "/projects/books/reset", &[]).await.status, 303);
}
