//! Pausing a crawl, and resuming it.

use std::num::NonZeroU64;
use std::time::Duration;

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, MAX_STARTS, StartReply};
use trawl_common::ports::{NewWork, Result, Terms};
use trawl_common::time::UnixMs;
use trawl_engine::{Linking, Past};

use super::ControlPorts;
use crate::conformance::eventually;
use crate::conformance::fixture::{Fixture, LONG, TAKE, long_ago, much_later, took};

/// No fetch begins in a pause: new messages are dropped, and URLs claimed before are released.
pub async fn no_fetch_begins_while_a_crawl_is_paused(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    fixture.begin(2).await?;
    fixture.claim(&fixture.worker, 0).await?;
    ports.control.pause(&fixture.crawl).await?;
    assert_eq!(fixture.status().await?, CrawlState::Paused);
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost);
    assert!(fixture.is_held_back(&fixture.worker, 1).await?);
    assert!(fixture.is_held_back(&fixture.other, 0).await?, "let go, and held by the pause");
    assert_eq!(fixture.crawl_stats().await?.pending, 2);
    Ok(())
}

/// After a pause a queued URL goes on, whether it was claimed before the pause, in it, or never.
pub async fn what_was_queued_goes_on_after_a_pause(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    fixture.begin(3).await?;
    fixture.claim(&fixture.worker, 0).await?;
    ports.control.pause(&fixture.crawl).await?;
    assert_eq!(fixture.start(&fixture.worker, 0).await?, StartReply::Lost);
    assert!(fixture.is_held_back(&fixture.worker, 1).await?);
    ports.control.resume(&fixture.crawl).await?;
    assert_eq!(fixture.status().await?, CrawlState::Running);
    for number in 0..3 {
        assert_eq!(fixture.claim(&fixture.other, number).await?, TAKE);
        assert_eq!(fixture.start(&fixture.other, number).await?, StartReply::Go);
    }
    Ok(())
}

/// A pause changes neither the attempts of a URL nor its wake-up, and a fetch that did not begin does not count.
pub async fn a_pause_changes_nothing_else_about_a_url(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    fixture.begin(3).await?;
    for (number, until) in [(0, long_ago()), (1, much_later())] {
        fixture.claim(&fixture.worker, number).await?;
        fixture.park(&fixture.worker, number, until, true).await?;
        fixture.confirm_parked(number, until).await?;
    }
    for _ in 0..=MAX_STARTS {
        assert_eq!(fixture.claim(&fixture.worker, 2).await?, TAKE);
        ports.control.pause(&fixture.crawl).await?;
        assert_eq!(fixture.start(&fixture.worker, 2).await?, StartReply::Lost);
        ports.control.resume(&fixture.crawl).await?;
    }
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, took(1));
    assert_eq!(fixture.claim(&fixture.worker, 1).await?, ClaimReply::Drop, "parked until later");
    assert_eq!(fixture.claim(&fixture.worker, 2).await?, TAKE);
    assert_eq!(fixture.start(&fixture.worker, 2).await?, StartReply::Go);
    Ok(())
}

/// Deadlines move by the length of the pause, even if pause and resume are repeated.
pub async fn deadlines_move_by_the_pause(ports: &ControlPorts) -> Result<()> {
    const PAUSE: Duration = Duration::from_millis(30);
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(0).await?;
    let deadline = much_later();
    ports.frontier.admit(&lease, &[NewWork { deadline: Some(deadline), ..fixture.new_work(0) }]).await?;
    let asked = UnixMs::now();
    ports.control.pause(&fixture.crawl).await?;
    let paused = UnixMs::now();
    eventually(Duration::from_secs(10), async || Ok(UnixMs::now().since(paused) > PAUSE)).await?;
    ports.control.pause(&fixture.crawl).await?;
    ports.control.resume(&fixture.crawl).await?;
    ports.control.resume(&fixture.crawl).await?;
    let longest = UnixMs::now().since(asked) + Duration::from_millis(5);
    let ClaimReply::Take { deadline: Some(moved), .. } = fixture.claim(&fixture.worker, 0).await? else {
        panic!("it has a deadline and nobody holds it");
    };
    let by = moved.since(deadline);
    assert!((PAUSE..=longest).contains(&by), "{by:?}, of {PAUSE:?} to {longest:?}");
    Ok(())
}

/// A deadline that is set after a pause does not move, whether its URL comes from sources, a link or a message.
pub async fn a_deadline_that_is_set_after_a_pause_stays_as_it_is(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(1).await?;
    ports.control.pause(&fixture.crawl).await?;
    let paused = UnixMs::now();
    eventually(Duration::from_secs(10), async || Ok(UnixMs::now() > paused)).await?;
    ports.control.resume(&fixture.crawl).await?;
    let deadline = Some(much_later());
    let url = |number| NewWork { deadline, ..fixture.new_work(number) };
    ports.frontier.admit(&lease, &[url(1)]).await?;
    fixture.claim(&fixture.worker, 0).await?;
    let linking = Linking { page: fixture.claim_on(0), links: vec![url(2)] };
    ports.frontier.admit_links(&fixture.worker, &[linking]).await?;
    let messages = [1, 2, 3].map(|number| url(number).message(&fixture.crawl));
    let replies = ports.frontier.claim(&fixture.worker, &messages).await?;
    assert_eq!(replies, [ClaimReply::Take { attempts: 0, starts: 0, deadline }; 3]);
    Ok(())
}

/// A URL first met in a pause waits for its end, whether it was published by hand or forgotten by the store.
pub async fn a_url_first_met_in_a_pause_waits_for_its_end(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(0).await?;
    ports.control.pause(&fixture.crawl).await?;
    assert!(fixture.is_held_back(&fixture.worker, 0).await?);
    assert_eq!(fixture.admit(&lease, 0..2).await?, [false, true], "sources may go on being read");
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.pending), (2, 2));
    ports.control.resume(&fixture.crawl).await?;
    assert_eq!(fixture.claim(&fixture.other, 0).await?, TAKE);
    assert_eq!(fixture.claim(&fixture.other, 1).await?, TAKE);
    Ok(())
}

/// In a pause a fetch that has begun may end, or be parked.
pub async fn what_is_in_hand_may_end_in_a_pause(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    fixture.begin(3).await?;
    for number in 0..3 {
        fixture.claim(&fixture.worker, number).await?;
        assert_eq!(fixture.start(&fixture.worker, number).await?, StartReply::Go);
    }
    ports.control.pause(&fixture.crawl).await?;
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    assert!(fixture.park(&fixture.worker, 1, long_ago(), true).await?);
    fixture.release(&fixture.worker, 2).await?;
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.status, stats.counts.done, stats.pending), (CrawlState::Paused, 1, 2));
    ports.control.resume(&fixture.crawl).await?;
    assert_eq!(fixture.claim(&fixture.other, 1).await?, took(1));
    assert_eq!(fixture.claim(&fixture.other, 2).await?, TAKE);
    Ok(())
}

/// If a limit is reached in a pause, nothing is skipped before the end of the pause: the operator may raise the limit.
pub async fn a_limit_that_is_reached_in_a_pause_skips_nothing_before_its_end(
    ports: &ControlPorts,
) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let terms = Terms { max_pages: NonZeroU64::new(1), ..Terms::default() };
    let lease = ports.frontier.open(&fixture.crawl, terms, "producer", LONG, Past::Possible).await?;
    fixture.admit(&lease, 0..3).await?;
    ports.frontier.close(lease, None).await?;
    fixture.claim(&fixture.worker, 0).await?;
    ports.control.pause(&fixture.crawl).await?;
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    ports.frontier.sweep(&fixture.worker).await?;
    assert_eq!(fixture.crawl_stats().await?.pending, 2);
    ports.control.resume(&fixture.crawl).await?;
    eventually(Duration::from_secs(30), async || {
        ports.frontier.sweep(&fixture.worker).await?;
        Ok(fixture.status().await? == CrawlState::Finished)
    })
    .await?;
    assert_eq!(fixture.crawl_stats().await?.counts.skipped, 2);
    Ok(())
}

/// A second pause or resume changes nothing: the answer to the first call may have been lost.
pub async fn to_pause_or_resume_twice_is_to_do_it_once(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    fixture.begin(1).await?;
    ports.control.resume(&fixture.crawl).await?;
    assert_eq!(fixture.status().await?, CrawlState::Running);
    for _ in 0..2 {
        ports.control.pause(&fixture.crawl).await?;
        assert_eq!(fixture.status().await?, CrawlState::Paused);
    }
    for _ in 0..2 {
        ports.control.resume(&fixture.crawl).await?;
        assert_eq!(fixture.status().await?, CrawlState::Running);
    }
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE);
    Ok(())
}

/// Other crawls go on while one is paused, even if one call is about several crawls.
pub async fn other_crawls_go_on_while_one_is_paused(ports: &ControlPorts) -> Result<()> {
    let paused = Fixture::new(&ports.frontier);
    let running = paused.other_spider();
    paused.begin(2).await?;
    running.begin(2).await?;
    paused.claim(&paused.worker, 0).await?;
    ports.control.pause(&paused.crawl).await?;
    let replies = ports.frontier.claim(&paused.worker, &[paused.message(1), running.message(0)]).await?;
    assert!(matches!(replies[..], [ClaimReply::Drop | ClaimReply::Wait { .. }, TAKE]), "{replies:?}");
    let starts = ports.frontier.start(&paused.worker, &[paused.claim_on(0), running.claim_on(0)]).await?;
    assert_eq!(starts, [StartReply::Lost, StartReply::Go]);
    Ok(())
}
