//! Admitting URLs, and claiming them.

use std::time::Duration;

use tokio::time::timeout;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{NewWork, Result, Terms};
use trawl_common::web::url::CanonicalUrl;

use super::{Carrier, Worker};
use crate::conformance::engine::{GLANCE, LIMIT};
use crate::conformance::fixture::{Case, much_later};

/// A URL that the spider has seen is not new to a later crawl, whether it has ended or not.
pub async fn a_later_crawl_of_the_spider_admits_only_what_is_new(carrier: &Carrier) -> Result<()> {
    let first = Case::new();
    let worker = carrier.join(&first);
    carrier.begin(&first, 2, Terms::default()).await?;
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    let second = first.next_crawl();
    let session = carrier.open(&second, Terms::default()).await?;
    let urls = [0, 1, 2].map(|number| second.new_work(number));
    assert_eq!(session.admit(&urls).await?, [false, false, true]);
    assert_eq!(carrier.stats(&second).await?.counts.admitted, 1);
    assert_eq!(carrier.stats(&first).await?.counts.admitted, 2);
    session.close().await
}

/// A URL that one spider has seen is new to another.
pub async fn what_one_spider_has_seen_is_new_to_another(carrier: &Carrier) -> Result<()> {
    let one = Case::new();
    let two = one.other_spider();
    let worker = carrier.join(&one);
    carrier.begin(&one, 2, Terms::default()).await?;
    carrier.begin(&two, 2, Terms::default()).await?;
    let claimed = worker.claim(4).await;
    let of_two = claimed.iter().find(|claimed| claimed.message.crawl == two.crawl).expect("it is claimed");
    assert!(worker.end(&two, of_two, Terminal::Done).await);
    assert_eq!((carrier.stats(&one).await?.pending, carrier.stats(&two).await?.pending), (2, 1));
    Ok(())
}

/// A backlog is measured in URLs and in bytes: long URLs take more than short ones.
pub async fn a_backlog_is_measured_in_urls_and_in_bytes(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    assert_eq!(carrier.stats.backlog(&case.crawl).await?.urls, 0);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&(0..10).map(|number| case.new_work(number)).collect::<Vec<_>>()).await?;
    let short = carrier.stats.backlog(&case.crawl).await?;
    assert!(short.urls == 10 && (500..10_000).contains(&short.bytes), "{short:?}");
    let long = |number| {
        let url = format!("{}?{}", case.url(number), "x".repeat(2000));
        NewWork::seed(CanonicalUrl::parse(&url).expect("it is a URL"), Lane::Bulk)
    };
    session.admit(&(0..990).map(long).collect::<Vec<_>>()).await?;
    let both = carrier.stats.backlog(&case.crawl).await?;
    assert!(both.urls == 1000 && (1_900_000..3_000_000).contains(&both.bytes), "{both:?}");
    let worker = carrier.join(&case);
    let claimed = worker.claim_one().await;
    worker.finish(claimed).await;
    assert_eq!(carrier.stats.backlog(&case.crawl).await?.urls, 999);
    session.close().await
}

/// A batch of any size is answered in order, even if an adapter splits it.
pub async fn a_batch_of_any_size_is_answered_in_order(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join_with(case.worker.clone(), |settings| settings.worker.prefetch = 2_000);
    let session = carrier.open(&case, Terms::default()).await?;
    session.admit(&(0..1200).step_by(3).map(|number| case.new_work(number)).collect::<Vec<_>>()).await?;
    let all: Vec<NewWork> = (0..1200).map(|number| case.new_work(number)).collect();
    let new = session.admit(&all).await?;
    assert!(new.iter().enumerate().all(|(number, new)| *new == (number % 3 != 0)));
    let claimed = worker.claim(1200).await;
    let urls: Vec<&Message> = claimed.iter().map(|claimed| &claimed.message).collect();
    assert!(worker.frontier.extend(&urls).await?.into_iter().all(|held| held));
    for claimed in claimed.chunks(500) {
        let done = |message: &Message| super::done(message, Vec::new());
        let batch = claimed.iter().map(|claimed| trawl_common::ports::Settlement {
            message: claimed.message.clone(),
            disposition: done(&claimed.message),
        });
        let settled = worker.frontier.settle(batch.collect()).await?;
        let expected: Vec<_> = claimed.iter().map(|claimed| claimed.message.key()).collect();
        let ended: Vec<_> = settled.ended.into_iter().map(|ended| ended.finish.claim.key).collect();
        assert_eq!(ended, expected);
    }
    assert_eq!(carrier.stats(&case).await?.counts.done, 1200);
    session.close().await
}

/// A URL is claimed with the lane, the deadline, the depth and the referrer that it was admitted with.
pub async fn a_url_is_claimed_with_everything_it_was_admitted_with(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let urls = [
        case.new_work(0),
        NewWork { lane: Lane::Priority, depth: 3, referrer: Some(case.key(7)), ..case.new_work(1) },
        NewWork { deadline: Some(much_later()), ..case.new_work(2) },
    ];
    session.admit(&urls).await?;
    let claimed = worker.claim_pages(3).await;
    for (number, url) in urls.iter().enumerate() {
        assert_eq!(claimed[&number].message, url.message(&case.crawl));
    }
    session.close().await
}

/// Cancelling a claim loses nothing, however often, before the URL comes, while it comes and after.
pub async fn cancelling_a_claim_loses_nothing(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    for number in 0..5 {
        let brief = Duration::from_millis(number as u64 % 3);
        assert!(timeout(brief, worker.frontier.claim(9)).await.is_err());
        session.admit(&[case.new_work(number)]).await?;
        let claiming = async {
            loop {
                if let Ok(claimed) = timeout(brief, worker.frontier.claim(9)).await {
                    return claimed;
                }
            }
        };
        let claimed = timeout(LIMIT, claiming).await.expect("it comes")?;
        assert_eq!(claimed.len(), 1);
        worker.finish(claimed.into_iter().next().expect("it is one")).await;
    }
    session.close().await?;
    assert_eq!(carrier.stats(&case).await?.counts.done, 5);
    Ok(())
}

/// A worker holds at most `worker.prefetch` URLs of each lane until it settles some.
pub async fn the_fetches_of_a_worker_are_bounded_until_it_settles(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join_with(case.worker.clone(), |settings| settings.worker.prefetch = 3);
    carrier.begin(&case, 5, Terms::default()).await?;
    let first = worker.claim(3).await;
    worker.claims_nothing().await;
    for claimed in first {
        worker.finish(claimed).await;
    }
    worker.work_off(2).await;
    assert_eq!(carrier.stats(&case).await?.counts.done, 5);
    Ok(())
}

/// Two workers share the work: each URL goes to one of them.
pub async fn two_workers_share_the_work(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let (one, two) = (carrier.join(&case), carrier.join_as(case.other.clone()));
    carrier.begin(&case, 20, Terms::default()).await?;
    let work = async |worker: &Worker| {
        let mut count = 0;
        while let Ok(claimed) = timeout(GLANCE, worker.frontier.claim(3)).await {
            let claimed = claimed.expect("no server fails");
            count += claimed.len();
            for claimed in claimed {
                worker.finish(claimed).await;
            }
        }
        count
    };
    let (by_one, by_two) = tokio::join!(work(&one), work(&two));
    assert_eq!(by_one + by_two, 20);
    assert!(by_one > 0 && by_two > 0, "{by_one} and {by_two}");
    assert_eq!(carrier.stats(&case).await?.counts.done, 20);
    Ok(())
}
