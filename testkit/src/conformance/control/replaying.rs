//! Replaying dead letters.

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::dead_letter::{Cause, DeadLetterEntry};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::{Reason, Skip, Terminal};
use trawl_common::frontier::{ClaimReply, MAX_STARTS, Start};
use trawl_common::ports::{Claim, ErrorKind, Finish, NewWork, Result};
use trawl_common::web::url::CanonicalUrl;

use super::cancelling::finds_again;
use super::{ControlPorts, kind};
use crate::conformance::fixture::{Fixture, TAKE, long_ago};

/// Returns the message of a replayed page, with all that its note knows of it.
fn message(from: &Fixture<'_>, into: &Fixture<'_>, number: usize, terminal: Terminal) -> Message {
    let note = from.note(number, terminal);
    let seed = Message::seed(into.url(number), into.crawl.clone(), note.lane);
    Message { depth: note.depth, referrer: note.referrer, ..seed }
}

/// A replayed URL starts again without failures and starts, and counts as pending once.
pub async fn a_replayed_url_begins_anew_in_its_crawl(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(3).await?;
    fixture.claim(&fixture.worker, 0).await?;
    fixture.park(&fixture.worker, 0, long_ago(), true).await?;
    for _ in 0..MAX_STARTS {
        fixture.claim(&fixture.worker, 0).await?;
        assert_eq!(fixture.start(&fixture.worker, 0).await?, Start::Go);
    }
    fixture.finish(0, Terminal::Failed).await?;
    fixture.finish(1, Terminal::Failed).await?;
    let urls = [fixture.key(0), fixture.key(1)];
    let messages = ports.frontier.replay(&fixture.crawl, &fixture.crawl, &urls).await?;
    assert_eq!(messages, [0, 1].map(|number| message(&fixture, &fixture, number, Terminal::Failed)));
    ports.frontier.confirm(&fixture.crawl, &urls).await?;
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts, stats.pending), (Counts { admitted: 3, ..Counts::default() }, 3));
    assert!(stats.reasons.is_empty(), "{stats:?}");
    assert_eq!(ports.frontier.hosts(&fixture.crawl, 1).await?[0].counts, stats.counts);
    assert_eq!(ports.control.failure(&fixture.crawl, &fixture.key(0)).await?, None);
    assert_eq!(fixture.admit(&lease, 0..2).await?, [false, false]);
    assert_eq!(fixture.claim(&fixture.other, 0).await?, TAKE);
    assert_eq!(fixture.start(&fixture.other, 0).await?, Start::Go);
    assert!(fixture.end(&fixture.other, 0, Terminal::Done).await?);
    assert_eq!(fixture.crawl_stats().await?.counts, Counts { admitted: 3, done: 1, ..Counts::default() });
    Ok(())
}

/// A replayed URL can fail and be replayed again, and counts once each time.
pub async fn a_replayed_url_can_fail_and_be_replayed_again(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(1).await?;
    for _ in 0..3 {
        fixture.finish(0, Terminal::Failed).await?;
        assert_eq!(fixture.crawl_stats().await?.counts.failed, 1);
        assert!(ports.control.failure(&fixture.crawl, &fixture.key(0)).await?.is_some());
        assert_eq!(ports.frontier.replay(&fixture.crawl, &fixture.crawl, &[fixture.key(0)]).await?.len(), 1);
        assert_eq!(fixture.crawl_stats().await?.counts.failed, 0);
    }
    ports.frontier.close(lease, None).await?;
    assert_eq!(fixture.status().await?, CrawlState::Running);
    fixture.finish(0, Terminal::Done).await?;
    let stats = fixture.crawl_stats().await?;
    let expected = Counts { admitted: 1, done: 1, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    Ok(())
}

/// A URL with a spelling of an older version is handled, listed and replayed as it is written: its record is found by
/// that text.
pub async fn a_url_as_an_older_version_wrote_it_is_handled_listed_and_replayed_as_it_stands(
    ports: &ControlPorts,
) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(0).await?;
    let host = fixture.url(0).host();
    let old = CanonicalUrl::recorded(&format!("http://{host}./%7ea?%2f")).expect("it is a URL");
    assert!(old.as_str().contains("./%7ea?%2f"));
    let new_work = NewWork::seed(old.clone(), Lane::Bulk);
    assert_eq!(ports.frontier.admit(&lease, std::slice::from_ref(&new_work)).await?, [true]);
    ports.frontier.confirm(&fixture.crawl, &[old.clone().into()]).await?;
    let ending = |terminal| Finish {
        note: (terminal == Terminal::Failed).then(|| fixture.note(0, terminal)),
        ..Finish::new(Claim { crawl: fixture.crawl.clone(), key: old.clone().into() }, terminal)
    };
    assert_eq!(fixture.finish_all(&[ending(Terminal::Failed)]).await?, [true]);
    let listed = ports.control.failed(&fixture.crawl, 0).await?.failed;
    assert_eq!(listed.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), std::slice::from_ref(&old));
    let messages = ports.frontier.replay(&fixture.crawl, &fixture.crawl, &[old.clone().into()]).await?;
    assert_eq!(
        messages.into_iter().map(|message| message.work).collect::<Vec<_>>(),
        std::slice::from_ref(&old)
    );
    assert_eq!(fixture.finish_all(&[ending(Terminal::Done)]).await?, [true]);
    assert_eq!(fixture.crawl_stats().await?.counts, Counts { admitted: 1, done: 1, ..Counts::default() });
    Ok(())
}

/// A replayed URL that expired has no deadline; otherwise it would expire again at once.
pub async fn a_replayed_url_that_expired_has_no_deadline(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(0).await?;
    ports.frontier.admit(&lease, &[NewWork { deadline: Some(long_ago()), ..fixture.new_work(0) }]).await?;
    fixture.finish(0, Terminal::Expired).await?;
    let messages = ports.frontier.replay(&fixture.crawl, &fixture.crawl, &[fixture.key(0)]).await?;
    assert_eq!(messages, [message(&fixture, &fixture, 0, Terminal::Expired)]);
    assert_eq!(fixture.crawl_stats().await?.counts, Counts { admitted: 1, ..Counts::default() });
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, TAKE);
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    Ok(())
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

/// A URL that is not in the list is not replayed: one that is done, pending, never seen, named twice, or of another
/// crawl.
pub async fn what_is_not_in_the_list_is_not_replayed(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let unknown = fixture.next_crawl();
    fixture.begin(3).await?;
    fixture.finish(0, Terminal::Done).await?;
    fixture.finish(1, Terminal::Failed).await?;
    let urls = [0, 1, 2, 9, 1].map(|number| fixture.key(number));
    assert!(ports.frontier.replay(&unknown.crawl, &fixture.crawl, &urls).await?.is_empty());
    let messages = ports.frontier.replay(&fixture.crawl, &fixture.crawl, &urls).await?;
    assert_eq!(messages, [message(&fixture, &fixture, 1, Terminal::Failed)]);
    assert!(ports.frontier.replay(&fixture.crawl, &fixture.crawl, &urls).await?.is_empty());
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts, stats.pending), (Counts { admitted: 3, done: 1, ..Counts::default() }, 2));
    Ok(())
}

/// Dead letters of a finished crawl are replayed into a successor, which admits them; the finished crawl does not
/// change.
pub async fn a_finished_crawl_is_replayed_into_a_successor(ports: &ControlPorts) -> Result<()> {
    let first = Fixture::new(&ports.frontier);
    let lease = first.begin(2).await?;
    first.finish(0, Terminal::Done).await?;
    first.finish(1, Terminal::Failed).await?;
    ports.frontier.close(lease, None).await?;
    let before = first.crawl_stats().await?;
    let second = first.next_crawl();
    let lease = second.open().await?;
    let messages = ports.frontier.replay(&first.crawl, &second.crawl, &[first.key(0), first.key(1)]).await?;
    assert_eq!(messages, [message(&first, &second, 1, Terminal::Failed)]);
    ports.frontier.confirm(&second.crawl, &[second.key(1)]).await?;
    ports.frontier.close(lease, None).await?;
    let after = first.crawl_stats().await?;
    assert_eq!((after.status, after.counts, after.pending), (before.status, before.counts, 0));
    assert_eq!(ports.control.failure(&first.crawl, &first.key(1)).await?, None);
    assert_eq!(second.crawl_stats().await?.counts, Counts { admitted: 1, ..Counts::default() });
    assert_eq!(first.claim(&first.worker, 1).await?, ClaimReply::Drop, "a copy from the first crawl");
    assert_eq!(second.claim(&second.worker, 1).await?, TAKE);
    assert!(second.end(&second.worker, 1, Terminal::Failed).await?);
    assert_eq!(second.status().await?, CrawlState::Finished);
    assert!(ports.control.failure(&second.crawl, &second.key(1)).await?.is_some());
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

/// A replay into a crawl that is over or unknown fails with `Stale`, and leaves the list unchanged.
pub async fn nothing_is_replayed_into_a_crawl_that_is_over_or_unknown(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(1).await?;
    fixture.finish(0, Terminal::Failed).await?;
    ports.frontier.close(lease, None).await?;
    let before = fixture.crawl_stats().await?;
    for into in [&fixture, &fixture.next_crawl()] {
        let refused = ports.frontier.replay(&fixture.crawl, &into.crawl, &[fixture.key(0)]).await;
        assert_eq!(kind(refused), Some(ErrorKind::Stale));
    }
    assert!(ports.control.failure(&fixture.crawl, &fixture.key(0)).await?.is_some());
    assert_eq!(fixture.crawl_stats().await?.counts, before.counts);
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
