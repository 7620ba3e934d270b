//! The list of what failed, and how to give it another chance.

use std::collections::BTreeMap;
use std::sync::Arc;

use trawl_common::dead_letters::Replay;
use trawl_common::frontier::Key;
use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::outcome::{Reason, Skip, Terminal};
use trawl_common::ports::{Claim, ErrorKind, Finish, NewWork, Opening, Result, Settlement, Terms};
use trawl_common::spider::SpiderText;
use trawl_common::time::UnixMs;
use trawl_common::web::url::CanonicalUrl;

use super::{Carrier, Worker, ends, kind};
use crate::conformance::fixture::{Case, LONG, long_ago};

/// Every page of the list, and how many there were.
async fn list(carrier: &Carrier, case: &Case) -> Result<(BTreeMap<Key, DeadLetterEntry>, usize)> {
    let (mut all, mut pages, mut cursor) = (BTreeMap::new(), 0, Some(0));
    while let Some(from) = cursor {
        let page = carrier.control.failed(&case.crawl, from).await?;
        all.extend(page.failed);
        (pages, cursor) = (pages + 1, page.next);
        assert!(pages <= 10_000, "a list has an end");
    }
    Ok((all, pages))
}

impl Worker {
    /// Claims a page, and has it end so.
    async fn end_one(&self, case: &Case, terminal: Terminal) {
        let claimed = self.claim_one().await;
        assert!(self.end(case, &claimed, terminal).await);
    }
}

/// Each with all that is known of it, as long as its crawl is known; nothing else is there.
pub async fn the_list_holds_what_failed_and_what_expired(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    assert_eq!(list(carrier, &case).await?.0, BTreeMap::new(), "an unknown crawl");
    carrier.begin(&case, 6, Terms::default()).await?;
    let states = [Terminal::Failed, Terminal::Failed, Terminal::Expired, Terminal::Done, Terminal::Skipped];
    let expected: BTreeMap<_, _> =
        (0..3).map(|number| (case.key(number), case.note(number, states[number]))).collect();
    let claimed = worker.claim_pages(6).await;
    for (number, terminal) in states.into_iter().enumerate() {
        assert!(worker.end(&case, &claimed[&number], terminal).await);
        worker.end(&case, &claimed[&number], Terminal::Failed).await;
    }
    assert_eq!(list(carrier, &case).await?.0, expected);
    assert!(worker.end(&case, &claimed[&5], Terminal::Done).await);
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    assert_eq!(list(carrier, &case).await?.0, expected);
    for number in 0..6 {
        let failure = carrier.control.failure(&case.crawl, &case.key(number)).await?;
        assert_eq!(failure.as_ref(), expected.get(&case.key(number)));
    }
    Ok(())
}

/// Nothing is left out, also where another crawl's failures lie between.
pub async fn the_list_is_read_page_by_page(carrier: &Carrier) -> Result<()> {
    const COUNT: usize = 2_500;
    let case = Case::new();
    let other = case.other_spider();
    let worker = carrier.join_with(case.worker.clone(), |settings| settings.worker.prefetch = 6_000);
    for case in [&case, &other] {
        carrier.begin(case, COUNT, Terms::default()).await?;
    }
    let mut claimed = worker.claim(2 * COUNT).await;
    claimed.sort_by_key(super::number);
    let batch = claimed.into_iter().map(|claimed| {
        let of = if claimed.message.crawl == case.crawl { &case } else { &other };
        let disposition = ends(of.ending(super::number(&claimed), Terminal::Failed));
        Settlement { message: claimed.message, disposition }
    });
    worker.frontier.settle(batch.collect()).await?;
    let (all, pages) = list(carrier, &case).await?;
    assert_eq!(all.len(), COUNT);
    assert!(pages > 1, "a page of {COUNT}");
    assert!((0..COUNT).all(|number| all.contains_key(&case.key(number))));
    Ok(())
}

/// It is not shown, not replayed and not purged again; the stats don't forget it.
pub async fn what_is_purged_is_gone_and_stays_counted(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let urls: Vec<NewWork> = (0..3).map(|number| case.new_work(number)).collect();
    session.admit(&urls).await?;
    for _ in 0..3 {
        worker.end_one(&case, Terminal::Failed).await;
    }
    let before = carrier.stats(&case).await?;
    let purged = [case.key(0), case.key(1), case.key(9)];
    assert_eq!(carrier.control.purge(&case.crawl, &purged).await?, 2);
    assert_eq!(carrier.control.purge(&case.crawl, &purged).await?, 0);
    assert_eq!(list(carrier, &case).await?.0.into_keys().collect::<Vec<_>>(), [case.key(2)]);
    assert_eq!(carrier.control.failure(&case.crawl, &case.key(0)).await?, None);
    assert_eq!(carrier.replay(&case, &[0, 1, 9]).await?, 0);
    assert_eq!(session.admit(&urls[..2]).await?, [false, false], "seen is seen");
    assert_eq!(carrier.stats(&case).await?.counts, before.counts);
    session.close().await
}

/// And counted once each time.
pub async fn a_url_can_fail_and_be_replayed_again_and_again(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    for _ in 0..3 {
        worker.end_one(&case, Terminal::Failed).await;
        assert_eq!(carrier.stats(&case).await?.counts.failed, 1);
        assert!(carrier.control.failure(&case.crawl, &case.key(0)).await?.is_some());
        assert_eq!(carrier.replay(&case, &[0]).await?, 1);
        assert_eq!(carrier.stats(&case).await?.counts.failed, 0);
    }
    session.close().await?;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    worker.end_one(&case, Terminal::Done).await;
    let stats = carrier.stats(&case).await?;
    let expected = Counts { admitted: 1, done: 1, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    Ok(())
}

/// Done, pending, never seen, named twice, or of another crawl.
pub async fn what_is_not_in_the_list_is_not_replayed(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&(0..3).map(|number| case.new_work(number)).collect::<Vec<_>>()).await?;
    let claimed = worker.claim_pages(3).await;
    assert!(worker.end(&case, &claimed[&0], Terminal::Done).await);
    assert!(worker.end(&case, &claimed[&1], Terminal::Failed).await);
    let urls = [0, 1, 2, 9, 1].map(|number| case.key(number));
    let unknown = case.next_crawl();
    assert_eq!(carrier.engine.replay(&unknown.crawl, &case.crawl, &urls).await?, 0);
    assert_eq!(carrier.replay(&case, &[0, 1, 2, 9, 1]).await?, 1);
    assert_eq!(carrier.replay(&case, &[0, 1, 2, 9, 1]).await?, 0);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts, stats.pending), (Counts { admitted: 3, done: 1, ..Counts::default() }, 2));
    assert_eq!(worker.claim_one().await.message.key(), case.key(1));
    session.close().await
}

/// A finished crawl stays as it is; what failed or expired in it is admitted there, and seen from now on.
pub async fn a_finished_crawl_is_replayed_into_a_successor(carrier: &Carrier) -> Result<()> {
    let first = Case::new();
    let worker = carrier.join(&first);
    carrier.begin(&first, 3, Terms::default()).await?;
    let claimed = worker.claim_pages(3).await;
    for (number, terminal) in [Terminal::Done, Terminal::Failed, Terminal::Expired].into_iter().enumerate() {
        assert!(worker.end(&first, &claimed[&number], terminal).await);
    }
    let before = carrier.stats(&first).await?;
    assert_eq!(before.status, CrawlState::Finished);
    let second = first.next_crawl();
    let session = carrier.open(&second, Terms::default()).await?;
    let urls = [0, 1, 2].map(|number| first.key(number));
    assert_eq!(carrier.engine.replay(&first.crawl, &second.crawl, &urls).await?, 2);
    assert_eq!(session.admit(&[second.new_work(2)]).await?, [false]);
    session.close().await?;
    let after = carrier.stats(&first).await?;
    assert_eq!((after.status, after.counts, after.pending), (before.status, before.counts, 0));
    assert_eq!(carrier.control.failure(&first.crawl, &first.key(1)).await?, None);
    let claimed = worker.claim_pages(2).await;
    let note = first.note(1, Terminal::Failed);
    let message = &claimed[&1].message;
    assert_eq!((message.lane, message.depth, &message.referrer), (note.lane, note.depth, &note.referrer));
    assert!(worker.end(&second, &claimed[&1], Terminal::Failed).await);
    assert!(worker.end(&second, &claimed[&2], Terminal::Done).await);
    let stats = carrier.stats(&second).await?;
    let expected = Counts { admitted: 2, done: 1, failed: 1, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    assert!(carrier.control.failure(&second.crawl, &second.key(1)).await?.is_some());
    Ok(())
}

/// `Stale`, and the list is as it was.
pub async fn nothing_is_replayed_into_a_crawl_that_is_over_or_unknown(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    worker.end_one(&case, Terminal::Failed).await;
    let before = carrier.stats(&case).await?;
    for into in [&case, &case.next_crawl()] {
        let refused = carrier.engine.replay(&case.crawl, &into.crawl, &[case.key(0)]).await;
        assert_eq!(kind(refused), Some(ErrorKind::Stale));
    }
    assert!(carrier.control.failure(&case.crawl, &case.key(0)).await?.is_some());
    assert_eq!(carrier.stats(&case).await?.counts, before.counts);
    Ok(())
}

/// With no failure counted and no start; the stats say that it is pending, once.
pub async fn a_replayed_url_begins_anew_in_its_crawl(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    let worker = carrier.join(&case);
    let claimed = worker.claim_one().await;
    worker.park(&claimed, UnixMs::now(), true).await;
    drop(worker);
    for _ in 0..2 {
        // It ends without a word.
        let worker = carrier.join(&case);
        let claimed = worker.claim_one().await;
        worker.start(&claimed).await;
    }
    let worker = carrier.join(&case);
    let claimed = worker.claim_one().await;
    assert_eq!((claimed.attempts, claimed.starts), (1, 2));
    assert!(worker.end(&case, &claimed, Terminal::Failed).await);
    assert_eq!(carrier.replay(&case, &[0]).await?, 1);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts, stats.pending), (Counts { admitted: 1, ..Counts::default() }, 1));
    assert!(stats.reasons.is_empty(), "{stats:?}");
    assert_eq!(carrier.stats.hosts(&case.crawl, 1).await?[0].counts, stats.counts);
    assert_eq!(carrier.control.failure(&case.crawl, &case.key(0)).await?, None);
    assert_eq!(session.admit(&[case.new_work(0)]).await?, [false]);
    let claimed = worker.claim_one().await;
    assert_eq!((claimed.attempts, claimed.starts), (0, 0));
    assert!(worker.end(&case, &claimed, Terminal::Done).await);
    assert_eq!(carrier.stats(&case).await?.counts, Counts { admitted: 1, done: 1, ..Counts::default() });
    session.close().await
}

/// URLs have had more spellings than one, and by the text that was written their records are found.
pub async fn a_url_as_an_older_version_wrote_it_is_handled_listed_and_replayed_as_it_stands(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let host = case.url(0).host();
    let old = CanonicalUrl::recorded(&format!("http://{host}./%7ea?%2f")).expect("it is a URL");
    assert!(old.as_str().contains("./%7ea?%2f"));
    assert_eq!(session.admit(&[NewWork::seed(old.clone(), Lane::Bulk)]).await?, [true]);
    let ending = |terminal| Finish {
        note: (terminal == Terminal::Failed).then(|| case.note(0, terminal)),
        ..Finish::new(Claim { crawl: case.crawl.clone(), key: old.clone().into() }, terminal)
    };
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.message.work, old);
    assert!(worker.settle_unstarted(&claimed, ends(ending(Terminal::Failed))).await);
    assert_eq!(list(carrier, &case).await?.0.into_keys().collect::<Vec<_>>(), std::slice::from_ref(&old));
    let keys = [old.clone().into()];
    assert_eq!(carrier.engine.replay(&case.crawl, &case.crawl, &keys).await?, 1);
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.message.work, old);
    assert!(worker.settle_unstarted(&claimed, ends(ending(Terminal::Done))).await);
    assert_eq!(carrier.stats(&case).await?.counts, Counts { admitted: 1, done: 1, ..Counts::default() });
    session.close().await
}

/// Else it would expire again at once.
pub async fn a_replayed_url_that_expired_has_no_deadline(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[NewWork { deadline: Some(long_ago()), ..case.new_work(0) }]).await?;
    worker.end_one(&case, Terminal::Expired).await;
    assert_eq!(carrier.replay(&case, &[0]).await?, 1);
    assert_eq!(carrier.stats(&case).await?.counts, Counts { admitted: 1, ..Counts::default() });
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.message.deadline, None);
    assert!(worker.end(&case, &claimed, Terminal::Done).await);
    session.close().await
}

/// A block may be lifted: what was skipped for it waits in the list, and later crawls find it as well.
pub async fn what_a_block_skipped_is_listed_replayed_and_found_by_a_later_crawl(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 3, Terms::default()).await?;
    let claimed = worker.claim_pages(3).await;
    let blocked = |number| {
        let note = case.note(number, Terminal::Skipped);
        let cause = Cause { reason: Reason::Blocked, class: None, status: None, ..note.cause };
        let finish = Finish::new(case.claim_on(number), Terminal::Skipped);
        Finish { why: Some(Skip::Blocked.as_str()), note: Some(DeadLetterEntry { cause, ..note }), ..finish }
    };
    for number in 0..2 {
        assert!(worker.settle_unstarted(&claimed[&number], ends(blocked(number))).await);
    }
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts.skipped, stats.reasons["skipped:blocked"]), (2, 2));
    assert_eq!(carrier.control.failure(&case.crawl, &case.key(0)).await?, blocked(0).note);
    assert_eq!(carrier.replay(&case, &[0]).await?, 1);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.counts.skipped, stats.reasons["skipped:blocked"], stats.pending), (1, 1, 2));
    worker.end_one(&case, Terminal::Done).await;
    assert!(worker.end(&case, &claimed[&2], Terminal::Done).await);
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    let later = case.next_crawl();
    let session = carrier.open(&later, Terms::default()).await?;
    assert_eq!(session.admit(&[later.new_work(0), later.new_work(1)]).await?, [false, true]);
    session.close().await
}

/// As all that is new does.
pub async fn what_is_replayed_into_a_paused_crawl_waits(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    worker.end_one(&case, Terminal::Failed).await;
    carrier.control.pause(&case.crawl).await?;
    assert_eq!(carrier.replay(&case, &[0]).await?, 1);
    worker.claims_nothing().await;
    carrier.control.resume(&case.crawl).await?;
    worker.work_off(1).await;
    session.close().await
}

/// So that workers without the file can go on with it.
pub async fn a_successor_brings_the_text_of_the_crawl_that_it_follows(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let text = SpiderText::from("max_pages = 1".to_owned());
    let terms = Terms { file: Some(text.hash()), ..Terms::default() };
    let (crawl, brought) = (case.crawl.clone(), Some(text.clone()));
    let opening =
        Opening { judging: None, crawl, terms, text: brought, is_new: true, lease: LONG, reads: None };
    let session = carrier.engine.open(opening, Arc::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    session.close().await?;
    worker.end_one(&case, Terminal::Failed).await;
    let replay = Replay::new(&carrier.stats(&case).await?, &*carrier.engine, &*carrier.stats).await?;
    assert_ne!(replay.target(), &case.crawl);
    assert_eq!(carrier.stats.spider_text(replay.target()).await?, Some(text));
    replay.close(&*carrier.control).await
}
