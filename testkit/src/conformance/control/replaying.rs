//! Replaying dead letters.

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Reason, Skip, Terminal};
use trawl_common::ports::{Finish, Result};

use super::ControlPorts;
use super::cancelling::finds_again;
use crate::conformance::fixture::{Fixture, TAKE};

/// Returns the message of a replayed page, with all that its note knows of it.
fn message(from: &Fixture<'_>, into: &Fixture<'_>, number: usize, terminal: Terminal) -> Message {
    let note = from.note(number, terminal);
    let seed = Message::seed(into.url(number), into.crawl.clone(), note.lane);
    Message { depth: note.depth, referrer: note.referrer, ..seed }
}

/// URLs that were skipped because of a block are listed, can be replayed, and are new to a later crawl: the block may
/// be lifted.
pub async fn what_a_block_skipped_is_listed_replayed_and_found_by_a_later_crawl(
    ports: &ControlPorts,
) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(3).await?;
    let blocked = |number| {
        let note = fixture.note(number, Terminal::Skipped);
        let cause = Cause { reason: Reason::Blocked, class: None, status: None, ..note.cause };
        let finish = Finish::new(fixture.claim_on(number), Terminal::Skipped);
        Finish { why: Some(Skip::Blocked.as_str()), note: Some(DeadLetterEntry { cause, ..note }), ..finish }
    };
    for number in 0..2 {
        fixture.claim(&fixture.worker, number).await?;
    }
    assert_eq!(fixture.finish_all(&[blocked(0), blocked(1)]).await?, [true, true]);
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.skipped, stats.reasons["skipped:blocked"]), (2, 2));
    assert_eq!(ports.control.failure(&fixture.crawl, &fixture.key(0)).await?, blocked(0).note);
    assert_eq!(ports.frontier.replay(&fixture.crawl, &fixture.crawl, &[fixture.key(0)]).await?.len(), 1);
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.skipped, stats.reasons["skipped:blocked"], stats.pending), (1, 1, 2));
    fixture.finish(0, Terminal::Done).await?;
    fixture.finish(2, Terminal::Done).await?;
    ports.frontier.close(lease, None).await?;
    assert_eq!(fixture.status().await?, CrawlState::Finished);
    let later = fixture.next_crawl();
    let lease = later.open().await?;
    finds_again(&later, &lease, 1).await?;
    assert_eq!(later.admit(&lease, 0..1).await?, [false]);
    Ok(())
}

/// An expired URL is replayed into a successor even if its spider has forgotten it; it is seen from then on.
pub async fn what_expired_is_replayed_into_a_successor(ports: &ControlPorts) -> Result<()> {
    let first = Fixture::new(&ports.frontier);
    let lease = first.begin(1).await?;
    first.finish(0, Terminal::Expired).await?;
    ports.frontier.close(lease, None).await?;
    let second = first.next_crawl();
    let lease = second.open().await?;
    let messages = ports.frontier.replay(&first.crawl, &second.crawl, &[first.key(0)]).await?;
    assert_eq!(messages, [message(&first, &second, 0, Terminal::Expired)]);
    assert_eq!(second.admit(&lease, [0]).await?, [false]);
    assert_eq!(second.claim(&second.worker, 0).await?, TAKE);
    assert!(second.end(&second.worker, 0, Terminal::Done).await?);
    assert_eq!(second.crawl_stats().await?.counts, Counts { admitted: 1, done: 1, ..Counts::default() });
    Ok(())
}

/// A URL that is replayed into a paused crawl waits, like any new one.
pub async fn what_is_replayed_into_a_paused_crawl_waits(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    fixture.begin(1).await?;
    fixture.finish(0, Terminal::Failed).await?;
    ports.control.pause(&fixture.crawl).await?;
    assert_eq!(ports.frontier.replay(&fixture.crawl, &fixture.crawl, &[fixture.key(0)]).await?.len(), 1);
    assert!(fixture.is_held_back(&fixture.worker, 0).await?);
    ports.control.resume(&fixture.crawl).await?;
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE);
    Ok(())
}
