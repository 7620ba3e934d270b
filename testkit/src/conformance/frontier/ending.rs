//! The ends of URLs and crawls.

use std::sync::Arc;

use trawl_common::frontier::crawl::Counts;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::Result;
use trawl_engine::Records;

use crate::conformance::fixture::{Fixture, much_later};

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
