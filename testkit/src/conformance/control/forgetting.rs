//! Forgetting the URLs that a spider has seen, in each form of the set.

use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{ErrorKind, Result, Seen};

use super::{ControlPorts, kind};
use crate::conformance::fixture::Fixture;

/// More than one call of a script takes, and enough for several buckets of a packed set.
const MANY: usize = 1_200;

/// Any number of ended URLs can be forgotten; pending ones are not.
pub async fn any_number_of_urls_is_forgotten_but_for_those_that_are_pending(
    ports: &ControlPorts,
) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(MANY).await?;
    fixture.claim(&fixture.worker, 7).await?;
    assert!(fixture.end(&fixture.worker, 7, Terminal::Done).await?);
    let (spider, urls) =
        (&fixture.crawl.spider, (0..MANY + 1).map(|number| fixture.key(number)).collect::<Vec<_>>());
    let forgotten = ports.control.forget_seen(spider, &urls).await?;
    let expected = |number| match number {
        7 => Seen::Ended,
        MANY => Seen::Never,
        _ => Seen::Pending,
    };
    assert!(forgotten.into_iter().enumerate().all(|(number, seen)| seen == expected(number)));
    assert_eq!(ports.frontier.seen(spider).await?, Some(MANY as u64 - 1));
    assert!(!ports.frontier.has_seen(&fixture.crawl, &fixture.url(7)).await?);
    assert_eq!(fixture.admit(&lease, 6..9).await?, [false, true, false], "what is forgotten is new");
    assert_eq!(fixture.crawl_stats().await?.counts.admitted, MANY as u64 + 1);
    Ok(())
}

/// All URLs of a spider can be forgotten once its crawls are over. Another crawl then admits all of them, into a set of
/// the same form.
pub async fn everything_is_forgotten_when_no_crawl_goes_on(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(MANY).await?;
    let spider = &fixture.crawl.spider;
    assert_eq!(kind(ports.control.forget_all_seen(spider).await), Some(ErrorKind::Refused));
    ports.frontier.close(lease, None).await?;
    // A cancelled URL is forgotten anyway; this one is done.
    fixture.claim(&fixture.worker, 0).await?;
    assert!(fixture.end(&fixture.worker, 0, Terminal::Done).await?);
    ports.control.cancel(&fixture.crawl).await?;
    ports.control.forget_all_seen(spider).await?;
    assert_eq!(ports.frontier.seen(spider).await?, Some(0));
    let later = fixture.next_crawl();
    let lease = later.open().await?;
    let admitted = later.admit(&lease, 0..500).await?;
    assert!(admitted.into_iter().all(|is_new| is_new));
    assert_eq!(ports.frontier.seen(spider).await?, Some(500));
    Ok(())
}
