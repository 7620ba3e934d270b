//! Tests of the right to admit URLs.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::{DedupScope, Recrawl};
use trawl_common::ports::{ErrorKind, Opening, Result, SourcesRead, Terms};
use trawl_common::spider::SpiderText;

use super::{Carrier, kind};
use crate::conformance::engine::LIMIT;
use crate::conformance::eventually;
use crate::conformance::fixture::{Case, LONG};

const BRIEF: Duration = Duration::from_millis(100);

/// `Busy` names the crawl, for the person who waits.
pub async fn opening_a_second_crawl_fails_and_names_the_one_being_read(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let _session = carrier.open(&case, Terms::default()).await?;
    let next = case.next_crawl();
    let refused = carrier.open(&next, Terms::default()).await.err().expect("another crawl is read");
    assert_eq!(refused.kind, ErrorKind::Busy);
    assert!(refused.to_string().contains(case.crawl.id.as_str()), "{refused}");
    assert_eq!(carrier.stats.crawl_stats(&next.crawl.id).await?, None, "a refused crawl has not begun");
    Ok(())
}

/// A lease is a spider's.
pub async fn two_spiders_are_read_side_by_side(carrier: &Carrier) -> Result<()> {
    let one = Case::new();
    let two = one.other_spider();
    let first = carrier.open(&one, Terms::default()).await?;
    let second = carrier.open(&two, Terms::default()).await?;
    assert_eq!(first.admit(&[one.new_work(0)]).await?, [true]);
    assert_eq!(second.admit(&[two.new_work(0)]).await?, [true]);
    Ok(())
}

/// A finished crawl stays finished.
pub async fn a_crawl_that_is_over_is_stale_to_open(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    carrier.begin(&case, 0, Terms::default()).await?;
    assert_eq!(kind(carrier.reopen(&case, LONG).await), Some(ErrorKind::Stale));
    Ok(())
}

/// Counters go on, and the crawl does not end before discovery has ended again.
pub async fn a_crawl_goes_on_where_it_was(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 2, Terms::default()).await?;
    assert!(carrier.stats(&case).await?.discovered);
    let session = carrier.reopen(&case, LONG).await?;
    assert!(!carrier.stats(&case).await?.discovered);
    let urls = [0, 1, 2].map(|number| case.new_work(number));
    assert_eq!(session.admit(&urls).await?, [false, false, true]);
    worker.work_off(3).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Running, 3));
    session.close().await?;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// As long as it lives nobody may read another crawl of its spider.
pub async fn a_session_outlives_its_lease(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let next = case.next_crawl();
    let session = carrier.reopen(&case, 2 * BRIEF).await?;
    sleep(6 * BRIEF).await;
    assert_eq!(kind(carrier.reopen(&next, LONG).await), Some(ErrorKind::Busy));
    assert_eq!(session.admit(&[case.new_work(0)]).await?, [true]);
    session.close().await?;
    carrier.reopen(&next, LONG).await?.close().await
}

/// A crawl of many sources may be read by many.
pub async fn several_sessions_feed_one_crawl_and_discovery_ends_with_the_last(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let one = carrier.reopen(&case, LONG).await?;
    let two = carrier.reopen(&case, LONG).await?;
    let three = carrier.reopen(&case, LONG).await?;
    assert_eq!(one.admit(&[case.new_work(0), case.new_work(1)]).await?, [true, true]);
    assert_eq!(two.admit(&[case.new_work(1), case.new_work(2)]).await?, [false, true]);
    worker.work_off(3).await;
    one.close().await?;
    two.abandon().await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.discovered), (CrawlState::Running, false), "the third is still reading");
    three.close().await?;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// Nobody goes on with it; what was admitted ends as ever.
pub async fn a_crawl_whose_session_was_dropped_ends_without_it(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join_with(case.worker.clone(), |settings| settings.recovery.lost_after = 2 * BRIEF);
    let session = carrier.reopen(&case, BRIEF).await?;
    session.admit(&[case.new_work(0)]).await?;
    drop(session);
    worker.work_off(1).await;
    eventually(LIMIT, async || Ok(carrier.stats(&case).await?.status == CrawlState::Finished)).await?;
    assert_eq!(carrier.stats(&case).await?.counts.done, 1);
    Ok(())
}

/// It is complete once others have read those sources to their end after a session was stopped or failed.
pub async fn a_crawl_is_incomplete_until_what_was_left_unread_is_read(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let (wholly, in_part) =
        (SourcesRead::default(), SourcesRead { incomplete: true, ..SourcesRead::default() });
    let is_incomplete = async || Ok::<_, trawl_common::ports::Error>(carrier.stats(&case).await?.incomplete);
    let stays_open = carrier.reopen(&case, LONG).await?;
    stays_open.admit(&[case.new_work(0)]).await?;
    let stopped = carrier.read(&case, 1, LONG).await?;
    let other = carrier.read(&case, 2, LONG).await?;
    assert!(!is_incomplete().await?, "both are reading");
    stopped.abandon().await?;
    other.close_read(Some(wholly)).await?;
    assert!(is_incomplete().await?);
    carrier.read(&case, 1, LONG).await?.close_read(Some(in_part)).await?;
    assert!(is_incomplete().await?, "some could not be read");
    carrier.reopen(&case, LONG).await?.close().await?;
    assert!(is_incomplete().await?, "nobody has read them");
    carrier.read(&case, 1, LONG).await?.close_read(Some(wholly)).await?;
    assert!(!is_incomplete().await?);
    carrier.read(&case, 1, LONG).await?.abandon().await?;
    assert!(!is_incomplete().await?, "they were read before");
    carrier.read(&case, 1, LONG).await?.close_read(Some(in_part)).await?;
    assert!(!is_incomplete().await?, "they were read before, and failed only now");
    stays_open.close().await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.incomplete, stats.reasons.len()), (CrawlState::Running, false, 0));
    Ok(())
}

/// One of the sessions that read sources dies; the others read theirs to the end.
pub async fn a_crawl_is_incomplete_where_others_outlast_who_read_its_sources(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join_with(case.worker.clone(), |settings| settings.recovery.lost_after = 2 * BRIEF);
    let living = carrier.read(&case, 1, LONG).await?;
    living.admit(&[case.new_work(0)]).await?;
    drop(carrier.read(&case, 2, BRIEF).await?);
    // It reads no sources, so its end says nothing about them.
    drop(carrier.reopen(&case, BRIEF).await?);
    eventually(LIMIT, async || Ok(carrier.stats(&case).await?.incomplete)).await?;
    living.close_read(Some(SourcesRead::default())).await?;
    worker.work_off(1).await;
    eventually(LIMIT, async || Ok(carrier.stats(&case).await?.status == CrawlState::Finished)).await?;
    assert!(carrier.stats(&case).await?.incomplete);
    Ok(())
}

/// Whether the session that left them had said which sources it reads, or not.
pub async fn what_was_left_unread_is_made_good_after_discovery_has_ended(carrier: &Carrier) -> Result<()> {
    for is_named in [true, false] {
        let case = Case::new();
        let _worker =
            carrier.join_with(case.worker.clone(), |settings| settings.recovery.lost_after = 2 * BRIEF);
        let session = match is_named {
            true => carrier.read(&case, 1, BRIEF).await?,
            false => carrier.reopen(&case, BRIEF).await?,
        };
        session.admit(&[case.new_work(0)]).await?;
        drop(session);
        eventually(LIMIT, async || Ok(carrier.stats(&case).await?.discovered)).await?;
        assert!(carrier.stats(&case).await?.incomplete, "nobody has read its sources");
        carrier.read(&case, 1, LONG).await?.close_read(Some(SourcesRead::default())).await?;
        let stats = carrier.stats(&case).await?;
        let expected = (CrawlState::Running, true, false);
        assert_eq!((stats.status, stats.discovered, stats.incomplete), expected, "named: {is_named}");
    }
    Ok(())
}

/// Among the reasons.
pub async fn what_sources_name_in_vain_is_counted_once(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let read = SourcesRead { seen: 3, outside: 2, ..SourcesRead::default() };
    let session = carrier.read(&case, 1, LONG).await?;
    session.admit(&[case.new_work(0)]).await?;
    session.close_read(Some(read)).await?;
    let reasons = carrier.stats(&case).await?.reasons;
    assert_eq!(reasons, [("dropped:outside".to_owned(), 2), ("dropped:seen".to_owned(), 3)].into());
    Ok(())
}

/// And it is known by what it took URLs for seen.
pub async fn a_crawl_is_empty_if_nothing_came_of_it(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let end = async |read| {
        let next = case.next_crawl();
        carrier.read(&next, 1, LONG).await?.close_read(Some(read)).await?;
        carrier.stats(&next).await
    };
    let seen = end(SourcesRead { seen: 1, ..SourcesRead::default() }).await?;
    assert_eq!((seen.status, seen.empty, seen.dedup), (CrawlState::Finished, true, DedupScope::Spider));
    assert!(!end(SourcesRead { unchanged: 1, ..SourcesRead::default() }).await?.empty, "all is as it was");
    let (worker, next) = (carrier.join(&case), case.next_crawl());
    carrier.begin(&next, 1, Terms { recrawl: Recrawl::Always, ..Terms::default() }).await?;
    assert!(!carrier.stats(&next).await?.empty, "it is not over");
    worker.work_off(1).await;
    let done = carrier.stats(&next).await?;
    assert_eq!((done.status, done.empty, done.dedup), (CrawlState::Finished, false, DedupScope::Crawl));
    Ok(())
}

/// Once its lease has lapsed; the same crawl may be taken on at once.
pub async fn a_session_that_was_dropped_may_be_followed_by_another(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let next = case.next_crawl();
    drop(carrier.reopen(&case, 5 * BRIEF).await?);
    assert_eq!(kind(carrier.reopen(&next, LONG).await), Some(ErrorKind::Busy));
    let session = carrier.reopen(&case, LONG).await?;
    assert_eq!(session.admit(&[case.new_work(0)]).await?, [true]);
    session.abandon().await?;
    eventually(LIMIT, async || match carrier.reopen(&next, LONG).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == ErrorKind::Busy => Ok(false),
        Err(error) => Err(error),
    })
    .await
}

/// Whatever is said when it is opened again, and no other crawl of the spider does.
pub async fn a_crawl_keeps_the_spiders_file_that_it_was_first_opened_with(carrier: &Carrier) -> Result<()> {
    let (case, plain) = (Case::new(), Case::new());
    let text = |text: &str| Some(SpiderText::from(text.to_owned()));
    let open = async |text: Option<SpiderText>, is_new| {
        let terms = Terms { file: text.as_ref().map(SpiderText::hash), ..Terms::default() };
        let opening = Opening {
            judging: None,
            crawl: case.crawl.clone(),
            terms,
            text,
            is_new,
            lease: LONG,
            reads: None,
        };
        carrier.engine.open(opening, Arc::default()).await
    };
    open(text("max_pages = 1 # \u{e4}"), true).await?.abandon().await?;
    open(text("max_pages = 2"), false).await?.abandon().await?;
    let session = open(None, false).await?;
    session.admit(&[case.new_work(0)]).await?;
    carrier.open(&plain, Terms::default()).await?.abandon().await?;
    assert_eq!(carrier.stats.spider_text(&case.crawl).await?, text("max_pages = 1 # \u{e4}"));
    assert_eq!(carrier.stats.spider_text(&plain.crawl).await?, None);
    session.abandon().await
}
