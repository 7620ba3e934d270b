//! Records in a state file that cannot be read.

use super::support::*;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::Reason;
use trawl_common::names::CrawlRef;
use trawl_common::politeness::gcra::Slot;
use trawl_common::ports::ErrorKind;
use trawl_common::web::host::HostKey;

#[tokio::test]
async fn a_record_that_cannot_be_read_is_a_dead_letter_that_names_its_field_and_its_crawl_goes_on() {
    let fields = [
        ("lane", "'express'"),
        ("due", "-5"),
        ("deadline", "-9"),
        ("starts", "5000000000"),
        ("attempts", "-1"),
        ("depth", "70000"),
        ("refusals", "-1"),
        ("hop", "'no URL'"),
        ("referrer", "'no URL'"),
    ];
    for (field, held) in fields {
        let (directory, engine) = state_file();
        let session = admit(&engine, 0..3).await;
        change(&directory, &format!("UPDATE records SET {field} = {held} WHERE url LIKE '%/1'"));
        let worker = join(&engine);
        let claimed = claim_all(&*worker, 2).await;
        assert_eq!(claimed.iter().map(number).collect::<Vec<_>>(), [0, 2], "{field}");
        worker.settle(claimed.iter().map(done).collect()).await.unwrap();
        let listed = engine.control().failed(&crawl(), 0).await.unwrap().failed;
        let [(url, note)] = &listed[..] else { panic!("{field}: {listed:?}") };
        assert_eq!((url, note.cause.reason), (&page(1).work.key(), Reason::Corrupt));
        let held = held.trim_matches('\'');
        let message = format!("the field {field} of record http://site.example/1 holds `{held}`");
        assert!(note.cause.error.contains(&message), "{}", note.cause.error);
        let stats = async || engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
        assert_eq!(stats().await.reasons, [("failed:corrupt".to_owned(), 1)].into());

        assert_eq!(engine.engine().replay(&crawl(), &crawl(), &[page(1).work.key()]).await.unwrap(), 1);
        assert_eq!(stats().await.reasons, [].into());
        session.close().await.unwrap();
        let again = worker.claim(9).await.unwrap();
        assert_eq!(worker.settle(again.iter().map(done).collect()).await.unwrap().ended.len(), 1, "as new");
        assert_eq!((stats().await.status, stats().await.counts.done), (CrawlState::Finished, 3));
    }
}

#[tokio::test]
async fn a_record_of_no_url_is_listed_with_such_texts_and_its_crawl_ends() {
    let (directory, engine) = state_file();
    let session = admit(&engine, 0..2).await;
    session.close().await.unwrap();
    change(&directory, "UPDATE records SET url = 'no URL' WHERE url LIKE '%/1'");
    let worker = join(&engine);
    let claimed = claim_all(&*worker, 1).await;
    worker.settle(claimed.iter().map(done).collect()).await.unwrap();
    let listed = engine.control().invalid(&crawl()).await.unwrap();
    let [(text, note)] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((&**text, note.cause.reason), ("no URL", Reason::Corrupt));
    let stats = engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap();
    assert_eq!((stats.status, stats.counts.done, stats.counts.failed), (CrawlState::Finished, 1, 1));
}

#[tokio::test]
async fn a_crawl_that_cannot_be_read_stands_still_alone_until_it_is_set_right() {
    for (field, held, right) in
        [("status", "'walking'", "'running'"), ("max_pages", "0", "NULL"), ("idle", "-1", "0")]
    {
        let (directory, engine) = state_file();
        let session = admit(&engine, 0..2).await;
        let other = CrawlRef { id: "c2".parse().unwrap(), spider: "s2".parse().unwrap() };
        let of_other = open_crawl(&engine, other).await;
        of_other.admit(&[page(7)]).await.unwrap();
        change(&directory, &format!("UPDATE crawls SET {field} = {held} WHERE id = 'c1'"));
        let refused = session.admit(&[page(2)]).await.unwrap_err();
        let message = format!("the field {field} of crawl c1 holds `{}`", held.trim_matches('\''));
        assert_eq!(refused.kind, ErrorKind::Corrupt);
        assert!(refused.to_string().contains(&message), "{refused}");
        assert_eq!(available(&engine, 1).await, [7], "{field}");
        drop((session, of_other, engine));
        change(&directory, &format!("UPDATE crawls SET {field} = {right} WHERE id = 'c1'"));
        assert_eq!(available(&open(&directory.path().join("crawl.db")), 3).await, [0, 1, 7]);
    }
}

#[tokio::test]
async fn stats_that_cannot_be_read_are_an_error_and_those_of_other_crawls_are_listed() {
    let (directory, engine) = state_file();
    let _session = admit(&engine, 0..2).await;
    let other = CrawlRef { id: "c2".parse().unwrap(), spider: "s2".parse().unwrap() };
    let _of_other = open_crawl(&engine, other.clone()).await;
    change(&directory, "UPDATE crawls SET bytes = -1 WHERE id = 'c1'");
    let refused = engine.stats().crawl_stats(&crawl().id).await.unwrap_err();
    assert!(refused.to_string().contains("the field bytes of crawl c1 holds `-1`"), "{refused}");
    let listed = engine.stats().crawls().await.unwrap();
    assert_eq!(listed.iter().map(|stats| &stats.crawl).collect::<Vec<_>>(), [&other.id]);
    change(&directory, "UPDATE crawl_hosts SET admitted = -2");
    let refused = engine.stats().hosts(&crawl(), 9).await.unwrap_err();
    assert!(refused.to_string().contains("the field admitted of host site.example holds `-2`"), "{refused}");
}

#[tokio::test]
async fn a_host_that_cannot_be_read_counts_as_blocked_and_no_other_does() {
    let (directory, engine) = state_file();
    drop(engine);
    change(&directory, "INSERT INTO hosts VALUES ('odd.example', 1, -5, 0, 503, NULL, 0, 0)");
    let engine = open(&directory.path().join("crawl.db"));
    let slots = engine.hosts().reserve(&[ask("odd.example"), ask("site.example")]).await.unwrap();
    assert!(matches!(slots[..], [Slot::Blocked, Slot::Now]), "{slots:?}");
    let refused = engine.host_control().unblock(&HostKey::from_text("odd.example")).await.unwrap_err();
    assert!(refused.to_string().contains("the field until of host odd.example holds `-5`"), "{refused}");
}

#[tokio::test]
async fn a_back_off_that_is_over_keeps_nobody_from_looking_into_the_file() {
    let (directory, engine) = state_file();
    change(&directory, "INSERT INTO hosts VALUES ('slow.example', 1, 2, 0, 503, NULL, 0, 0)");
    let watching = Embedded::watch(&directory.path().join("crawl.db")).unwrap();
    assert_eq!(watching.host_control().hosts().await.unwrap(), []);
    drop(engine);
}

#[tokio::test]
async fn a_note_that_cannot_be_read_is_listed_with_its_text() {
    let (directory, engine) = state_file();
    let _session = admit(&engine, 0..1).await;
    change(
        &directory,
        r#"INSERT INTO failed (crawl, url, terminal, note) VALUES (1, 'http://site.example/9', 'failed', '{"half')"#,
    );
    let listed = engine.control().failed(&crawl(), 0).await.unwrap().failed;
    let [(url, note)] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((url, note.cause.reason), (&page(9).work.key(), Reason::Corrupt));
    assert!(note.cause.error.ends_with(r#": {"half"#), "{}", note.cause.error);
}
