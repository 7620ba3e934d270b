//! Commands for all work of a project's spiders.

use serde_json::json;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::names::CrawlRef;

use crate::fixture::Fixture;

promises! {
    pausing_a_project_holds_the_crawls_of_its_spiders_and_resuming_it_no_other
    a_reset_sends_the_failures_of_a_projects_spiders_again_and_no_others
    commands_for_a_project_that_nobody_has_made_are_refused
}

async fn make(fixture: &Fixture) {
    let made = json!({ "project": "shop", "spiders": ["books", "music"] });
    assert_eq!(fixture.post_json("/api/v1/projects", &made).await.status, 201);
}

/// Returns the state of a crawl, and why it is held.
async fn state(fixture: &Fixture, crawl: &CrawlRef) -> (CrawlState, Option<String>) {
    let stats = fixture.backend.stats.crawl_stats(&crawl.id).await.unwrap().unwrap();
    (stats.status, stats.held)
}

async fn pausing_a_project_holds_the_crawls_of_its_spiders_and_resuming_it_no_other(fixture: &Fixture) {
    make(fixture).await;
    let (books, music) = (fixture.crawl("c1", "books", 2).await, fixture.crawl("c2", "music", 1).await);
    let by_hand = fixture.crawl("c3", "music", 1).await;
    let other = fixture.crawl("c4", "films", 1).await;
    fixture.backend.control.pause(&by_hand).await.unwrap();
    let paused = fixture.post("/api/v1/projects/shop/pause").await;
    assert_eq!((paused.status, paused.body), (200, json!({ "crawls": 2 })));
    let held = (CrawlState::Paused, Some("the project shop is paused".to_owned()));
    for crawl in [&books, &music] {
        assert_eq!(state(fixture, crawl).await, held);
    }
    assert_eq!(state(fixture, &other).await.0, CrawlState::Running);
    assert_eq!(fixture.post("/api/v1/projects/shop/pause").await.body, json!({ "crawls": 0 }));
    let resumed = fixture.post("/api/v1/projects/shop/resume").await;
    assert_eq!((resumed.status, resumed.body), (200, json!({ "crawls": 2 })));
    for crawl in [&books, &music] {
        assert_eq!(state(fixture, crawl).await, (CrawlState::Running, None));
    }
    assert_eq!(state(fixture, &by_hand).await, (CrawlState::Paused, None));
}

async fn a_reset_sends_the_failures_of_a_projects_spiders_again_and_no_others(fixture: &Fixture) {
    make(fixture).await;
    let (own, other) = (fixture.failed("c1", "books", 3).await, fixture.failed("c2", "films", 2).await);
    let reset = fixture.post("/api/v1/projects/shop/reset").await;
    assert_eq!((reset.status, reset.body), (200, json!({ "sent": 3, "complete": true })));
    let control = &fixture.backend.control;
    assert_eq!(
        (control.count_failed(&own).await.unwrap(), control.count_failed(&other).await.unwrap()),
        (0, 2)
    );
    let successor = fixture.backend.stats.crawl_stats(&"c1.r1".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(successor.pending, 3);
    assert_eq!(
        fixture.post("/api/v1/projects/shop/reset").await.body,
        json!({ "sent": 0, "complete": true })
    );
}

async fn commands_for_a_project_that_nobody_has_made_are_refused(fixture: &Fixture) {
    for command in ["pause", "resume", "reset"] {
        assert_eq!(fixture.post(&format!("/api/v1/projects/none/{command}")).await.status, 404);
    }
}
