//! Commands that make spiders and crawls forget.

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{ErrorKind, Result, Seen, Terms};

use super::{Carrier, kind};
use crate::conformance::fixture::Case;

/// A forgotten URL is new to a later crawl. A pending URL is not forgotten: its crawl would admit it again.
pub async fn a_url_that_is_forgotten_is_new_to_a_later_crawl_and_what_is_pending_stays(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 3, Terms::default()).await?;
    let claimed = worker.claim_pages(3).await;
    assert!(worker.end(&case, &claimed[&0], Terminal::Done).await);
    assert!(worker.end(&case, &claimed[&1], Terminal::Failed).await);
    let spider = &case.crawl.spider;
    let urls = [0, 1, 2, 9].map(|number| case.key(number));
    let stands = [Seen::Ended, Seen::Ended, Seen::Pending, Seen::Never];
    assert_eq!(carrier.stats.seen_urls(spider, &urls).await?, stands);
    assert_eq!(carrier.stats.seen(spider).await?, Some(3));
    let forgets = [case.key(0), case.key(2), case.key(9)];
    let forgotten = carrier.control.forget_seen(spider, &forgets).await?;
    assert_eq!(forgotten, [Seen::Ended, Seen::Pending, Seen::Never]);
    let stands = [Seen::Never, Seen::Ended, Seen::Pending, Seen::Never];
    assert_eq!(carrier.stats.seen_urls(spider, &urls).await?, stands);
    assert_eq!(carrier.stats.seen(spider).await?, Some(2));
    assert!(worker.end(&case, &claimed[&2], Terminal::Done).await);
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    let later = case.next_crawl();
    let session = carrier.open(&later, Terms::default()).await?;
    let new: Vec<_> = (0..3).map(|number| later.new_work(number)).collect();
    assert_eq!(session.admit(&new).await?, [true, false, false]);
    Ok(())
}

/// All URLs that a spider has seen can be forgotten once its crawls are over, not before: a running crawl would admit
/// again the ones that it has done.
pub async fn all_that_a_spider_has_seen_is_forgotten_once_its_crawls_are_over(
    carrier: &Carrier,
) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 2, Terms::default()).await?;
    let spider = &case.crawl.spider;
    assert_eq!(kind(carrier.control.forget_all_seen(spider).await), Some(ErrorKind::Refused));
    for claimed in worker.claim(2).await {
        worker.finish(claimed).await;
    }
    carrier.control.forget_all_seen(spider).await?;
    assert_eq!(carrier.stats.seen(spider).await?, Some(0));
    let later = case.next_crawl();
    let session = carrier.open(&later, Terms::default()).await?;
    assert_eq!(session.admit(&[later.new_work(0), later.new_work(1)]).await?, [true, true]);
    Ok(())
}

/// A crawl that is over is forgotten with its dead letters, a running one is not. The spider's seen URLs stay, and
/// forgetting a crawl again changes nothing.
pub async fn a_crawl_that_is_over_is_forgotten_with_its_dead_letters_and_one_that_goes_on_is_not(
    carrier: &Carrier,
) -> Result<()> {
    let (case, other) = (Case::new(), Case::new());
    let worker = carrier.join(&case);
    carrier.begin(&case, 2, Terms::default()).await?;
    let claimed = worker.claim(2).await;
    assert!(worker.end(&case, &claimed[0], Terminal::Failed).await);
    carrier.begin(&other, 1, Terms::default()).await?;
    assert_eq!(kind(carrier.control.forget_crawl(&case.crawl).await), Some(ErrorKind::Refused));
    assert_eq!(carrier.stats(&case).await?.pending, 1);
    carrier.control.cancel(&case.crawl).await?;
    for _ in 0..2 {
        carrier.control.forget_crawl(&case.crawl).await?;
        assert_eq!(carrier.stats.crawl_stats(&case.crawl.id).await?, None);
    }
    let left: Vec<_> = carrier.stats.crawls().await?.into_iter().map(|stats| stats.crawl).collect();
    assert_eq!(left, std::slice::from_ref(&other.crawl.id));
    assert!(carrier.control.failed(&case.crawl, 0).await?.failed.is_empty());
    assert!(carrier.stats.hosts(&case.crawl, 10).await?.is_empty());
    let seen = carrier.stats.seen_urls(&case.crawl.spider, &[claimed[0].message.key()]).await?;
    assert_eq!(seen, [Seen::Ended]);
    Ok(())
}
