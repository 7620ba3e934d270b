//! Tests of a URL from admission to settlement, and of a crawl to its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use trawl_common::frontier::StartReply;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Hop;
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::ports::{
    Claim, Completion, Disposition, Finish, NewWork, Opening, Result, Settled, Settlement, Terms,
};
use trawl_common::time::UnixMs;

use super::{Carrier, done};
use crate::conformance::fixture::{Case, LONG};

/// In the crawl, every URL is claimed once, and the last end is the crawl's.
pub async fn what_is_admitted_is_claimed_and_a_crawl_ends_with_its_last_url(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 20, Terms::default()).await?;
    let claimed = worker.claim(20).await;
    let urls: BTreeSet<_> = claimed.iter().map(|claimed| claimed.message.key()).collect();
    assert_eq!(urls, (0..20).map(|number| case.key(number)).collect());
    assert_eq!(worker.frontier.activity().in_flight, 20);
    for (number, claimed) in claimed.into_iter().enumerate() {
        assert_eq!((claimed.attempts, claimed.starts, claimed.is_beyond_limit), (0, 0, false));
        let stats = carrier.stats(&case).await?;
        assert_eq!((stats.status, stats.pending), (CrawlState::Running, 20 - number as u64));
        assert_eq!(worker.finish(claimed).await.ended.len(), 1);
    }
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 20));
    assert_eq!(worker.frontier.activity().in_flight, 0);
    Ok(())
}

/// Within a call, over several, and by a page that links to it.
pub async fn a_url_is_admitted_once_however_often_it_is_found(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let [a, b] = [case.new_work(0), case.new_work(1)];
    assert_eq!(session.admit(&[a.clone(), b.clone(), a.clone()]).await?, [true, true, false]);
    assert_eq!(session.admit(&[b.clone(), a]).await?, [false, false]);
    session.close().await?;
    let page = worker.claim_one().await;
    let disposition = done(&page.message, vec![case.new_work(0), b]);
    worker.settle(page, disposition).await;
    let last = worker.claim_one().await;
    worker.finish(last).await;
    assert!(worker.frontier.has_seen(&case.crawl, &case.url(1)).await?);
    assert!(!worker.frontier.has_seen(&case.crawl, &case.url(2)).await?);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.admitted, stats.counts.done), (CrawlState::Finished, 2, 2));
    Ok(())
}

/// The priority lane before bulk, although it was admitted later.
pub async fn urgent_urls_are_claimed_first(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    session.admit(&[NewWork::seed(case.url(1), Lane::Priority)]).await?;
    session.close().await?;
    let worker = carrier.join(&case);
    // Both have arrived by then.
    while carrier.claims_ahead && worker.frontier.activity().in_flight < 2 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let claimed = worker.claim(2).await;
    assert_eq!(
        claimed.iter().map(|claimed| claimed.message.key()).collect::<Vec<_>>(),
        [case.key(1), case.key(0)]
    );
    Ok(())
}

/// They are admitted before the page ends, so that the crawl does not end between the two.
pub async fn a_crawl_goes_on_with_what_its_last_page_links_to(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let page = worker.claim_one().await;
    let link = |number| NewWork { depth: 1, referrer: Some(case.key(0)), ..case.new_work(number) };
    let disposition = done(&page.message, vec![link(1), link(2)]);
    let settled = worker.settle(page, disposition).await;
    assert_eq!(settled.ended[0].links, [link(1), link(2)]);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.pending, stats.counts.done), (CrawlState::Running, 2, 1));
    for claimed in worker.claim(2).await {
        assert_eq!(claimed.message.depth, 1);
        worker.finish(claimed).await;
    }
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// It forgets where redirects led, and which slot it had.
pub async fn what_failed_comes_back_with_one_attempt_more_and_afresh(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    for attempts in 0..3 {
        let mut claimed = worker.claim_one().await;
        assert_eq!((claimed.attempts, &claimed.message.hop, claimed.message.slot), (attempts, &None, None));
        claimed.message.hop = Some(Hop { url: case.url(7), count: 1, as_get: false });
        claimed.message.slot = Some(UnixMs::now());
        let settled = worker.settle(claimed, Disposition::Retry { until: UnixMs::now() }).await;
        assert_eq!(settled, Settled::default());
    }
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 1));
    Ok(())
}

/// As one that was not asked yet: no attempt more.
pub async fn what_is_parked_comes_back_with_all_that_was_known_of_it(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let mut claimed = worker.claim_one().await;
    let hop = Some(Hop { url: case.url(7), count: 2, as_get: false });
    claimed.message.hop.clone_from(&hop);
    claimed.message.refusals = 3;
    let until = UnixMs::now().plus(Duration::from_millis(1_200));
    worker.settle(claimed, Disposition::Snooze { until }).await;
    worker.claims_nothing().await;
    let claimed = worker.claim_one().await;
    assert_eq!((claimed.attempts, claimed.starts), (0, 0));
    assert_eq!((claimed.message.hop, claimed.message.refusals), (hop, 3));
    Ok(())
}

/// Any worker takes it at once: nothing says that it would have to wait.
pub async fn what_is_left_to_others_comes_to_another_worker(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let first = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let claimed = first.claim_one().await;
    let (message, until) = (claimed.message, UnixMs::now());
    // It is not to claim it again itself.
    first.stop.cancel();
    first.frontier.settle(vec![Settlement { message, disposition: Disposition::Requeue { until } }]).await?;
    first.frontier.release().await?;
    let second = carrier.join_as(case.other.clone());
    let claimed = second.claim_one().await;
    assert!(claimed.message.until.is_none_or(|until| until <= UnixMs::now()));
    second.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// URLs that it had started, and URLs that it had not.
pub async fn what_a_worker_releases_is_claimed_by_another(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let first = carrier.join(&case);
    carrier.begin(&case, 3, Terms::default()).await?;
    let claimed = first.claim(2).await;
    assert_eq!(first.frontier.start(&[Claim::new(&claimed[0].message)]).await?, [StartReply::Go]);
    first.stop.cancel();
    first.frontier.release().await?;
    assert_eq!(first.frontier.activity().in_flight, 0);
    let second = carrier.join_as(case.other.clone());
    for claimed in second.claim(3).await {
        assert_eq!(claimed.attempts, 0);
        second.finish(claimed).await;
    }
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 3));
    Ok(())
}

/// A worker that stood still for long may settle what another has ended, or has in hand.
pub async fn what_is_no_longer_a_workers_is_not_counted_for_it(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let first = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let late = first.claim_one().await;
    first.stop.cancel();
    first.frontier.release().await?;
    let second = carrier.join_as(case.other.clone());
    let claimed = second.claim_one().await;

    let mut failed = Finish::new(Claim::new(&late.message), Terminal::Failed);
    failed.why = Some("timeout");
    let ending = Completion { links: vec![case.new_work(5)], ..Completion::new(failed) };
    let disposition = Disposition::Finish(Box::new(ending));
    let settled = first.frontier.settle(vec![Settlement { message: late.message, disposition }]).await?;
    assert_eq!(settled, Settled::default());

    second.finish(claimed).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.admitted, stats.counts.done), (CrawlState::Finished, 1, 1));
    Ok(())
}

/// The reply to the first call may have been lost.
pub async fn what_is_settled_twice_counts_once(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    let settlement =
        Settlement { message: claimed.message.clone(), disposition: done(&claimed.message, Vec::new()) };
    assert_eq!(worker.settle(claimed, settlement.disposition.clone()).await.ended.len(), 1);
    worker.frontier.settle(vec![settlement]).await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 1));
    Ok(())
}

/// They count as skipped, and the crawl ends.
pub async fn beyond_the_page_limit_urls_are_handed_out_to_be_skipped(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let terms = Terms { max_pages: std::num::NonZeroU64::new(1), ..Terms::default() };
    let session = carrier.open(&case, terms).await?;
    session.admit(&[case.new_work(0)]).await?;
    let page = worker.claim_one().await;
    assert_eq!(page.crawl.terms, terms);
    worker.finish(page).await;
    session.admit(&[case.new_work(1)]).await?;
    session.close().await?;
    let beyond = worker.claim_one().await;
    assert!(beyond.is_beyond_limit);
    let finish = Finish { why: Some("limit"), ..Finish::new(Claim::new(&beyond.message), Terminal::Skipped) };
    let ending = Completion::new(finish);
    let disposition = Disposition::Finish(Box::new(ending));
    worker.frontier.settle(vec![Settlement { message: beyond.message, disposition }]).await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done, stats.counts.skipped), (CrawlState::Finished, 1, 1));
    Ok(())
}

/// In the crawl that it failed in, as long as that goes on.
pub async fn a_dead_letter_is_listed_and_claimed_again_when_it_is_replayed(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    let claimed = worker.claim_one().await;
    let note = case.note(0, Terminal::Failed);
    let finish = Finish {
        why: Some("http"),
        note: Some(note.clone()),
        ..Finish::new(Claim::new(&claimed.message), Terminal::Failed)
    };
    let ending = Completion { dead_letter: Some(note.cause.clone()), ..Completion::new(finish) };
    let settled = worker.settle(claimed, Disposition::Finish(Box::new(ending))).await;
    assert_eq!(settled.ended.len(), 1);
    let failed = carrier.control.failed(&case.crawl, 0).await?;
    assert_eq!(failed.failed, [(case.key(0), note)]);

    let keys = [case.key(0), case.key(1)];
    assert_eq!(carrier.engine.replay(&case.crawl, &case.crawl, &keys).await?, 1, "the other never failed");
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.attempts, 0);
    worker.finish(claimed).await;
    session.close().await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done, stats.counts.failed), (CrawlState::Finished, 1, 0));
    Ok(())
}

/// For people to look at.
pub async fn what_is_no_url_is_kept_and_counted(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    let (text, crawl) = ("not a URL".to_owned(), case.crawl.clone());
    session.refuse(&[DeadLetter::invalid(text, crawl, "no scheme".to_owned(), None)]).await?;
    session.close().await?;
    let invalid = carrier.control.invalid(&case.crawl).await?;
    assert_eq!(invalid.len(), 1);
    assert_eq!(carrier.control.count_failed(&case.crawl).await?, 1);
    let (text, note) = &invalid[0];
    assert_eq!(
        (text.as_str(), note.cause.reason, note.cause.error.as_str()),
        ("not a URL", Reason::Invalid, "no scheme")
    );
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// For a later run to go on.
pub async fn a_session_that_is_abandoned_leaves_its_crawl_open(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    session.abandon().await?;
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    let opening = Opening {
        judging: None,
        crawl: case.crawl.clone(),
        terms: Terms::default(),
        text: None,
        is_new: false,
        lease: LONG,
        reads: None,
    };
    let session = carrier.engine.open(opening, Arc::default()).await?;
    assert_eq!(session.admit(&[case.new_work(0), case.new_work(1)]).await?, [false, true]);
    session.close().await?;
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// It is there for whoever joins later.
pub async fn nothing_is_claimed_after_the_stop(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    worker.stop.cancel();
    carrier.begin(&case, 1, Terms::default()).await?;
    worker.claims_nothing().await;
    worker.frontier.release().await?;
    let second = carrier.join_as(case.other.clone());
    let claimed = second.claim_one().await;
    second.finish(claimed).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}
