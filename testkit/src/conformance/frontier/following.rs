//! Admitting links, and the limits of a crawl.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::frontier::limit::{LeftOut, Limit};
use trawl_common::frontier::outcome::{Skip, Terminal};
use trawl_common::frontier::{ClaimReply, MAX_STARTS, Recrawl, Start, Taken};
use trawl_common::names::WorkerId;
use trawl_common::ports::{Finish, NewWork, Result, Terms};
use trawl_engine::{Lease, Linked, Linking, Past, Records};

use crate::conformance::eventually;
use crate::conformance::fixture::{Fixture, LONG, TAKE};

impl Fixture<'_> {
    async fn open_with(&self, terms: Terms) -> Result<Lease> {
        self.frontier.open(&self.crawl, terms, "producer", LONG, Past::Possible).await
    }

    /// Has a worker admit the links of a page. Returns what became of each, or `None` if the worker does not hold the
    /// page.
    async fn take(&self, worker: &WorkerId, from: usize, to: &[usize]) -> Result<Option<Vec<Taken>>> {
        let link =
            |number: &usize| NewWork { depth: 1, referrer: Some(self.key(from)), ..self.new_work(*number) };
        let linking = Linking { page: self.claim_on(from), links: to.iter().map(link).collect() };
        Ok(self.frontier.admit_links(worker, &[linking]).await?.remove(0).taken())
    }

    /// Has a worker admit the links of a page. Returns whether each is new, or `None` if the worker does not hold the
    /// page.
    async fn follow(&self, worker: &WorkerId, from: usize, to: &[usize]) -> Result<Option<Vec<bool>>> {
        let taken = self.take(worker, from, to).await?;
        Ok(taken.map(|taken| taken.into_iter().map(|taken| taken == Taken::New).collect()))
    }

    /// Claims and starts a page.
    async fn try_start(&self, number: usize) -> Result<Start> {
        let reply = self.claim(&self.worker, number).await?;
        assert!(matches!(reply, ClaimReply::Take { .. }), "page {number}: {reply:?}");
        self.start(&self.worker, number).await
    }
}

fn limit(number: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(number)
}

/// A link is admitted once, whichever page has it, even if sources have named it; and a crawl does not end between a
/// page and its links.
pub async fn what_pages_link_to_is_admitted_once(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(2).await?;
    frontier.close(lease, None).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.claim(&fixture.other, 1).await?;
    assert_eq!(
        fixture.follow(&fixture.worker, 0, &[1, 2, 2, 3]).await?,
        Some(vec![false, true, false, true])
    );
    assert_eq!(
        fixture.follow(&fixture.worker, 0, &[2]).await?,
        Some(vec![false]),
        "repeated, it is as before"
    );
    assert_eq!(fixture.follow(&fixture.other, 1, &[0, 3, 4]).await?, Some(vec![false, false, true]));
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    assert!(fixture.end(&fixture.other, 1, Terminal::Done).await?);
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.pending, stats.status), (5, 3, CrawlState::Running));
    for number in 2..5 {
        assert_eq!(fixture.claim(&fixture.worker, number).await?, TAKE);
        fixture.finish(number, Terminal::Done).await?;
    }
    assert_eq!(fixture.status().await?, CrawlState::Finished);
    Ok(())
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

/// Links to one host are admitted up to a limit, as a host may be a trap with ever more pages.
pub async fn links_to_one_host_are_taken_up_to_a_limit(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.open_with(Terms { max_per_host: limit(4), ..Terms::default() }).await?;
    fixture.admit(&lease, [0, 1]).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let answer = fixture.take(&fixture.worker, 0, &[1, 2, 3, 4, 5]).await?;
    let (seen, new, left_out) = (Taken::Seen, Taken::New, Taken::LeftOut);
    assert_eq!(answer, Some(vec![seen, new, new, left_out, left_out]));
    assert_eq!(fixture.take(&fixture.worker, 0, &[3, 4]).await?, Some(vec![seen, left_out]));
    let elsewhere = Fixture::new(frontier);
    let linking = Linking { page: fixture.claim_on(0), links: vec![elsewhere.new_work(0)] };
    assert_eq!(
        frontier.admit_links(&fixture.worker, &[linking]).await?,
        [Linked::Taken(vec![new])],
        "of another host"
    );
    assert_eq!(fixture.crawl_stats().await?.counts.admitted, 5);
    assert_eq!(fixture.admit(&lease, [8]).await?, [true], "what sources name is no trap");
    Ok(())
}

/// No more pages begin than the limit of the crawl allows, however many are under way at once: a page begins only if it
/// can be one of them.
pub async fn no_more_pages_begin_than_the_crawl_may_do(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.open_with(Terms { max_pages: limit(2), ..Terms::default() }).await?;
    fixture.admit(&lease, 0..6).await?;
    assert_eq!(fixture.try_start(0).await?, Start::Go);
    assert_eq!(fixture.try_start(1).await?, Start::Go);
    assert_eq!(fixture.start(&fixture.worker, 1).await?, Start::Go, "asked again, it counts once");
    assert_eq!(fixture.try_start(2).await?, Start::Awaited);
    fixture.finish(0, Terminal::Failed).await?;
    assert_eq!(fixture.start(&fixture.worker, 2).await?, Start::Go, "one failed, so there is room");
    fixture.park(&fixture.worker, 1, trawl_common::time::UnixMs(1), true).await?;
    assert_eq!(fixture.try_start(3).await?, Start::Go, "one is put aside, so there is room");
    fixture.release(&fixture.worker, 3).await?;
    assert_eq!(fixture.try_start(4).await?, Start::Go, "one was given back, so there is room");
    assert_eq!(fixture.try_start(1).await?, Start::Awaited);
    fixture.finish(2, Terminal::Done).await?;
    assert_eq!(fixture.start(&fixture.worker, 1).await?, Start::Awaited);
    Ok(())
}

/// A crawl that has reached its limit skips all other URLs, each once, and ends.
pub async fn a_crawl_that_has_done_all_that_it_may_skips_the_rest(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.open_with(Terms { max_pages: limit(2), ..Terms::default() }).await?;
    fixture.admit(&lease, 0..800).await?;
    fixture.claim(&fixture.other, 7).await?;
    for number in [0, 1] {
        fixture.try_start(number).await?;
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

/// Pages beyond the limit do not count as done, even if they were fetched.
pub async fn more_than_it_may_do_is_never_counted_as_done(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.open_with(Terms { max_pages: limit(1), ..Terms::default() }).await?;
    fixture.admit(&lease, 0..3).await?;
    fixture.finish_all(&[fixture.ending(0, Terminal::Done), fixture.ending(1, Terminal::Done)]).await?;
    assert_eq!(fixture.crawl_stats().await?.counts.done, 1);
    Ok(())
}

/// Returns a crawl with a limit of one page that has two. The first was started the maximum number of times, and never
/// ended.
async fn with_a_suspect(frontier: &Arc<dyn Records>) -> Result<Fixture<'_>> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.open_with(Terms { max_pages: limit(1), ..Terms::default() }).await?;
    fixture.admit(&lease, 0..2).await?;
    for _ in 0..MAX_STARTS {
        assert_eq!(fixture.try_start(0).await?, Start::Go);
    }
    Ok(fixture)
}

/// At the limit a suspect is not poison, but left out like all others: a later crawl finds out.
pub async fn at_the_limit_a_suspect_is_no_poison(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = with_a_suspect(frontier).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.claim(&fixture.other, 1).await?;
    assert!(fixture.end(&fixture.other, 1, Terminal::Done).await?);
    // It may have been skipped already.
    let answer = fixture.start(&fixture.worker, 0).await?;
    assert!(matches!(answer, Start::Full | Start::Lost), "{answer:?}");
    Ok(())
}

/// Poison is reported although no place under the limit is free: it takes none.
pub async fn poison_is_reported_although_no_place_is_free(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = with_a_suspect(frontier).await?;
    // Released before it starts again, it leaves its place to the other.
    fixture.claim(&fixture.worker, 0).await?;
    fixture.release(&fixture.worker, 0).await?;
    assert_eq!(fixture.try_start(1).await?, Start::Go);
    assert_eq!(fixture.try_start(0).await?, Start::Poison);
    Ok(())
}

/// A recrawl takes each URL once, although its spider has seen all of them.
pub async fn a_recrawl_takes_each_url_once_though_all_were_seen(frontier: &Arc<dyn Records>) -> Result<()> {
    let first = Fixture::new(frontier);
    let lease = first.begin(3).await?;
    for number in 0..3 {
        first.claim(&first.worker, number).await?;
        first.finish(number, Terminal::Done).await?;
    }
    frontier.close(lease, None).await?;
    let again = first.next_crawl();
    let lease = again.open_with(Terms { recrawl: Recrawl::Always, ..Terms::default() }).await?;
    assert_eq!(again.admit(&lease, [0, 1, 0]).await?, [true, true, false]);
    assert!(frontier.has_seen(&again.crawl, &again.url(1)).await?);
    assert!(!frontier.has_seen(&again.crawl, &again.url(2)).await?);
    again.claim(&again.worker, 0).await?;
    assert_eq!(again.follow(&again.worker, 0, &[0, 1, 2, 3]).await?, Some(vec![false, false, true, true]));
    let landed = Finish { landed: Some(again.url(9)), ..again.ending(0, Terminal::Done) };
    assert_eq!(frontier.finish(&again.worker, &[landed]).await?, [true]);
    assert_eq!(again.claim(&again.worker, 0).await?, ClaimReply::Drop, "a late copy revives nothing");
    assert_eq!(again.admit(&lease, [9]).await?, [false], "where redirects led counts as seen");
    for number in 1..4 {
        assert_eq!(again.claim(&again.worker, number).await?, TAKE);
        again.finish(number, Terminal::Done).await?;
    }
    frontier.close(lease, None).await?;
    assert_eq!(again.status().await?, CrawlState::Finished);
    let last = first.next_crawl();
    let lease = last.open().await?;
    assert_eq!(last.admit(&lease, [0, 2, 3, 9, 10]).await?, [false, false, false, false, true]);
    Ok(())
}

/// URLs that a recrawl did not fetch are as new to the spider as before.
pub async fn what_a_recrawl_did_not_fetch_stays_as_it_was(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(1).await?;
    fixture.finish(0, Terminal::Done).await?;
    frontier.close(lease, None).await?;
    let again = fixture.next_crawl();
    let lease = again.open_with(Terms { recrawl: Recrawl::Changed, ..Terms::default() }).await?;
    again.admit(&lease, 0..2).await?;
    again.finish(0, Terminal::Expired).await?;
    again.finish(1, Terminal::Expired).await?;
    frontier.close(lease, None).await?;
    assert_eq!(again.status().await?, CrawlState::Finished);
    let last = fixture.next_crawl();
    let lease = last.open().await?;
    assert_eq!(last.admit(&lease, 0..2).await?, [false, true]);
    Ok(())
}

/// The terms of a crawl are known, and bind workers that join later.
pub async fn the_terms_of_a_crawl_are_known(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    assert_eq!(frontier.terms(&fixture.crawl).await?, Terms::default());
    let terms = Terms {
        recrawl: Recrawl::Age(Duration::from_secs(90)),
        max_pages: limit(7),
        max_per_host: limit(8),
        file: None,
    };
    let lease = fixture.open_with(terms).await?;
    assert_eq!((lease.terms, frontier.terms(&fixture.crawl).await?), (terms, terms));
    let fewer = Terms { max_pages: limit(3), ..Terms::default() };
    let lease = fixture.open_with(fewer).await?;
    assert_eq!(lease.terms.recrawl, terms.recrawl);
    let answer = frontier.terms(&fixture.crawl).await?;
    assert_eq!(answer, Terms { recrawl: terms.recrawl, ..fewer }, "limits can change, what is seen cannot");
    Ok(())
}

/// The stats count exactly by reason, host and amount.
pub async fn the_stats_count_by_reason_host_and_amount(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(6).await?;
    let done = |number| Finish {
        bytes: 1000,
        missing: vec!["price".to_owned(), "name".to_owned()],
        ..Finish::new(fixture.claim_on(number), Terminal::Done)
    };
    let skipped = |number, why: Skip| Finish {
        why: Some(why.as_str()),
        ..Finish::new(fixture.claim_on(number), Terminal::Skipped)
    };
    let ends = [done(0), done(1), done(1), skipped(2, Skip::Robots), skipped(3, Skip::ContentType)];
    fixture.finish_all(&ends).await?;
    fixture.finish(5, Terminal::Failed).await?;
    let stats = fixture.crawl_stats().await?;
    let reason = |name: &str| stats.reasons.get(name).copied();
    assert_eq!((stats.bytes, reason("missing:price"), reason("missing:name")), (2000, Some(2), Some(2)));
    assert_eq!((reason("skipped:robots"), reason("skipped:content-type")), (Some(1), Some(1)));
    assert_eq!((reason("failed:http"), stats.reasons.len()), (Some(1), 5), "{stats:?}");
    let hosts = frontier.hosts(&fixture.crawl, 10).await?;
    assert_eq!(hosts.len(), 1);
    assert_eq!((hosts[0].counts, hosts[0].bytes, hosts[0].pending()), (stats.counts, 2000, 1));
    assert_eq!(hosts[0].host, trawl_common::web::url::authority(fixture.url(0).as_str()));
    assert!(frontier.hosts(&fixture.crawl, 0).await?.is_empty());
    frontier.close(lease, None).await?;
    Ok(())
}

/// The stats count URLs left out under each limit, once, however often the end of a page is repeated.
pub async fn the_stats_count_what_limits_left_out(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(3).await?;
    let done = |number, depth| {
        let mut left_out = LeftOut::default();
        left_out.add(Limit::Depth, depth);
        left_out.add(Limit::MaxPerHost, 1);
        Finish { left_out, ..Finish::new(fixture.claim_on(number), Terminal::Done) }
    };
    fixture.finish_all(&[done(0, 12), done(1, 30)]).await?;
    frontier.finish(&fixture.worker, &[done(1, 30)]).await?;
    let stats = fixture.crawl_stats().await?;
    let by = |limit: Limit| stats.reasons.get(&format!("left_out:{}", limit.as_str())).copied();
    assert_eq!((by(Limit::Depth), by(Limit::MaxPerHost), by(Limit::PageLinks)), (Some(42), Some(2), None));
    assert_eq!((stats.left_out, stats.reasons.len()), (44, 2));
    frontier.close(lease, None).await?;
    Ok(())
}

/// The stats count any number of missing fields, even more than one call of a server takes values.
pub async fn the_stats_count_any_number_of_missing_fields(frontier: &Arc<dyn Records>) -> Result<()> {
    const FIELDS: usize = 5000;
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(1).await?;
    let missing = (0..FIELDS).map(|number| format!("field{number}")).collect();
    fixture.finish_all(&[Finish { missing, ..Finish::new(fixture.claim_on(0), Terminal::Done) }]).await?;
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.done, stats.reasons.len()), (1, FIELDS));
    assert!(stats.reasons.values().all(|&count| count == 1));
    frontier.close(lease, None).await?;
    Ok(())
}
