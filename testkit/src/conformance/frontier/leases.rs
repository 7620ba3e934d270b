//! Tests of the right to admit URLs.

use std::sync::Arc;
use std::time::Duration;

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{ErrorKind, Result, SourcesRead, Terms};
use trawl_engine::{Lease, Past, Records};

use crate::conformance::eventually;
use crate::conformance::fixture::{Fixture, LONG};

const BRIEF: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_secs(10);

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

/// Admits nothing new, to see whether the lease still gives the right to.
async fn right(fixture: &Fixture<'_>, lease: &Lease) -> Option<ErrorKind> {
    kind(fixture.frontier.admit(lease, &[fixture.new_work(0)]).await)
}

/// Takes a lease for the spider's next crawl, once that of this one has lapsed.
async fn take_lapsed(fixture: &Fixture<'_>) -> Result<Lease> {
    let (mut taken, next) = (None, fixture.next_crawl());
    eventually(LIMIT, async || {
        match fixture.frontier.open(&next.crawl, Terms::default(), "successor", LONG, Past::Possible).await {
            Ok(lease) => taken = Some(lease),
            Err(error) if error.kind == ErrorKind::Busy => {}
            Err(error) => return Err(error),
        }
        Ok(taken.is_some())
    })
    .await?;
    Ok(taken.expect("it was taken just now"))
}

/// `Busy` names the holder and the crawl, for the person who waits.
pub async fn opening_a_second_crawl_fails_and_names_who_reads_the_sources(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.frontier.open(&fixture.crawl, Terms::default(), "first-producer", LONG, Past::Possible).await?;
    let next = fixture.next_crawl();
    let refused = frontier
        .open(&next.crawl, Terms::default(), "second-producer", LONG, Past::Possible)
        .await
        .expect_err("sources are read for another crawl");
    assert_eq!(refused.kind, ErrorKind::Busy);
    let message = refused.to_string();
    assert!(message.contains("first-producer") && message.contains(fixture.crawl.id.as_str()), "{message}");
    assert_eq!(frontier.crawl_stats(&next.crawl.id).await?, None, "a refused crawl has not begun");
    Ok(())
}

/// A crawl of many sources may be fed from many places.
pub async fn several_producers_feed_one_crawl_and_discovery_ends_with_the_last(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let open = |holder| frontier.open(&fixture.crawl, Terms::default(), holder, LONG, Past::Possible);
    let (one, two, three) = (open("one").await?, open("two").await?, open("three").await?);
    assert_eq!(fixture.admit(&one, 0..2).await?, [true, true]);
    assert_eq!(fixture.admit(&two, 1..3).await?, [false, true]);
    for url in 0..3 {
        fixture.finish(url, Terminal::Done).await?;
    }
    frontier.close(one.clone(), None).await?;
    frontier.renew(&two, Duration::ZERO).await?;
    assert_eq!([right(&fixture, &one).await, right(&fixture, &two).await], [Some(ErrorKind::Stale); 2]);
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.status, stats.discovered), (CrawlState::Running, false), "the third is still reading");
    frontier.close(three.clone(), None).await?;
    assert_eq!(fixture.status().await?, CrawlState::Finished);
    // The answer of the first call may have been lost.
    frontier.close(three, None).await
}

/// Of those who read sources one may die.
pub async fn a_producer_that_died_does_not_hold_up_the_others(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let dead = frontier.open(&fixture.crawl, Terms::default(), "dead", BRIEF, Past::Possible).await?;
    let alive = frontier.open(&fixture.crawl, Terms::default(), "alive", LONG, Past::Possible).await?;
    eventually(LIMIT, async || Ok(right(&fixture, &dead).await == Some(ErrorKind::Stale))).await?;
    assert_eq!(right(&fixture, &alive).await, None);
    frontier.close(alive, None).await?;
    assert!(fixture.crawl_stats().await?.discovered);
    Ok(())
}

/// Complete once another holder has read those sources to their end; a lease without sources does not count.
pub async fn a_crawl_is_incomplete_whose_sources_were_left_by_one_that_died(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let open = |holder, ttl| frontier.open(&fixture.crawl, Terms::default(), holder, ttl, Past::Possible);
    let dead = open("dead 0001", BRIEF).await?;
    let silent = open("silent", BRIEF).await?;
    let alive = open("alive 0002", LONG).await?;
    fixture.admit(&alive, 0..1).await?;
    eventually(LIMIT, async || Ok(right(&fixture, &dead).await == Some(ErrorKind::Stale))).await?;
    eventually(LIMIT, async || Ok(right(&fixture, &silent).await == Some(ErrorKind::Stale))).await?;
    let whole = Some(SourcesRead::default());
    frontier.close(alive, whole).await?;
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.discovered, stats.incomplete), (true, true));
    // A process that takes on what another has left is another holder.
    let successor = open("successor 0001", LONG).await?;
    frontier.close(successor, whole).await?;
    assert!(!fixture.crawl_stats().await?.incomplete);
    Ok(())
}

/// To open is idempotent: the answer of the first call may have been lost.
pub async fn the_holder_of_a_lease_may_open_again(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.open().await?;
    let lease = fixture.open().await?;
    assert_eq!(right(&fixture, &lease).await, None);
    Ok(())
}

/// A producer that was thought dead must stop.
pub async fn a_lapsed_lease_is_for_the_next_and_stale_for_the_last(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lapsed = frontier.open(&fixture.crawl, Terms::default(), "producer", BRIEF, Past::Possible).await?;
    eventually(LIMIT, async || Ok(right(&fixture, &lapsed).await == Some(ErrorKind::Stale))).await?;
    let lease = frontier.open(&fixture.crawl, Terms::default(), "successor", LONG, Past::Possible).await?;
    assert_eq!(right(&fixture, &lapsed).await, Some(ErrorKind::Stale));
    assert_eq!(kind(frontier.renew(&lapsed, LONG).await), Some(ErrorKind::Stale));
    assert_eq!(kind(frontier.close(lapsed, None).await), Some(ErrorKind::Stale));
    assert!(!fixture.crawl_stats().await?.discovered, "the successor is still reading");
    assert_eq!(right(&fixture, &lease).await, None);
    Ok(())
}

/// Measured by another lease of the same term, taken later: when that one has lapsed, this one has not.
pub async fn a_renewed_lease_outlives_its_first_term(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let hourglass = fixture.other_spider();
    let lease =
        frontier.open(&fixture.crawl, Terms::default(), "producer", BRIEF * 4, Past::Possible).await?;
    frontier.renew(&lease, LONG).await?;
    frontier.open(&hourglass.crawl, Terms::default(), "producer", BRIEF * 4, Past::Possible).await?;
    take_lapsed(&hourglass).await?;
    assert_eq!(right(&fixture, &lease).await, None);
    let next = fixture.next_crawl();
    assert_eq!(
        kind(frontier.open(&next.crawl, Terms::default(), "successor", LONG, Past::Possible).await),
        Some(ErrorKind::Busy)
    );
    Ok(())
}

/// Even if nobody has taken it: by then it may have been taken for dead.
pub async fn a_lapsed_lease_cannot_be_renewed(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = frontier.open(&fixture.crawl, Terms::default(), "producer", BRIEF, Past::Possible).await?;
    eventually(LIMIT, async || Ok(right(&fixture, &lease).await == Some(ErrorKind::Stale))).await?;
    assert_eq!(kind(frontier.renew(&lease, LONG).await), Some(ErrorKind::Stale));
    assert_eq!(right(&fixture, &lease).await, Some(ErrorKind::Stale));
    Ok(())
}

/// With its URLs, its counters and, again, the right to admit.
pub async fn a_lapsed_lease_is_taken_again_by_its_holder(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = frontier.open(&fixture.crawl, Terms::default(), "producer", BRIEF, Past::Possible).await?;
    frontier.admit(&lease, &[fixture.new_work(0)]).await?;
    eventually(LIMIT, async || Ok(right(&fixture, &lease).await == Some(ErrorKind::Stale))).await?;
    let again = frontier.open(&lease.crawl, lease.terms, "producer", LONG, Past::Certain).await?;
    assert_eq!(fixture.admit(&again, 0..2).await?, [false, true]);
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.discovered), (2, false));
    Ok(())
}

/// To lose a lease may be to lose it to the spider's next crawl, or with its own.
pub async fn a_lease_is_not_taken_again_from_another_crawl_nor_for_one_that_is_over(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lost = frontier.open(&fixture.crawl, Terms::default(), "producer", BRIEF, Past::Possible).await?;
    let next = take_lapsed(&fixture).await?;
    assert_eq!(
        kind(frontier.open(&lost.crawl, lost.terms, "producer", LONG, Past::Certain).await),
        Some(ErrorKind::Busy)
    );
    frontier.close(next, None).await?;
    let again = frontier.open(&lost.crawl, lost.terms, "producer", LONG, Past::Certain).await?;
    frontier.close(again, None).await?;
    assert_eq!(
        kind(frontier.open(&lost.crawl, lost.terms, "producer", LONG, Past::Certain).await),
        Some(ErrorKind::Stale)
    );
    Ok(())
}

/// A store that was emptied does not stop a producer.
pub async fn a_crawl_that_is_not_known_any_more_is_opened_anew(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let forgotten = Lease { crawl: fixture.crawl.clone(), token: 7, terms: Terms::default() };
    let lease = frontier.open(&forgotten.crawl, forgotten.terms, "producer", LONG, Past::Certain).await?;
    assert_eq!(fixture.admit(&lease, 0..2).await?, [true, true]);
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.status, stats.counts.admitted), (CrawlState::Running, 2));
    Ok(())
}

/// A producer that is stopped leaves the sources to another run.
pub async fn a_lease_renewed_for_no_time_is_given_back(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(1).await?;
    for _ in 0..2 {
        frontier.renew(&lease, Duration::ZERO).await?;
    }
    assert_eq!(right(&fixture, &lease).await, Some(ErrorKind::Stale));
    fixture.finish(0, Terminal::Done).await?;
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.status, stats.discovered), (CrawlState::Running, false));
    frontier.open(&fixture.crawl, Terms::default(), "successor", LONG, Past::Possible).await?;
    Ok(())
}

/// Closing ends the right to admit, and lets the next producer in.
pub async fn a_lease_given_back_is_stale(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(1).await?;
    frontier.close(lease.clone(), None).await?;
    assert_eq!(right(&fixture, &lease).await, Some(ErrorKind::Stale));
    assert_eq!(kind(frontier.renew(&lease, LONG).await), Some(ErrorKind::Stale));
    assert!(fixture.crawl_stats().await?.discovered);
    frontier.open(&fixture.next_crawl().crawl, Terms::default(), "successor", LONG, Past::Possible).await?;
    Ok(())
}
