//! The effects of operators' commands on a crawl.

use std::num::NonZeroU64;
use std::time::Duration;

use trawl_common::frontier::MAX_STARTS;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::judging::{Judging, Quality};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{
    BeatReply, CrawlSession, ErrorKind, Heartbeat, NewWork, Result, Settlement, Terms,
};
use trawl_common::time::UnixMs;

use super::{Carrier, done, kind};
use crate::conformance::eventually;
use crate::conformance::fixture::{Case, LONG, much_later};

/// A crawl that is over or unknown refuses commands with `Stale`.
pub async fn a_crawl_that_is_over_or_unknown_takes_no_commands(carrier: &Carrier) -> Result<()> {
    let (finished, unknown) = (Case::new(), Case::new());
    carrier.begin(&finished, 0, Terms::default()).await?;
    for crawl in [&finished.crawl, &unknown.crawl] {
        assert_eq!(kind(carrier.control.pause(crawl).await), Some(ErrorKind::Stale));
        assert_eq!(kind(carrier.control.resume(crawl).await), Some(ErrorKind::Stale));
        assert_eq!(kind(carrier.control.cancel(crawl).await), Some(ErrorKind::Stale));
    }
    assert_eq!(carrier.stats(&finished).await?.status, CrawlState::Finished);
    assert_eq!(carrier.stats.crawl_stats(&unknown.crawl.id).await?, None);
    Ok(())
}

/// A cancelled crawl has no URL left, and neither the holders of its URLs nor its producer can revive it. A second
/// cancellation changes nothing.
pub async fn a_cancelled_crawl_has_no_url_left_and_nothing_revives_it(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&(0..1200).map(|number| case.new_work(number)).collect::<Vec<_>>()).await?;
    let claimed = worker.claim(5).await;
    worker.park(&claimed[0], much_later(), true).await;
    assert!(worker.end(&case, &claimed[1], Terminal::Done).await);
    assert!(worker.end(&case, &claimed[2], Terminal::Failed).await);
    assert_eq!(worker.start(&claimed[3]).await, StartReply::Go);
    let expected = Counts { admitted: 1200, done: 1, failed: 1, cancelled: 1198, ..Counts::default() };
    for _ in 0..2 {
        carrier.control.cancel(&case.crawl).await?;
        let stats = carrier.stats(&case).await?;
        assert_eq!((stats.status, stats.counts, stats.pending), (CrawlState::Cancelled, expected, 0));
    }
    assert!(
        carrier.control.failure(&case.crawl, &claimed[2].message.key()).await?.is_some(),
        "the list stays"
    );
    assert_eq!(worker.start(&claimed[4]).await, StartReply::Lost);
    worker.park(&claimed[4], UnixMs::now(), true).await;
    assert!(worker.end(&case, &claimed[3], Terminal::Done).await, "it has ended, as cancelled");
    assert!(!worker.extends(&claimed[4]).await);
    let urls: Vec<NewWork> = (0..3).map(|number| case.new_work(number)).collect();
    assert_eq!(kind(session.admit(&urls).await), Some(ErrorKind::Stale));
    assert_eq!(kind(carrier.reopen(&case, LONG).await), Some(ErrorKind::Stale));
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts, stats.pending), (CrawlState::Cancelled, expected, 0));
    Ok(())
}

/// A draining worker learns so from each heartbeat, and no other does. A worker that has sent no heartbeat cannot be
/// drained.
pub async fn a_draining_worker_learns_it_with_each_heartbeat_and_no_other_does(
    carrier: &Carrier,
) -> Result<()> {
    let (one, other) = (Case::new(), Case::new());
    let workers = [carrier.join(&one), carrier.join(&other)];
    let beat = async |number: usize, case: &Case| {
        workers[number].frontier.beat(&Heartbeat::idle(case.worker.clone())).await
    };
    assert!(!carrier.control.drain(&one.worker).await?);
    assert_eq!(beat(0, &one).await?, BeatReply::GoOn);
    for _ in 0..2 {
        assert!(carrier.control.drain(&one.worker).await?);
    }
    let all = carrier.stats.workers().await?;
    assert!(all.iter().any(|state| state.worker == one.worker && state.draining), "{all:?}");
    for _ in 0..2 {
        assert_eq!(beat(0, &one).await?, BeatReply::Drain);
    }
    assert_eq!(beat(1, &other).await?, BeatReply::GoOn);
    Ok(())
}

/// A crawl that is paused for a reason shows it until it is resumed, and again when that happens once more. One that is
/// over takes no such command.
pub async fn a_crawl_that_is_held_says_why_until_it_is_resumed(carrier: &Carrier) -> Result<()> {
    let (held, over) = (Case::new(), Case::new());
    let worker = carrier.join(&held);
    carrier.begin(&held, 1, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    for why in ["the log-in fails", "it fails again"] {
        for _ in 0..2 {
            carrier.control.hold(&held.crawl, why).await?;
            let stats = carrier.stats(&held).await?;
            assert_eq!((stats.status, stats.held.as_deref()), (CrawlState::Paused, Some(why)));
        }
        assert_eq!(worker.start(&claimed).await, StartReply::Lost);
        carrier.control.resume(&held.crawl).await?;
        let stats = carrier.stats(&held).await?;
        assert_eq!((stats.status, stats.held), (CrawlState::Running, None));
    }
    carrier.control.pause(&held.crawl).await?;
    assert_eq!(carrier.stats(&held).await?.held, None, "a person has done so");
    carrier.begin(&over, 0, Terms::default()).await?;
    assert_eq!(kind(carrier.control.hold(&over.crawl, "too late").await), Some(ErrorKind::Stale));
    assert_eq!(carrier.stats(&over).await?.held, None);
    Ok(())
}

/// A crawl whose last pages yield too little is paused. When it is resumed, the pages before do not count.
pub async fn a_crawl_below_its_quality_is_paused_and_judged_anew_when_it_is_resumed(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let quality =
        Quality { window: 10, failed: Some(0.5), required: None, items_per_page: None, duplicates: None };
    let judging = Judging { quality: Some(quality), ..Judging::default() };
    let session = carrier.open_judged(&case, judging).await?;
    session.admit(&(0..100).map(|number| case.new_work(number)).collect::<Vec<_>>()).await?;
    let paused_after = async |terminal: Terminal| -> Result<Option<usize>> {
        for page in 1..=30 {
            let claimed = worker.claim_one().await;
            assert!(worker.end(&case, &claimed, terminal).await);
            let stats = carrier.stats(&case).await?;
            if stats.status == CrawlState::Paused {
                let why = stats.held.unwrap_or_default();
                assert!(why.starts_with("[quality] failed: ") && why.contains("at most 50 %"), "{why}");
                return Ok(Some(page));
            }
        }
        Ok(None)
    };
    assert_eq!(paused_after(Terminal::Done).await?, None);
    assert_eq!(paused_after(Terminal::Failed).await?, Some(6));
    carrier.control.resume(&case.crawl).await?;
    assert_eq!(carrier.stats(&case).await?.held, None);
    assert_eq!(paused_after(Terminal::Failed).await?, Some(11), "its own window");
    Ok(())
}

/// No URL of a paused crawl is claimed or started, and those claimed before are released.
pub async fn nothing_is_claimed_or_started_of_a_paused_crawl(carrier: &Carrier) -> Result<()> {
    let (paused, running) = (Case::new(), Case::new());
    let worker = carrier.join(&paused);
    carrier.begin(&paused, 2, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    carrier.control.pause(&paused.crawl).await?;
    carrier.begin(&running, 1, Terms::default()).await?;
    assert_eq!(carrier.stats(&paused).await?.status, CrawlState::Paused);
    let other = worker.claim_one().await;
    assert_eq!(other.message.crawl, running.crawl, "other crawls go on");
    assert_eq!(worker.start(&claimed).await, StartReply::Lost);
    assert_eq!(worker.start(&other).await, StartReply::Go);
    worker.claims_nothing().await;
    assert_eq!(carrier.stats(&paused).await?.pending, 2);
    assert_eq!(worker.frontier.activity().in_flight, 1);
    Ok(())
}

/// After a pause a queued URL goes on, whether it was claimed before the pause, or admitted in it.
pub async fn what_was_queued_goes_on_after_a_pause(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0), case.new_work(1)]).await?;
    let claimed = worker.claim_one().await;
    carrier.control.pause(&case.crawl).await?;
    assert_eq!(session.admit(&[case.new_work(2)]).await?, [true], "sources may go on being read");
    assert_eq!(worker.start(&claimed).await, StartReply::Lost);
    worker.claims_nothing().await;
    carrier.control.resume(&case.crawl).await?;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    for claimed in worker.claim_pages(3).await.values() {
        assert_eq!(worker.start(claimed).await, StartReply::Go);
    }
    session.close().await
}

/// A pause changes neither the attempts of a URL nor its wake-up, and a fetch that did not begin does not count.
pub async fn a_pause_changes_nothing_else_about_a_url(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 3, Terms::default()).await?;
    let claimed = worker.claim_pages(3).await;
    worker.park(&claimed[&0], UnixMs::now(), true).await;
    worker.park(&claimed[&1], much_later(), true).await;
    worker.release(&claimed[&2]).await;
    for _ in 0..=MAX_STARTS {
        let claimed = worker.claim_pages(2).await;
        assert_eq!((claimed[&0].attempts, claimed[&2].attempts), (1, 0));
        carrier.control.pause(&case.crawl).await?;
        for claimed in claimed.values() {
            assert_eq!(worker.start(claimed).await, StartReply::Lost);
        }
        carrier.control.resume(&case.crawl).await?;
    }
    let claimed = worker.claim_pages(2).await;
    assert_eq!((claimed[&0].attempts, claimed[&2].starts), (1, 0));
    assert_eq!(worker.start(&claimed[&2]).await, StartReply::Go);
    worker.claims_nothing().await;
    Ok(())
}

async fn some_time() -> Result<Duration> {
    const PAUSE: Duration = Duration::from_millis(30);
    let begun = UnixMs::now();
    eventually(Duration::from_secs(10), async || Ok(UnixMs::now().since(begun) > PAUSE)).await?;
    Ok(PAUSE)
}

/// Deadlines move by the length of the pause, even if pause and resume are repeated.
pub async fn deadlines_move_by_the_pause(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let deadline = much_later();
    session.admit(&[NewWork { deadline: Some(deadline), ..case.new_work(0) }]).await?;
    let asked = UnixMs::now();
    carrier.control.pause(&case.crawl).await?;
    let pause = some_time().await?;
    carrier.control.pause(&case.crawl).await?;
    carrier.control.resume(&case.crawl).await?;
    carrier.control.resume(&case.crawl).await?;
    let longest = UnixMs::now().since(asked) + Duration::from_millis(5);
    let moved = worker.claim_one().await.message.deadline.expect("it has a deadline");
    let by = moved.since(deadline);
    assert!((pause..=longest).contains(&by), "{by:?}, of {pause:?} to {longest:?}");
    session.close().await
}

/// A deadline that is set after a pause does not move, whether its URL comes from sources or a link.
pub async fn a_deadline_that_is_set_after_a_pause_stays_as_it_is(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    carrier.control.pause(&case.crawl).await?;
    some_time().await?;
    carrier.control.resume(&case.crawl).await?;
    let deadline = Some(much_later());
    let url = |number| NewWork { deadline, ..case.new_work(number) };
    let page = worker.claim_one().await;
    session.admit(&[url(1)]).await?;
    assert!(worker.settle_unstarted(&page, done(&page.message, vec![url(2)])).await);
    for claimed in worker.claim(2).await {
        assert_eq!(claimed.message.deadline, deadline);
    }
    session.close().await
}

/// In a pause a fetch that has begun may end, or be parked.
pub async fn what_is_in_hand_may_end_in_a_pause(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 3, Terms::default()).await?;
    let claimed = worker.claim_pages(3).await;
    for claimed in claimed.values() {
        assert_eq!(worker.start(claimed).await, StartReply::Go);
    }
    carrier.control.pause(&case.crawl).await?;
    assert!(worker.end(&case, &claimed[&0], Terminal::Done).await);
    worker.park(&claimed[&1], UnixMs::now(), true).await;
    worker.release(&claimed[&2]).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done, stats.pending), (CrawlState::Paused, 1, 2));
    carrier.control.resume(&case.crawl).await?;
    let claimed = worker.claim_pages(2).await;
    assert_eq!((claimed[&1].attempts, claimed[&2].attempts), (1, 0));
    Ok(())
}

/// A paused crawl does not end before it is resumed: the operator may want to add to it.
pub async fn a_paused_crawl_does_not_end_before_it_goes_on(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    let claimed = worker.claim_one().await;
    carrier.control.pause(&case.crawl).await?;
    session.close().await?;
    assert!(worker.end(&case, &claimed, Terminal::Done).await);
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.discovered, stats.pending), (CrawlState::Paused, true, 0));
    carrier.control.resume(&case.crawl).await?;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// If a limit is reached in a pause, nothing is skipped before the end of the pause: the operator may raise the limit.
pub async fn a_limit_that_is_reached_in_a_pause_skips_nothing_before_its_end(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let terms = Terms { max_pages: NonZeroU64::new(1), ..Terms::default() };
    carrier.begin(&case, 3, terms).await?;
    let claimed = worker.claim_one().await;
    carrier.control.pause(&case.crawl).await?;
    assert!(worker.end(&case, &claimed, Terminal::Done).await);
    assert_eq!(carrier.stats(&case).await?.pending, 2);
    carrier.control.resume(&case.crawl).await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.skipped), (CrawlState::Finished, 2));
    Ok(())
}

/// A second pause or resume changes nothing: the answer to the first call may have been lost.
pub async fn to_pause_or_resume_twice_is_to_do_it_once(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    carrier.control.resume(&case.crawl).await?;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    for _ in 0..2 {
        carrier.control.pause(&case.crawl).await?;
        assert_eq!(carrier.stats(&case).await?.status, CrawlState::Paused);
    }
    for _ in 0..2 {
        carrier.control.resume(&case.crawl).await?;
        assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    }
    worker.work_off(1).await;
    Ok(())
}

/// A paused crawl can be cancelled, and takes no other command afterwards.
pub async fn a_paused_crawl_can_be_cancelled(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    carrier.begin(&case, 2, Terms::default()).await?;
    carrier.control.pause(&case.crawl).await?;
    carrier.control.cancel(&case.crawl).await?;
    assert_eq!(kind(carrier.control.resume(&case.crawl).await), Some(ErrorKind::Stale));
    assert_eq!(kind(carrier.control.pause(&case.crawl).await), Some(ErrorKind::Stale));
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.cancelled), (CrawlState::Cancelled, 2));
    Ok(())
}

/// After a cancellation its producer, or another one, may open another crawl of the spider.
pub async fn who_reads_sources_for_a_cancelled_crawl_may_open_another(carrier: &Carrier) -> Result<()> {
    let first = Case::new();
    let session = carrier.open(&first, Terms::default()).await?;
    session.admit(&[first.new_work(0)]).await?;
    carrier.control.cancel(&first.crawl).await?;
    let second = first.next_crawl();
    let next = carrier.open(&second, Terms::default()).await?;
    assert_eq!(kind(session.admit(&[first.new_work(1)]).await), Some(ErrorKind::Stale));
    assert_eq!(next.admit(&[second.new_work(1)]).await?, [true]);
    assert_eq!(kind(session.close().await), Some(ErrorKind::Stale));
    next.close().await
}

async fn admitted(session: &dyn CrawlSession, case: &Case, count: usize) -> Result<Vec<bool>> {
    let urls: Vec<NewWork> = (0..count).map(|number| case.new_work(number)).collect();
    session.admit(&urls).await
}

/// URLs that a cancelled crawl did not fetch are new to a later crawl; fetched ones are not.
pub async fn a_later_crawl_finds_what_was_cancelled_and_nothing_else(carrier: &Carrier) -> Result<()> {
    let first = Case::new();
    let worker = carrier.join(&first);
    let session = carrier.open(&first, Terms::default()).await?;
    assert_eq!(admitted(&*session, &first, 3).await?, [true; 3]);
    let claimed = worker.claim_pages(3).await;
    assert!(worker.end(&first, &claimed[&0], Terminal::Done).await);
    assert!(worker.end(&first, &claimed[&1], Terminal::Failed).await);
    session.abandon().await?;
    carrier.control.cancel(&first.crawl).await?;
    let second = first.next_crawl();
    let session = carrier.open(&second, Terms::default()).await?;
    assert_eq!(admitted(&*session, &second, 3).await?, [false, false, true]);
    let found = worker.claim_one().await;
    assert_eq!(found.message.crawl, second.crawl);
    assert!(!worker.extends(&claimed[&2]).await, "the first crawl is over");
    session.close().await
}

/// An expired URL is new to a later crawl once its crawl is over, but not before: a worker that still has it would
/// revive it.
pub async fn a_later_crawl_finds_what_expired_once_its_crawl_is_over(carrier: &Carrier) -> Result<()> {
    let first = Case::new();
    let worker = carrier.join(&first);
    carrier.begin(&first, 2, Terms::default()).await?;
    let claimed = worker.claim_pages(2).await;
    assert!(worker.end(&first, &claimed[&0], Terminal::Expired).await);
    let second = first.next_crawl();
    let session = carrier.open(&second, Terms::default()).await?;
    assert_eq!(admitted(&*session, &second, 2).await?, [false, false]);
    assert!(worker.end(&first, &claimed[&1], Terminal::Done).await);
    assert_eq!(carrier.stats(&first).await?.status, CrawlState::Finished);
    assert_eq!(admitted(&*session, &second, 2).await?, [true, false]);
    worker.work_off(1).await;
    session.close().await?;
    assert_eq!(carrier.stats(&second).await?.status, CrawlState::Finished);
    Ok(())
}

/// A page that was fetched beyond the limit stays seen, as its items are stored. URLs that the limit left unfetched are
/// new to a later crawl.
pub async fn what_was_fetched_beyond_the_limit_stays_seen(carrier: &Carrier) -> Result<()> {
    let first = Case::new();
    let worker = carrier.join(&first);
    let terms = Terms { max_pages: NonZeroU64::new(1), ..Terms::default() };
    carrier.begin(&first, 3, terms).await?;
    let claimed = worker.claim_pages(2).await;
    let batch = claimed.values().map(|claimed| Settlement {
        message: claimed.message.clone(),
        disposition: done(&claimed.message, Vec::new()),
    });
    worker.frontier.settle(batch.collect()).await?;
    let stats = carrier.stats(&first).await?;
    let counts = Counts { admitted: 3, done: 1, skipped: 2, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, counts));
    let second = first.next_crawl();
    let session = carrier.open(&second, Terms::default()).await?;
    assert_eq!(admitted(&*session, &second, 3).await?, [false, false, true]);
    session.close().await
}
