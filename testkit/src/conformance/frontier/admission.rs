//! Admitting URLs.

use std::sync::Arc;

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, Taken};
use trawl_common::ports::{Claim, Finish, NewWork, Result};
use trawl_engine::{Linked, Linking, Records};

use crate::conformance::fixture::{Fixture, TAKE};

/// A repeated confirmation changes nothing, nor one for a URL that ended meanwhile or was never admitted.
pub async fn confirming_again_or_too_much_changes_nothing(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    fixture.begin(3).await?;
    fixture.finish(0, Terminal::Done).await?;
    fixture.claim(&fixture.worker, 1).await?;
    let before = fixture.crawl_stats().await?;
    let messages: Vec<_> = (0..4).map(|number| fixture.message(number)).collect();
    frontier.confirm(&messages).await?;
    let after = fixture.crawl_stats().await?;
    assert_eq!((after.counts, after.pending), (before.counts, before.pending));
    assert!(fixture.is_held_back(&fixture.other, 1).await?, "a held URL stays held");
    assert_eq!(fixture.claim(&fixture.other, 2).await?, TAKE);
    Ok(())
}

/// A bare URL from another program is taken once. It belongs to `adhoc`, which never ends.
pub async fn a_url_published_by_hand_is_taken_once(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier).of_requests();
    assert_eq!(fixture.claim_for_stranger(0).await?, TAKE);
    assert!(fixture.is_held_back(&fixture.other, 0).await?);
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, ClaimReply::Drop);
    assert_eq!(fixture.status().await?, CrawlState::Running);
    Ok(())
}

/// A URL published by hand is taken although its spider has seen it: the publisher may have added it to the seen URLs,
/// or want it fetched again.
pub async fn a_url_published_by_hand_is_taken_though_its_spider_has_seen_it(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let requests = Fixture::new(frontier).of_requests();
    let crawl = requests.next_crawl();
    crawl.begin(2).await?;
    crawl.finish(0, Terminal::Done).await?;
    assert_eq!(requests.claim_for_stranger(0).await?, TAKE);
    assert!(!frontier.has_seen(&requests.crawl, &requests.url(1)).await?, "nobody has asked for it yet");
    requests.finish(0, Terminal::Done).await?;
    assert!(frontier.has_seen(&requests.crawl, &requests.url(0)).await?);
    let stats = requests.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.counts.done), (1, 1));
    Ok(())
}

/// A URL that is asked for twice at once is counted as a repeat; copies from trawl's own programs are not.
pub async fn a_url_asked_for_twice_at_once_is_a_repeat_that_is_counted(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let fixture = Fixture::new(frontier).of_requests();
    assert_eq!(fixture.claim_for_stranger(0).await?, TAKE);
    fixture.finish(0, Terminal::Done).await?;
    for _ in 0..3 {
        assert_eq!(fixture.claim_for_stranger(0).await?, ClaimReply::Drop);
        assert_eq!(fixture.claim(&fixture.worker, 0).await?, ClaimReply::Drop);
    }
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.reasons.get("dropped:repeat")), (1, Some(&3)));
    Ok(())
}

/// The links of a requested page are admitted once, however often the page is asked for: two pages that link to each
/// other would otherwise be fetched forever.
pub async fn what_a_requested_page_links_to_is_admitted_once(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier).of_requests();
    let crawl = fixture.next_crawl();
    crawl.begin(2).await?;
    crawl.finish(1, Terminal::Done).await?;
    fixture.claim_for_stranger(2).await?;
    let links = [1, 3].map(|number| NewWork { depth: 1, ..fixture.new_work(number) }).to_vec();
    let linking = Linking { page: fixture.claim_on(2), links };
    let taken = frontier.admit_links(&fixture.worker, &[linking]).await?;
    assert_eq!(taken, [Linked::Taken(vec![Taken::Seen, Taken::New])]);
    Ok(())
}

/// A message of an unknown crawl begins its stats, so that a store that was emptied learns of its crawls from their
/// messages, which may have to be republished once.
pub async fn a_message_of_an_unknown_crawl_begins_its_stats(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let mut reply = fixture.claim(&fixture.worker, 0).await?;
    if reply == ClaimReply::SendAgain {
        assert_eq!(fixture.crawl_stats().await?.pending, 1, "it is known from now on");
        reply = fixture.claim(&fixture.worker, 0).await?;
    }
    assert_eq!(reply, TAKE);
    let stats = fixture.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.pending, stats.status), (1, 1, CrawlState::Running));
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    assert_eq!(fixture.status().await?, CrawlState::Running, "discovery has not ended");
    Ok(())
}

/// A message of another program with an unknown crawl is refused: the name is a mistake, and would leave a crawl that
/// never ends.
pub async fn a_strangers_message_of_an_unknown_crawl_is_refused(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let stranger = |number| Message { is_ours: false, ..fixture.message(number) };
    assert_eq!(frontier.claim(&fixture.worker, &[stranger(0), stranger(1)]).await?, [ClaimReply::Unknown; 2]);
    assert_eq!(frontier.crawl_stats(&fixture.crawl.id).await?, None);
    fixture.begin(1).await?;
    assert_eq!(
        frontier.claim(&fixture.worker, &[stranger(1)]).await?,
        [TAKE],
        "of a known one it is by hand"
    );
    Ok(())
}

/// A message for a crawl that is over is dropped, and does not revive the crawl.
pub async fn a_message_for_a_crawl_that_is_over_is_dropped(frontier: &Arc<dyn Records>) -> Result<()> {
    let fixture = Fixture::new(frontier);
    let lease = fixture.begin(0).await?;
    frontier.close(lease, None).await?;
    assert_eq!(fixture.claim(&fixture.worker, 0).await?, ClaimReply::Drop);
    assert_eq!(fixture.crawl_stats().await?.counts.admitted, 0);
    Ok(())
}

/// A message of another crawl of the spider is dropped: the record belongs to the crawl that admitted it.
pub async fn a_message_of_another_crawl_of_the_spider_is_dropped(frontier: &Arc<dyn Records>) -> Result<()> {
    let first = Fixture::new(frontier);
    let lease = first.begin(1).await?;
    frontier.close(lease, None).await?;
    let second = first.next_crawl();
    second.open().await?;
    let foreign = Message::seed(first.url(0), second.crawl.clone(), Lane::Priority);
    assert_eq!(frontier.claim(&first.worker, &[foreign]).await?, [ClaimReply::Drop]);
    let claim = Claim { crawl: second.crawl.clone(), key: first.key(0) };
    let finish = Finish::new(claim, Terminal::Done);
    frontier.finish(&first.worker, &[finish]).await?;
    assert_eq!((first.crawl_stats().await?.pending, second.crawl_stats().await?.counts.done), (1, 0));
    Ok(())
}
