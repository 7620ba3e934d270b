//! Tests of links, crawl limits, and the page history.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::time::Duration;

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::limit::Limit;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{MAX_STARTS, Period, Recrawl, StartReply};
use trawl_common::ports::{
    Claimed, Completion, Disposition, Finish, NewWork, Opening, PageVisit, Result, Settlement, Terms,
};
use trawl_common::spider::item::Change;
use trawl_common::spider::page_history::{Validators, Visited};
use trawl_common::time::UnixMs;
use trawl_common::web::url::Fingerprint;

use super::{Carrier, Worker, done, ends};
use crate::conformance::fixture::{Case, LONG};

fn limit(number: u64) -> Option<NonZeroU64> {
    NonZeroU64::new(number)
}

fn links(case: &Case, numbers: &[usize]) -> Vec<NewWork> {
    let link = |number: &usize| NewWork { depth: 1, referrer: Some(case.key(0)), ..case.new_work(*number) };
    numbers.iter().map(link).collect()
}

impl Worker {
    /// Ends a page with links to others. Returns whether it was still held.
    async fn follow(&self, case: &Case, claimed: &Claimed, to: &[usize]) -> bool {
        self.settle_unstarted(claimed, done(&claimed.message, links(case, to))).await
    }
}

impl Carrier {
    /// Opens a crawl of this many pages, whose sources stay open.
    async fn begin_with(&self, case: &Case, pages: usize, terms: Terms) -> Result<()> {
        let session = self.open(case, terms).await?;
        session.admit(&(0..pages).map(|number| case.new_work(number)).collect::<Vec<_>>()).await?;
        session.abandon().await
    }
}

/// Each once, whoever links to it, also when sources have named it.
pub async fn what_pages_link_to_is_admitted_once(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 2, Terms::default()).await?;
    let claimed = worker.claim_pages(2).await;
    assert!(worker.follow(&case, &claimed[&0], &[1, 2, 2, 3]).await);
    assert!(worker.follow(&case, &claimed[&1], &[0, 3, 4]).await);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts.admitted, stats.pending, stats.status), (5, 3, CrawlState::Running));
    worker.work_off(3).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// All links of one page.
pub async fn any_number_of_links_is_admitted_in_order(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    let all = links(&case, &(0..1300).collect::<Vec<_>>());
    let settlement =
        Settlement { message: claimed.message.clone(), disposition: done(&claimed.message, all.clone()) };
    let settled = worker.frontier.settle(vec![settlement]).await?;
    assert_eq!(settled.ended[0].links, all);
    assert_eq!(carrier.stats(&case).await?.counts.admitted, 1300);
    Ok(())
}

/// A trap is a host with ever more pages.
pub async fn links_to_one_host_are_taken_up_to_a_limit(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms { max_per_host: limit(4), ..Terms::default() }).await?;
    session.admit(&[case.new_work(0), case.new_work(1)]).await?;
    let claimed = worker.claim_pages(2).await;
    let elsewhere = Case::new();
    let mut to = links(&case, &[1, 2, 3, 4, 5]);
    to.push(elsewhere.new_work(0));
    let message = claimed[&0].message.clone();
    let settlement = Settlement { disposition: done(&message, to), message };
    let settled = worker.frontier.settle(vec![settlement]).await?;
    let mut known = links(&case, &[1, 2, 3]);
    known.push(elsewhere.new_work(0));
    assert_eq!(settled.ended[0].links, known);
    let left_out: Vec<_> = settled.ended[0].finish.left_out.iter().collect();
    assert_eq!(left_out, [(Limit::MaxPerHost, 2)]);
    assert!(worker.follow(&case, &claimed[&1], &[3, 4]).await);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts.admitted, stats.left_out), (5, 3));
    assert_eq!(stats.reasons.get("left_out:max_per_host"), Some(&3));
    assert_eq!(session.admit(&[case.new_work(8)]).await?, [true], "what sources name is no trap");
    session.close().await
}

/// Exactly so many, however many are under way at once: a page begins only if it can be one of them.
pub async fn no_more_pages_begin_than_the_crawl_may_do(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin_with(&case, 6, Terms { max_pages: limit(2), ..Terms::default() }).await?;
    let claimed = worker.claim_pages(6).await;
    assert_eq!(worker.start(&claimed[&0]).await, StartReply::Go);
    assert_eq!(worker.start(&claimed[&1]).await, StartReply::Go);
    assert_eq!(worker.start(&claimed[&1]).await, StartReply::Go, "asked again, it counts once");
    assert_eq!(worker.start(&claimed[&2]).await, StartReply::Awaited);
    assert!(worker.end(&case, &claimed[&0], Terminal::Failed).await);
    assert_eq!(worker.start(&claimed[&2]).await, StartReply::Go, "one failed, so there is room");
    worker.park(&claimed[&1], UnixMs::now().plus(LONG), true).await;
    assert_eq!(worker.start(&claimed[&3]).await, StartReply::Go, "one is put aside, so there is room");
    worker.park(&claimed[&3], UnixMs::now().plus(LONG), false).await;
    assert_eq!(worker.start(&claimed[&4]).await, StartReply::Go, "as before");
    assert_eq!(worker.start(&claimed[&5]).await, StartReply::Awaited);
    assert!(worker.end(&case, &claimed[&2], Terminal::Done).await);
    assert_eq!(worker.start(&claimed[&5]).await, StartReply::Awaited);
    Ok(())
}

/// Each URL once in that crawl, though its spider has seen them all.
pub async fn a_recrawl_takes_each_url_once_though_all_were_seen(carrier: &Carrier) -> Result<()> {
    let first = Case::new();
    let worker = carrier.join(&first);
    carrier.begin(&first, 3, Terms::default()).await?;
    worker.work_off(3).await;
    let again = first.next_crawl();
    let session = carrier.open(&again, Terms { recrawl: Recrawl::Always, ..Terms::default() }).await?;
    let urls = [0, 1, 0].map(|number| again.new_work(number));
    assert_eq!(session.admit(&urls).await?, [true, true, false]);
    assert!(worker.frontier.has_seen(&again.crawl, &again.url(1)).await?);
    assert!(!worker.frontier.has_seen(&again.crawl, &again.url(2)).await?);
    let claimed = worker.claim_pages(2).await;
    assert!(worker.follow(&again, &claimed[&0], &[0, 1, 2, 3]).await);
    let landed = Finish { landed: Some(again.url(9)), ..again.ending(1, Terminal::Done) };
    assert!(worker.settle_unstarted(&claimed[&1], ends(landed)).await);
    assert_eq!(session.admit(&[again.new_work(9)]).await?, [false], "where redirects led counts as seen");
    worker.work_off(2).await;
    session.close().await?;
    let stats = carrier.stats(&again).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 4));
    let last = first.next_crawl();
    let session = carrier.open(&last, Terms::default()).await?;
    let urls = [0, 2, 3, 9, 10].map(|number| last.new_work(number));
    assert_eq!(session.admit(&urls).await?, [false, false, false, false, true]);
    session.close().await
}

/// Each visit, and what the pages link to; what is gone is forgotten.
pub async fn what_is_remembered_of_pages_is_there_when_they_have_ended(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 2, Terms::default()).await?;
    let spider = &case.crawl.spider;
    let visited = Visited {
        fetched_at: UnixMs(1_700_000_000_000),
        validators: Validators::default(),
        content: Fingerprint::from_text("a page"),
        change: Change::New,
        depth: 0,
        items: None,
        answer: None,
    };
    carrier.pages.note(spider, &[(case.url(1), visited.clone())]).await?;
    let memories = [PageVisit::Visited(visited.clone()), PageVisit::Gone];
    let mut batch = Vec::new();
    for (number, Claimed { message, .. }) in worker.claim_pages(2).await {
        let to = if number == 0 { links(&case, &[5]) } else { Vec::new() };
        let finish = case.ending(number, Terminal::Done);
        let memory = Some(memories[number].clone());
        let ending = Completion { links: to, memory, ..Completion::new(finish) };
        batch.push(Settlement { message, disposition: Disposition::Finish(Box::new(ending)) });
    }
    assert_eq!(worker.frontier.settle(batch).await?.ended.len(), 2);
    let urls = [0, 1, 5].map(|number| case.url(number));
    assert_eq!(carrier.pages.look(spider, &urls).await?, [Some(visited), None, None]);
    let walk = carrier.pages.walk(spider, 0).await?;
    let known: BTreeSet<_> = walk.pages.into_iter().collect();
    assert_eq!(known, BTreeSet::from([(case.url(0), 0), (case.url(5), 1)]));
    Ok(())
}

/// A later session of a crawl has the same terms: limits can change, the dedup scope cannot.
pub async fn the_terms_of_a_crawl_are_known(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    assert_eq!(carrier.stats.terms(&case.crawl).await?, Terms::default());
    let terms = Terms {
        recrawl: Recrawl::Age(Duration::from_secs(90)),
        max_pages: limit(7),
        max_per_host: limit(8),
        file: None,
        replays: Some(Period { from: UnixMs(5), to: UnixMs(9) }),
    };
    let session = carrier.open(&case, terms).await?;
    assert_eq!((session.terms(), carrier.stats.terms(&case.crawl).await?), (terms, terms));
    session.abandon().await?;
    let fewer = Terms { max_pages: limit(3), ..Terms::default() };
    let opening = Opening {
        judging: None,
        crawl: case.crawl.clone(),
        terms: fewer,
        text: None,
        is_new: false,
        lease: LONG,
        reads: None,
    };
    let session = carrier.engine.open(opening, Default::default()).await?;
    let known = Terms { recrawl: terms.recrawl, replays: terms.replays, ..fewer };
    assert_eq!((session.terms(), carrier.stats.terms(&case.crawl).await?), (known, known));
    session.close().await
}

/// Else a worker that was stopped for long would add to what another has read anew.
pub async fn only_the_holder_of_a_page_admits_its_links(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let (worker, other) = (carrier.join(&case), carrier.join_as(case.other.clone()));
    carrier.begin_with(&case, 2, Terms::default()).await?;
    let claimed = worker.claim_pages(2).await;
    assert!(!other.follow(&case, &claimed[&0], &[7]).await);
    worker.release(&claimed[&1]).await;
    assert!(!worker.follow(&case, &claimed[&1], &[7]).await, "nobody holds it");
    assert!(worker.end(&case, &claimed[&0], Terminal::Done).await);
    worker.follow(&case, &claimed[&0], &[7]).await;
    assert_eq!(carrier.stats(&case).await?.counts.admitted, 2, "it had ended");
    Ok(())
}

/// The rest is skipped, each once, and the crawl ends.
pub async fn a_crawl_that_has_done_all_that_it_may_skips_the_rest(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms { max_pages: limit(2), ..Terms::default() }).await?;
    session.admit(&(0..800).map(|number| case.new_work(number)).collect::<Vec<_>>()).await?;
    let claimed = worker.claim(3).await;
    for claimed in &claimed[..2] {
        assert_eq!(worker.start(claimed).await, StartReply::Go);
        assert!(worker.follow(&case, claimed, &[900]).await);
    }
    session.close().await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done, stats.counts.skipped), (CrawlState::Finished, 2, 799));
    assert_eq!(stats.reasons.get("skipped:limit"), Some(&799));
    assert_eq!(worker.start(&claimed[2]).await, StartReply::Lost);
    assert_eq!(worker.frontier.activity().in_flight, 0);
    let next = case.next_crawl();
    let session = carrier.open(&next, Terms::default()).await?;
    let urls: Vec<NewWork> = (0..800).map(|number| next.new_work(number)).collect();
    let new = session.admit(&urls).await?.into_iter().filter(|new| *new).count();
    assert_eq!(new, 798, "what was not fetched is found again");
    session.close().await
}

/// A limit holds even where more were fetched than may be done.
pub async fn more_than_it_may_do_is_never_counted_as_done(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin_with(&case, 3, Terms { max_pages: limit(1), ..Terms::default() }).await?;
    let batch = worker
        .claim(2)
        .await
        .into_iter()
        .map(|Claimed { message, .. }| Settlement { disposition: done(&message, Vec::new()), message });
    assert_eq!(worker.frontier.settle(batch.collect()).await?.ended.len(), 2);
    assert_eq!(carrier.stats(&case).await?.counts.done, 1);
    Ok(())
}

/// A crawl that may do one of its two pages, the first of which was started as often as may be, and never ended.
async fn with_a_suspect(carrier: &Carrier, case: &Case) -> Result<()> {
    carrier.begin_with(case, 2, Terms { max_pages: limit(1), ..Terms::default() }).await?;
    for _ in 0..MAX_STARTS {
        let worker = carrier.join(case);
        let claimed = worker.claim_pages(2).await;
        assert_eq!(worker.start(&claimed[&0]).await, StartReply::Go);
    }
    Ok(())
}

/// As all that the limit leaves: a later crawl finds out whether it is poison.
pub async fn at_the_limit_a_suspect_is_no_poison(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    with_a_suspect(carrier, &case).await?;
    let worker = carrier.join(&case);
    let claimed = worker.claim_pages(2).await;
    assert!(worker.end(&case, &claimed[&1], Terminal::Done).await);
    // It may have been skipped already.
    let answer = worker.start(&claimed[&0]).await;
    assert!(matches!(answer, StartReply::Full | StartReply::Lost), "{answer:?}");
    Ok(())
}

/// Nor does it wait for one: it takes none.
pub async fn poison_is_recognised_even_at_the_limit_of_pages(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    with_a_suspect(carrier, &case).await?;
    let worker = carrier.join(&case);
    let claimed = worker.claim_pages(2).await;
    // Given back before it starts again, it leaves its place to the other.
    worker.release(&claimed[&0]).await;
    assert_eq!(worker.start(&claimed[&1]).await, StartReply::Go);
    let suspect = worker.claim_one().await;
    assert_eq!(worker.start(&suspect).await, StartReply::Poison);
    Ok(())
}

/// Pages that it did not fetch are as new to the spider as before.
pub async fn what_a_recrawl_did_not_fetch_stays_as_it_was(carrier: &Carrier) -> Result<()> {
    let first = Case::new();
    let worker = carrier.join(&first);
    carrier.begin(&first, 1, Terms::default()).await?;
    worker.work_off(1).await;
    let again = first.next_crawl();
    carrier.begin(&again, 2, Terms { recrawl: Recrawl::Changed, ..Terms::default() }).await?;
    for claimed in worker.claim(2).await {
        assert!(worker.end(&again, &claimed, Terminal::Expired).await);
    }
    assert_eq!(carrier.stats(&again).await?.status, CrawlState::Finished);
    let last = first.next_crawl();
    let session = carrier.open(&last, Terms::default()).await?;
    assert_eq!(session.admit(&[last.new_work(0), last.new_work(1)]).await?, [false, true]);
    session.close().await
}
