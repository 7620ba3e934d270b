//! Further promises of an engine of several processes: crawls that a store forgot still end exactly, and their ends are
//! announced.

use std::time::Duration;

use tokio::time::sleep;
use trawl_common::events::{CrawlEvent, EventKind};
use trawl_common::frontier::ClaimReply;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{Result, Terms};
use trawl_common::time::UnixMs;
use trawl_engine::{Lease, Past};

use super::engine::{Engine, GLANCE, LIMIT, sweep_round};
use super::eventually;
use super::fixture::{Fixture, LONG};

/// Makes a test of each promise; the fixture is that of [`crate::sweep_conformance`].
#[macro_export]
macro_rules! recovery_conformance {
    ($brief:path) => {
        $crate::promises! { $brief, recovery:
            the_start_of_a_crawl_is_reported_until_it_is_announced
            the_end_of_a_crawl_is_reported_until_it_is_announced
            the_end_of_a_cancelled_crawl_is_reported_too
            a_crawl_whose_producer_died_ends_without_it
            a_forgotten_crawl_ends_only_after_what_may_be_under_way
            a_message_is_kept_while_another_holds_its_url
            a_message_is_kept_while_its_crawl_is_paused
        }
    };
}

/// A message is kept while another worker holds its URL: the holder and the store may both be gone by its end.
pub async fn a_message_is_kept_while_another_holds_its_url(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let replies = engine.frontier.claim(&fixture.other, &[fixture.message(0)]).await?;
    assert!(
        matches!(replies[0], ClaimReply::Wait { until } if until <= UnixMs::now().plus(LIMIT)),
        "{replies:?}"
    );
    Ok(())
}

/// A message is kept while its crawl is paused: the pause may outlast the store's data.
pub async fn a_message_is_kept_while_its_crawl_is_paused(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(1).await?;
    engine.control.pause(&fixture.crawl).await?;
    let replies = engine.frontier.claim(&fixture.other, &[fixture.message(0)]).await?;
    let a_while = UnixMs::now().plus(GLANCE);
    assert!(matches!(replies[0], ClaimReply::Wait { until } if until > a_while), "{replies:?}");
    Ok(())
}

/// Sweeps once, and rests as it asks for. Returns the event of this kind that it reports of the crawl.
async fn reported(
    engine: &Engine,
    fixture: &Fixture<'_>,
    is_it: fn(EventKind) -> bool,
) -> Result<Option<CrawlEvent>> {
    let swept = engine.frontier.sweep(&fixture.worker).await?;
    sleep(swept.rest).await;
    Ok(swept.news.into_iter().find(|event| event.stats.crawl == fixture.crawl.id && is_it(event.kind)))
}

/// Checks that an event is reported until it is announced: the process that is to announce it may die first.
async fn is_reported_until_announced(
    engine: &Engine,
    fixture: &Fixture<'_>,
    is_it: fn(EventKind) -> bool,
) -> Result<()> {
    let mut reports = Vec::new();
    for times in 1..=2 {
        eventually(LIMIT, async || {
            reports.extend(reported(engine, fixture, is_it).await?);
            Ok(reports.len() == times)
        })
        .await?;
    }
    assert_eq!(reports[0].id(), reports[1].id(), "it is one event");
    engine.frontier.announced(&reports[0]).await?;
    for _ in 0..10 {
        assert_eq!(reported(engine, fixture, is_it).await?, None, "it has been announced");
    }
    Ok(())
}

/// The start of a crawl is reported until it is announced, even if nothing was admitted yet.
pub async fn the_start_of_a_crawl_is_reported_until_it_is_announced(engine: &Engine) -> Result<()> {
    let fixture = Fixture::new(&engine.frontier);
    engine.frontier.open(&fixture.crawl, Terms::default(), "producer", LONG, Past::Possible).await?;
    is_reported_until_announced(engine, &fixture, |kind| kind == EventKind::Started).await
}

/// The end of a crawl is reported until it is announced, and not before the crawl has ended.
pub async fn the_end_of_a_crawl_is_reported_until_it_is_announced(engine: &Engine) -> Result<()> {
    let (fixture, lease) = engine.begin(1).await?;
    engine.frontier.close(lease, None).await?;
    for _ in 0..5 {
        assert_eq!(reported(engine, &fixture, EventKind::is_end).await?, None, "one URL is left");
    }
    fixture.finish(0, Terminal::Done).await?;
    is_reported_until_announced(engine, &fixture, EventKind::is_end).await
}

/// The end of a cancelled crawl is reported too.
pub async fn the_end_of_a_cancelled_crawl_is_reported_too(engine: &Engine) -> Result<()> {
    let (fixture, _lease) = engine.begin(2).await?;
    engine.control.cancel(&fixture.crawl).await?;
    is_reported_until_announced(engine, &fixture, EventKind::is_end).await
}

/// A crawl whose producer died ends without it, with the URLs that were admitted.
pub async fn a_crawl_whose_producer_died_ends_without_it(engine: &Engine) -> Result<()> {
    let fixture = Fixture::new(&engine.frontier);
    let lease = engine
        .frontier
        .open(&fixture.crawl, Terms::default(), "producer", Duration::from_millis(50), Past::Possible)
        .await?;
    engine.send(&fixture, &lease, &[fixture.new_work(0)]).await?;
    fixture.finish(0, Terminal::Done).await?;
    assert_eq!(fixture.status().await?, CrawlState::Running, "its producer may go on");
    eventually(LIMIT, async || {
        let swept = engine.frontier.sweep(&fixture.worker).await?;
        sleep(swept.rest).await;
        Ok(fixture.status().await? == CrawlState::Finished)
    })
    .await?;
    assert_eq!(fixture.crawl_stats().await?.counts.done, 1);
    Ok(())
}

/// A forgotten crawl ends only after messages that may be under way: they know of URLs that its producer does not.
pub async fn a_forgotten_crawl_ends_only_after_what_may_be_under_way(engine: &Engine) -> Result<()> {
    let fixture = Fixture::new(&engine.frontier);
    let forgotten = Lease { crawl: fixture.crawl.clone(), token: 7, terms: Terms::default() };
    let lease =
        engine.frontier.open(&forgotten.crawl, forgotten.terms, "producer", LONG, Past::Certain).await?;
    engine.queue.publish(&[fixture.message(0)]).await?;
    engine.frontier.close(lease, None).await?;
    assert_eq!(fixture.status().await?, CrawlState::Running, "its messages may be under way");
    let mut consumer = engine.queue.consume(10, 10).await?;
    eventually(LIMIT, async || {
        for (message, receipt) in sweep_round(engine, &fixture, &mut *consumer).await? {
            engine.frontier.claim(&fixture.worker, std::slice::from_ref(&message)).await?;
            fixture.finish(0, Terminal::Done).await?;
            engine.queue.ack(&[receipt]).await?;
        }
        Ok(fixture.status().await? == CrawlState::Finished)
    })
    .await?;
    assert_eq!(fixture.crawl_stats().await?.counts.done, 1, "it did not end before");
    Ok(())
}
