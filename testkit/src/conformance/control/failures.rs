//! The list of dead letters.

use std::collections::BTreeMap;

use trawl_common::frontier::Key;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::dead_letter::DeadLetterEntry;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::Result;

use super::ControlPorts;
use crate::conformance::fixture::Fixture;

/// Returns all dead letters, and the number of pages of the list.
async fn list(
    ports: &ControlPorts,
    fixture: &Fixture<'_>,
) -> Result<(BTreeMap<Key, DeadLetterEntry>, usize)> {
    let (mut all, mut pages, mut cursor) = (BTreeMap::new(), 0, Some(0));
    while let Some(from) = cursor {
        let page = ports.control.failed(&fixture.crawl, from).await?;
        all.extend(page.failed);
        (pages, cursor) = (pages + 1, page.next);
        assert!(pages <= 10_000, "a list has an end");
    }
    assert_eq!(ports.control.count_failed(&fixture.crawl).await?, all.len() as u64);
    Ok((all, pages))
}

/// The list holds failed and expired URLs with all that is known of them, and nothing else, as long as their crawl is
/// known.
pub async fn the_list_holds_what_failed_and_what_expired(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    assert_eq!(list(ports, &fixture).await?.0, BTreeMap::new(), "an unknown crawl");
    let lease = fixture.begin(6).await?;
    let ends = [Terminal::Failed, Terminal::Failed, Terminal::Expired, Terminal::Done, Terminal::Skipped];
    let expected: BTreeMap<_, _> =
        (0..3).map(|number| (fixture.key(number), fixture.note(number, ends[number]))).collect();
    for (number, terminal) in ends.into_iter().enumerate() {
        fixture.finish(number, terminal).await?;
        fixture.finish(number, Terminal::Failed).await?;
    }
    assert_eq!(list(ports, &fixture).await?.0, expected);
    fixture.finish(5, Terminal::Done).await?;
    ports.frontier.close(lease, None).await?;
    assert_eq!(fixture.status().await?, CrawlState::Finished);
    assert_eq!(list(ports, &fixture).await?.0, expected);
    for number in 0..6 {
        let failure = ports.control.failure(&fixture.crawl, &fixture.key(number)).await?;
        assert_eq!(failure.as_ref(), expected.get(&fixture.key(number)));
    }
    assert_eq!(list(ports, &fixture.other_spider()).await?.0, BTreeMap::new());
    Ok(())
}

/// Reading the list page by page leaves nothing out, even if another crawl's failures lie between.
pub async fn the_list_is_read_page_by_page(ports: &ControlPorts) -> Result<()> {
    const COUNT: usize = 2_500;
    let fixture = Fixture::new(&ports.frontier);
    let other = fixture.other_spider();
    fixture.begin(COUNT).await?;
    other.begin(COUNT).await?;
    let ends: Vec<_> = (0..COUNT)
        .flat_map(|number| [fixture.ending(number, Terminal::Failed), other.ending(number, Terminal::Failed)])
        .collect();
    fixture.finish_all(&ends).await?;
    let (all, pages) = list(ports, &fixture).await?;
    assert_eq!(all.len(), COUNT);
    assert!(pages > 1, "a page of {COUNT}");
    assert!((0..COUNT).all(|number| all.contains_key(&fixture.key(number))));
    Ok(())
}

/// A purged dead letter is not listed, replayed or purged again, but still counts in the stats.
pub async fn what_is_purged_is_gone_and_stays_counted(ports: &ControlPorts) -> Result<()> {
    let fixture = Fixture::new(&ports.frontier);
    let lease = fixture.begin(3).await?;
    for number in 0..3 {
        fixture.finish(number, Terminal::Failed).await?;
    }
    let before = fixture.crawl_stats().await?;
    let urls = [fixture.key(0), fixture.key(1), fixture.key(9)];
    assert_eq!(ports.control.purge(&fixture.crawl, &urls).await?, 2);
    assert_eq!(ports.control.purge(&fixture.crawl, &urls).await?, 0);
    assert_eq!(list(ports, &fixture).await?.0.into_keys().collect::<Vec<_>>(), [fixture.key(2)]);
    assert_eq!(ports.control.failure(&fixture.crawl, &fixture.key(0)).await?, None);
    assert!(ports.frontier.replay(&fixture.crawl, &fixture.crawl, &urls).await?.is_empty());
    assert_eq!(fixture.admit(&lease, 0..2).await?, [false, false], "seen is seen");
    assert_eq!(fixture.crawl_stats().await?.counts, before.counts);
    Ok(())
}
