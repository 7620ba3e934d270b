//! Admitting links, and the limits of a crawl.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::frontier::outcome::{Skip, Terminal};
use trawl_common::frontier::{ClaimReply, Taken};
use trawl_common::names::WorkerId;
use trawl_common::ports::{Finish, NewWork, Result, Terms};
use trawl_engine::{Linked, Linking, Past, Records};

use crate::conformance::eventually;
use crate::conformance::fixture::{Fixture, LONG};

impl Fixture<'_> {
    /// Has a worker admit the links of a page. Returns whether each is new, or `None` if the worker does not hold the
    /// page.
    async fn follow(&self, worker: &WorkerId, from: usize, to: &[usize]) -> Result<Option<Vec<bool>>> {
        let link =
            |number: &usize| NewWork { depth: 1, referrer: Some(self.key(from)), ..self.new_work(*number) };
        let linking = Linking { page: self.claim_on(from), links: to.iter().map(link).collect() };
        let taken = self.frontier.admit_links(worker, &[linking]).await?.remove(0).taken();
        Ok(taken.map(|taken| taken.into_iter().map(|taken| taken == Taken::New).collect()))
    }
}

/// Only the holder of a page admits its links: a worker that was stopped for long would otherwise add to a page that
/// another has fetched again, or to a crawl that is over.
pub async fn only_the_holder_of_a_page_admits_its_links(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(2).await?;
    fixture.claim(&fixture.worker, 0).await?;
    assert_eq!(fixture.follow(&fixture.other, 0, &[7]).await?, None);
    assert_eq!(fixture.follow(&fixture.worker, 1, &[7]).await?, None, "nobody holds it");
    assert_eq!(fixture.follow(&fixture.worker, 9, &[7]).await?, None, "it was never admitted");
    fixture.finish(0, Terminal::Done).await?;
    assert_eq!(fixture.follow(&fixture.worker, 0, &[7]).await?, None, "it has ended");
    assert_eq!(fixture.crawl_stats().await?.counts.admitted, 2);
    Ok(())
}

/// Any number of links is answered in order: all links of one page, and those of several pages in one call.
pub async fn any_number_of_links_is_answered_in_order(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(1).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let all: Vec<usize> = (0..1300).collect();
    let new = fixture.follow(&fixture.worker, 0, &all).await?.expect("it is held");
    assert!(new.iter().enumerate().all(|(number, new)| *new == (number > 0)));
    let links = |page, link| Linking { page: fixture.claim_on(page), links: vec![fixture.new_work(link)] };
    let answer =
        frontier.admit_links(&fixture.worker, &[links(0, 2000), links(1, 2001), links(0, 2000)]).await?;
    let taken = |taken| Linked::Taken(vec![taken]);
    assert_eq!(answer, [taken(Taken::New), Linked::NotHeld, taken(Taken::Seen)]);
    Ok(())
}

/// A crawl that has reached its limit skips all other URLs, each once, and ends.
pub async fn a_crawl_that_has_done_all_that_it_may_skips_the_rest(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let terms = Terms { max_pages: NonZeroU64::new(2), ..Terms::default() };
    let lease = frontier.open(&fixture.crawl, terms, "producer", LONG, Past::Possible).await?;
    fixture.admit(&lease, 0..800).await?;
    fixture.claim(&fixture.other, 7).await?;
    for number in [0, 1] {
        fixture.claim(&fixture.worker, number).await?;
        fixture.start(&fixture.worker, number).await?;
        fixture.finish(number, Terminal::Done).await?;
    }
    fixture.admit(&lease, 800..802).await?;
    assert_eq!(fixture.claim(&fixture.worker, 800).await?, ClaimReply::Full);
    let skipped =
        Finish { why: Some(Skip::Limit.as_str()), ..Finish::new(fixture.claim_on(800), Terminal::Skipped) };
    frontier.finish(&fixture.worker, &[skipped]).await?;
    frontier.close(lease, None).await?;
    eventually(Duration::from_secs(30), async || {
        frontier.sweep(&fixture.worker).await?;
        Ok(fixture.status().await? == CrawlState::Finished)
    })
    .await?;
    let CrawlStats { counts, reasons, .. } = fixture.crawl_stats().await?;
    assert_eq!((counts.done, counts.skipped, counts.admitted), (2, 800, 802));
    assert_eq!(reasons.get("skipped:limit"), Some(&800));
    let next = fixture.next_crawl();
    let lease = next.open().await?;
    eventually(Duration::from_secs(30), async || {
        frontier.sweep(&fixture.worker).await?;
        Ok(next.admit(&lease, [5]).await? == [true])
    })
    .await?;
    assert_eq!(next.admit(&lease, [0, 1]).await?, [false, false]);
    Ok(())
}
