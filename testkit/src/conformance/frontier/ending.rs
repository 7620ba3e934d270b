//! The ends of URLs and crawls.

use std::sync::Arc;
use std::time::Duration;

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::Result;
use trawl_common::time::UnixMs;
use trawl_engine::Records;

use crate::conformance::fixture::{Fixture, much_later};
use crate::conformance::{eventually, unique};

/// The first call ends a URL; later ones do not count, in the same batch or not, with whatever state.
pub async fn a_url_ends_once(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(2).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let twice = [fixture.ending(0, Terminal::Done), fixture.ending(0, Terminal::Done)];
    assert_eq!(frontier.finish(&fixture.worker, &twice).await?, [true, true]);
    let before = fixture.crawl_stats().await?;
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?, "repeated, it is as before");
    assert!(fixture.end(&fixture.worker, 0, Terminal::Failed).await?);
    let after = fixture.crawl_stats().await?;
    assert_eq!(after.counts, before.counts);
    assert_eq!(after.counts, Counts { admitted: 2, done: 1, ..Counts::default() });
    assert_eq!(after.pending, 1);
    Ok(())
}

/// Every terminal state has its own counter.
pub async fn every_terminal_state_has_its_counter(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(Terminal::ALL.len()).await?;
    let mut expected = Counts { admitted: Terminal::ALL.len() as u64, ..Counts::default() };
    for (number, terminal) in Terminal::ALL.into_iter().enumerate() {
        fixture.finish(number, terminal).await?;
        *expected.of(terminal) += 1;
        assert_eq!(fixture.crawl_stats().await?.counts, expected);
    }
    assert_eq!(fixture.crawl_stats().await?.pending, 0);
    Ok(())
}

/// Only its holder ends a URL: a worker that was stopped for long would otherwise decide about URLs that another holds,
/// or that wait.
pub async fn only_the_holder_ends_a_url(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(3).await?;
    for number in [1, 2] {
        fixture.claim(&fixture.worker, number).await?;
    }
    fixture.park(&fixture.worker, 1, much_later(), false).await?;
    let ends = [0, 1, 2].map(|number| fixture.ending(number, Terminal::Failed));
    assert_eq!(frontier.finish(&fixture.other, &ends).await?, [false; 3]);
    assert_eq!(frontier.finish(&fixture.worker, &ends).await?, [false, false, true], "not queued or parked");
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.failed, stats.pending), (1, 2));
    Ok(())
}

/// A URL that was never admitted does not end or count, whether its crawl is known or not.
pub async fn what_was_never_admitted_does_not_end(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    assert!(!fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    fixture.begin(1).await?;
    assert!(!fixture.end(&fixture.worker, 1, Terminal::Done).await?);
    assert_eq!(fixture.crawl_stats().await?.counts, Counts { admitted: 1, ..Counts::default() });
    Ok(())
}

/// URLs of several crawls end in one call, and each crawl gets its own count and its own end.
pub async fn urls_of_several_crawls_end_in_one_call(frontier: &Arc<dyn Records>) -> Result<()> {
    let one = Fixture::new(frontier);
    let two = one.other_spider();
    let leases = [one.begin(1).await?, two.begin(2).await?];
    for lease in leases {
        frontier.close(lease, None).await?;
    }
    let ends =
        [two.ending(0, Terminal::Done), one.ending(0, Terminal::Failed), one.ending(7, Terminal::Done)];
    one.claim(&one.worker, 0).await?;
    two.claim(&one.worker, 0).await?;
    assert_eq!(frontier.finish(&one.worker, &ends).await?, [true, true, false]);
    assert_eq!(one.status().await?, CrawlState::Finished);
    assert_eq!(two.status().await?, CrawlState::Running);
    assert_eq!((one.crawl_stats().await?.counts.failed, two.crawl_stats().await?.counts.done), (1, 1));
    Ok(())
}

/// Once discovery has ended, a crawl ends with its last URL, not with an earlier one.
pub async fn a_crawl_ends_with_its_last_url_once_discovery_has_ended(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(1).await?;
    fixture.finish(0, Terminal::Done).await?;
    assert_eq!(fixture.status().await?, CrawlState::Running, "more may be admitted");
    fixture.admit(&lease, 1..3).await?;
    frontier.close(lease, None).await?;
    fixture.finish(1, Terminal::Skipped).await?;
    assert_eq!(fixture.status().await?, CrawlState::Running, "one is left");
    fixture.finish(2, Terminal::Failed).await?;
    assert_eq!(fixture.status().await?, CrawlState::Finished);
    Ok(())
}

/// A crawl with no URL left ends with discovery: its last URL may end before its last source.
pub async fn a_crawl_with_no_url_left_ends_with_discovery(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(1).await?;
    fixture.finish(0, Terminal::Done).await?;
    assert_eq!(fixture.status().await?, CrawlState::Running);
    frontier.close(lease, None).await?;
    assert_eq!(fixture.status().await?, CrawlState::Finished);
    Ok(())
}

/// A crawl without URLs ends with discovery: sources may name none.
pub async fn an_empty_crawl_ends_with_discovery(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.open().await?;
    assert_eq!(fixture.status().await?, CrawlState::Running);
    frontier.close(lease, None).await?;
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, Counts::default()));
    Ok(())
}

/// The `seconds` of a crawl grow until its end.
pub async fn the_clock_of_a_crawl_stops_at_its_end(frontier: &Arc<dyn Records>) -> Result<()> {
    let (running, finished) = (Fixture::new(frontier), Fixture::new(frontier));
    running.open().await?;
    frontier.close(finished.open().await?, None).await?;
    let (first, end) = (running.crawl_stats().await?.seconds, finished.crawl_stats().await?.seconds);
    eventually(Duration::from_secs(10), async || Ok(running.crawl_stats().await?.seconds > first)).await?;
    assert!(finished.crawl_stats().await?.seconds <= end, "it took {end} s, once and for all");
    Ok(())
}

/// An unknown crawl has no stats: `None`, not stats without counts.
pub async fn an_unknown_crawl_has_no_stats(frontier: &Arc<dyn Records>) -> Result<()> {
    let unknown = unique("crawl").parse().expect("a unique name is a name");
    assert_eq!(frontier.crawl_stats(&unknown).await?, None);
    Ok(())
}

/// Crawls are listed newest first, running or over, each with its own stats.
pub async fn crawls_are_listed_the_newest_first(frontier: &Arc<dyn Records>) -> Result<()> {
    let (older, newer) = (Fixture::new(frontier), Fixture::new(frontier));
    older.begin(2).await?;
    let started = older.crawl_stats().await?.started;
    eventually(Duration::from_secs(10), async || Ok(UnixMs::now() > started.plus(Duration::from_millis(5))))
        .await?;
    frontier.close(newer.open().await?, None).await?;
    let all = frontier.crawls().await?;
    let place = |fixture: &Fixture<'_>| all.iter().position(|stats| stats.crawl == fixture.crawl.id);
    let (at_newer, at_older) = (place(&newer).expect("listed"), place(&older).expect("listed"));
    assert!(at_newer < at_older);
    assert_eq!(all[at_newer].status, CrawlState::Finished);
    assert_eq!((all[at_older].status, all[at_older].pending), (CrawlState::Running, 2));
    Ok(())
}
