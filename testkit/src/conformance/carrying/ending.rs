//! The ends of URLs and crawls, and what operators see of them.

use std::time::Duration;

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::limit::{LeftOut, Limit};
use trawl_common::frontier::outcome::{Skip, Terminal};
use trawl_common::ports::{Finish, Result, Settlement, Terms};
use trawl_common::spider::ItemCounts;
use trawl_common::time::UnixMs;

use super::{Carrier, ends, number};
use crate::conformance::fixture::Case;
use crate::conformance::{eventually, unique};

const LIMIT: Duration = Duration::from_secs(10);

/// The first call ends a URL; later ones do not count, in the same batch or not, with whatever state.
pub async fn a_url_ends_once(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 2, Terms::default()).await?;
    let claimed = worker.claim_pages(2).await.remove(&0).expect("it is claimed");
    let settlement =
        || Settlement { message: claimed.message.clone(), disposition: ends(case.ending(0, Terminal::Done)) };
    let settled = worker.frontier.settle(vec![settlement(), settlement()]).await?;
    assert_eq!(settled.ended.len(), 2, "repeated, it is as before");
    for terminal in [Terminal::Done, Terminal::Failed] {
        assert!(worker.end(&case, &claimed, terminal).await);
    }
    let stats = carrier.stats(&case).await?;
    assert_eq!(stats.counts, Counts { admitted: 2, done: 1, ..Counts::default() });
    assert_eq!(stats.pending, 1);
    Ok(())
}

/// Every terminal state has its own counter.
pub async fn every_terminal_state_has_its_counter(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let count = Terminal::ALL.len();
    carrier.begin(&case, count, Terms::default()).await?;
    let claimed = worker.claim_pages(count).await;
    let mut expected = Counts { admitted: count as u64, ..Counts::default() };
    for (number, terminal) in Terminal::ALL.into_iter().enumerate() {
        assert!(worker.end(&case, &claimed[&number], terminal).await);
        *expected.of(terminal) += 1;
        assert_eq!(carrier.stats(&case).await?.counts, expected);
    }
    Ok(())
}

/// A URL that was never admitted does not end or count, in this crawl or in another of the spider.
pub async fn what_was_never_admitted_does_not_end(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 1, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    let next = case.next_crawl();
    carrier.begin(&next, 0, Terms::default()).await?;
    let mut elsewhere = claimed.clone();
    elsewhere.message.crawl = next.crawl.clone();
    worker.end(&next, &elsewhere, Terminal::Done).await;
    assert_eq!(carrier.stats(&next).await?.counts, Counts::default());
    let mut never = claimed;
    never.message.work = case.url(1).into();
    assert!(!worker.end(&case, &never, Terminal::Done).await);
    assert_eq!(carrier.stats(&case).await?.counts, Counts { admitted: 1, ..Counts::default() });
    Ok(())
}

/// URLs of several crawls end in one call, and each crawl gets its own count and its own end.
pub async fn urls_of_several_crawls_end_in_one_call(carrier: &Carrier) -> Result<()> {
    let one = Case::new();
    let two = one.other_spider();
    let worker = carrier.join(&one);
    carrier.begin(&one, 1, Terms::default()).await?;
    carrier.begin(&two, 2, Terms::default()).await?;
    let mut batch = Vec::new();
    for claimed in worker.claim(3).await {
        let (of, terminal) = match claimed.message.crawl == one.crawl {
            true => (&one, Terminal::Failed),
            false if number(&claimed) == 0 => (&two, Terminal::Done),
            false => continue,
        };
        batch.push(Settlement { message: claimed.message, disposition: ends(of.ending(0, terminal)) });
    }
    assert_eq!(worker.frontier.settle(batch).await?.ended.len(), 2);
    let (of_one, of_two) = (carrier.stats(&one).await?, carrier.stats(&two).await?);
    assert_eq!((of_one.status, of_one.counts.failed), (CrawlState::Finished, 1));
    assert_eq!((of_two.status, of_two.counts.done), (CrawlState::Running, 1));
    Ok(())
}

/// Once discovery has ended, a crawl ends with its last URL, not with an earlier one.
pub async fn a_crawl_ends_with_its_last_url_once_discovery_has_ended(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&[case.new_work(0)]).await?;
    worker.work_off(1).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running, "more may be admitted");
    session.admit(&[case.new_work(1), case.new_work(2)]).await?;
    session.close().await?;
    let claimed = worker.claim_pages(2).await;
    assert!(worker.end(&case, &claimed[&1], Terminal::Skipped).await);
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running, "one is left");
    assert!(worker.end(&case, &claimed[&2], Terminal::Failed).await);
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// A crawl without URLs ends with discovery: sources may name none.
pub async fn an_empty_crawl_ends_with_discovery(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Running);
    session.close().await?;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, Counts::default()));
    Ok(())
}

/// The `seconds` of a crawl grow until its end.
pub async fn the_clock_of_a_crawl_stops_at_its_end(carrier: &Carrier) -> Result<()> {
    let (running, finished) = (Case::new(), Case::new());
    let _session = carrier.open(&running, Terms::default()).await?;
    carrier.begin(&finished, 0, Terms::default()).await?;
    let (first, end) = (carrier.stats(&running).await?.seconds, carrier.stats(&finished).await?.seconds);
    eventually(LIMIT, async || Ok(carrier.stats(&running).await?.seconds > first)).await?;
    assert!(carrier.stats(&finished).await?.seconds <= end, "it took {end} s, once and for all");
    Ok(())
}

/// Crawls are listed newest first, running or over, each with its own stats. An unknown crawl has no stats.
pub async fn crawls_are_listed_the_newest_first(carrier: &Carrier) -> Result<()> {
    let (older, newer) = (Case::new(), Case::new());
    carrier.begin(&older, 2, Terms::default()).await?;
    let started = carrier.stats(&older).await?.started;
    eventually(LIMIT, async || Ok(UnixMs::now() > started.plus(Duration::from_millis(5)))).await?;
    carrier.begin(&newer, 0, Terms::default()).await?;
    let all = carrier.stats.crawls().await?;
    let place = |case: &Case| all.iter().position(|books| books.crawl == case.crawl.id);
    let (at_newer, at_older) = (place(&newer).expect("listed"), place(&older).expect("listed"));
    assert!(at_newer < at_older);
    assert_eq!(all[at_newer].status, CrawlState::Finished);
    assert_eq!((all[at_older].status, all[at_older].pending), (CrawlState::Running, 2));
    let unknown = unique("crawl").parse().expect("a unique name is a name");
    assert_eq!(carrier.stats.crawl_stats(&unknown).await?, None);
    Ok(())
}

/// The stats count exactly by reason, host and amount, however many fields a page lacks.
pub async fn the_stats_count_by_reason_host_and_amount(carrier: &Carrier) -> Result<()> {
    const FIELDS: usize = 5000;
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 5, Terms::default()).await?;
    let claimed = worker.claim_pages(5).await;
    let missing: Vec<String> = (0..FIELDS).map(|number| format!("field{number}")).collect();
    let done = |number| Finish {
        bytes: 1000,
        missing: missing.clone(),
        ..Finish::new(case.claim_on(number), Terminal::Done)
    };
    let robots = Some(Skip::Robots.as_str());
    let skipped = Finish { why: robots, ..Finish::new(case.claim_on(2), Terminal::Skipped) };
    for (number, finish) in
        [(0, done(0)), (1, done(1)), (1, done(1)), (2, skipped), (3, case.ending(3, Terminal::Failed))]
    {
        worker.settle_unstarted(&claimed[&number], ends(finish)).await;
    }
    let stats = carrier.stats(&case).await?;
    let reason = |name: &str| stats.reasons.get(name).copied();
    assert_eq!(
        (stats.bytes, reason("missing:field0"), reason("missing:field4999")),
        (2000, Some(2), Some(2))
    );
    assert_eq!((reason("skipped:robots"), reason("failed:http")), (Some(1), Some(1)));
    assert_eq!(stats.reasons.len(), FIELDS + 2);
    let hosts = carrier.stats.hosts(&case.crawl, 10).await?;
    assert_eq!(hosts.len(), 1);
    assert_eq!((hosts[0].counts, hosts[0].bytes, hosts[0].pending()), (stats.counts, 2000, 1));
    assert_eq!(hosts[0].host, trawl_common::web::url::authority(case.url(0).as_str()));
    assert!(carrier.stats.hosts(&case.crawl, 0).await?.is_empty());
    Ok(())
}

/// A program may name its items as it likes. Beyond a number of names, the stats count them together, and none is lost.
pub async fn the_stats_count_any_number_of_kinds_of_items(carrier: &Carrier) -> Result<()> {
    const PAGES: usize = 4;
    const KINDS: usize = 6_000;
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, PAGES + 1, Terms::default()).await?;
    let claimed = worker.claim_pages(PAGES + 1).await;
    let of_kinds = |first: usize| ItemCounts {
        by_kind: (first..first + KINDS).map(|number| (format!("kind{number}"), 1)).collect(),
        ..ItemCounts::default()
    };
    for number in 0..PAGES {
        let items = of_kinds(number * KINDS);
        let finish = Finish { items, ..Finish::new(case.claim_on(number), Terminal::Done) };
        worker.settle_unstarted(&claimed[&number], ends(finish)).await;
    }
    // Those that have a name keep it.
    let known = Finish { items: of_kinds(0), ..Finish::new(case.claim_on(PAGES), Terminal::Done) };
    worker.settle_unstarted(&claimed[&PAGES], ends(known)).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!(stats.items, ((PAGES + 1) * KINDS) as u64);
    assert_eq!((stats.item_kinds["kind0"], stats.item_kinds["kind5999"]), (2, 2));
    let rest = stats.item_kinds["*"];
    let named = stats.item_kinds.len() - 1;
    assert!((9_900..=10_000).contains(&named), "{named}");
    assert_eq!(rest, (PAGES * KINDS - named) as u64);
    Ok(())
}

/// The stats count URLs left out under each limit, once, however often the end of a page is repeated.
pub async fn the_stats_count_what_limits_left_out(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin(&case, 3, Terms::default()).await?;
    let claimed = worker.claim_pages(3).await;
    let done = |number, depth| {
        let mut left_out = LeftOut::default();
        left_out.add(Limit::Depth, depth);
        left_out.add(Limit::MaxPerHost, 1);
        Finish { left_out, ..Finish::new(case.claim_on(number), Terminal::Done) }
    };
    for (number, depth) in [(0, 12), (1, 30), (1, 30)] {
        worker.settle_unstarted(&claimed[&number], ends(done(number, depth))).await;
    }
    let stats = carrier.stats(&case).await?;
    let by = |limit: Limit| stats.reasons.get(&format!("left_out:{}", limit.as_str())).copied();
    assert_eq!((by(Limit::Depth), by(Limit::MaxPerHost), by(Limit::PageLinks)), (Some(42), Some(2), None));
    assert_eq!((stats.left_out, stats.reasons.len()), (44, 2));
    Ok(())
}
