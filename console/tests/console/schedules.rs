//! Schedules: listed, run, paused, resumed.

use crate::fixture::{Fixture, OPERATOR, VIEWER};

const DEPLOY: &str = "/spiders/deploy";
const TEXT: &str = "[schedule]\ncron = '0 3 * * *'\ntimezone = 'Europe/Berlin'\noverlap = 'queue'\n[start]\nurls = ['http://a.example/']\n";

#[tokio::test]
async fn a_schedule_is_shown_run_now_held_and_let_go_on() {
    let console = Fixture::fleet().await;
    let anna = console.log_in(OPERATOR).await;
    assert!(anna.get("/schedules").await.has("No spider has a schedule"));
    let fields = [("project", "shop"), ("spider", "books"), ("text", TEXT)];
    assert_eq!(anna.upload(DEPLOY, DEPLOY, &fields, None).await.status, 303);
    let shown = anna.get("/schedules").await;
    for text in ["0 3 * * *", "Europe/Berlin", "queued while the last one runs", "none yet", ":00:00.000Z"] {
        assert!(shown.has(text), "{text}: {}", shown.text);
    }
    let path = |verb: &str| format!("/schedules/shop/books/{verb}");
    assert_eq!(anna.submit("/schedules", &path("pause"), &[]).await.location(), "/schedules");
    assert!(anna.get("/schedules").await.has("status paused"));
    assert_eq!(anna.submit("/schedules", &path("resume"), &[]).await.location(), "/schedules");
    assert!(!anna.get("/schedules").await.has("status paused"));
    let crawl = anna.submit("/schedules", &path("run"), &[]).await;
    assert!(anna.get(crawl.location()).await.has("books"));
    assert!(anna.get("/schedules").await.has(crawl.location()), "the last one is it");
    let viewer = console.log_in(VIEWER).await;
    let shown = viewer.get("/schedules").await;
    assert!(shown.has("books") && !shown.has("Run now"), "{}", shown.text);
    assert_eq!(anna.post_unproved(&path("run"), &[]).await.status, 403);
}
