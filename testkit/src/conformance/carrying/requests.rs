//! Requests are admitted, claimed, settled and replayed like URLs, each with all its fields.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::time::Duration;

use trawl_common::frontier::crawl::{Counts, CrawlState};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Hop;
use trawl_common::frontier::{Key, Request, State, UrlState, Work};
use trawl_common::ports::{Disposition, NewWork, Result, Seen, Terms};
use trawl_common::request::NewRequest;
use trawl_common::time::UnixMs;

use super::{Carrier, dead_work, done};
use crate::conformance::fixture::Case;

/// Returns a POST of page `number` with this body.
fn post(case: &Case, number: usize, body: &str) -> Request {
    let json = r#"{"url": "", "method": "POST", "headers": {"x-key": "k"}, "cookies": {"a": "b"}, "data": {"n": [1]}, "any_status": true, "failures": "each"}"#;
    let new = NewRequest::from_json(json).expect("it is a request");
    Request::new(case.url(number), NewRequest { body: body.to_owned().into(), ..new }).expect("it has a key")
}

fn new(case: &Case, number: usize, body: &str) -> NewWork {
    NewWork::new(post(case, number, body).into(), Lane::Bulk)
}

fn key(case: &Case, number: usize, body: &str) -> Key {
    post(case, number, body).key.into()
}

impl Carrier {
    /// Starts a crawl of requests for its first page with these bodies.
    async fn begin_requests(&self, case: &Case, bodies: &[&str]) -> Result<()> {
        let session = self.open(case, Terms::default()).await?;
        let requests: Vec<NewWork> = bodies.iter().map(|body| new(case, 0, body)).collect();
        assert_eq!(session.admit(&requests).await?, vec![true; bodies.len()]);
        session.close().await
    }
}

/// A request is admitted once and claimed complete, independently of its URL, which is another record, and of requests
/// with another body.
pub async fn a_request_is_admitted_once_and_claimed_with_all_that_it_says(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let session = carrier.open(&case, Terms::default()).await?;
    let long = "\u{e4}\n".repeat(250_000);
    let urgent = NewWork { lane: Lane::Priority, ..new(&case, 0, &long) };
    let all = [case.new_work(0), new(&case, 0, "a"), urgent, new(&case, 0, "a"), new(&case, 1, "a")];
    assert_eq!(session.admit(&all).await?, [true, true, true, false, true]);
    assert_eq!(session.admit(&all).await?, [false; 5]);
    session.close().await?;
    let claimed = worker.claim(4).await;
    let works = |works: Vec<Work>| -> BTreeSet<String> {
        works.iter().map(|work| format!("{work} {:?}", work.payload())).collect()
    };
    let found = works(claimed.iter().map(|claimed| claimed.message.work.clone()).collect());
    assert_eq!(found, works([0, 1, 2, 4].map(|at: usize| all[at].work.clone()).into()));
    let state = carrier.stats.url_state(&case.crawl, &key(&case, 0, "a")).await?;
    assert!(
        matches!(&state, UrlState::Pending(record) if matches!(record.state, State::Held { .. })),
        "{state:?}"
    );
    for claimed in claimed {
        worker.finish(claimed).await;
    }
    let stats = carrier.stats(&case).await?;
    let expected = Counts { admitted: 4, done: 4, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Finished, expected));
    let hosts = carrier.stats.hosts(&case.crawl, 10).await?;
    assert_eq!(hosts.iter().map(|host| host.counts.done).sum::<u64>(), 4, "each has a host");
    let ended = key(&case, 0, "a");
    assert_eq!(carrier.control.work(&case.crawl, &ended).await?, None, "what has ended needs no body");
    let (spider, both) = (&case.crawl.spider, [ended, case.key(0)]);
    let forgotten = carrier.control.forget_seen(spider, &both[..1]).await?;
    assert_eq!(forgotten, [Seen::Ended]);
    let stands = carrier.stats.seen_urls(spider, &both).await?;
    assert_eq!(stands, [Seen::Never, Seen::Ended], "its URL is another record");
    Ok(())
}

/// An urgent request is claimed before others, as one that a route puts into the lane `priority`.
pub async fn an_urgent_request_is_claimed_before_what_is_not(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let session = carrier.open(&case, Terms::default()).await?;
    let of = |priority: f64| {
        let priority = priority.try_into().expect("it is finite");
        let new = NewRequest { priority, ..post(&case, 0, &priority.to_string()).new };
        NewWork::new(Request::new(case.url(0), new).expect("it has a key").into(), Lane::Bulk)
    };
    session.admit(&[case.new_work(0), of(-1.0), of(0.0)]).await?;
    session.admit(&[of(2.0)]).await?;
    session.close().await?;
    let worker = carrier.join(&case);
    // By then all of them have arrived.
    while carrier.claims_ahead && worker.frontier.activity().in_flight < 4 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let claimed = worker.claim_one().await;
    assert_eq!((&claimed.message.work, claimed.message.lane), (&of(2.0).work, Lane::Priority));
    Ok(())
}

/// A failed request that was parked comes back complete, in its spelling and with one attempt more, but not at the
/// target of its redirect. One that waits for its host's slot comes back with that.
pub async fn a_request_that_is_put_aside_comes_back_with_all_that_it_says(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    carrier.begin_requests(&case, &["again"]).await?;
    let spelling = Some(Hop { url: case.url(6), count: 0, as_get: false });
    let redirected = Some(Hop { url: case.url(6), count: 1, as_get: false });
    for (attempts, hop, kept) in [(1, &spelling, &spelling), (2, &redirected, &None)] {
        let mut claimed = worker.claim_one().await;
        claimed.message.hop = hop.clone();
        let until = UnixMs::now().plus(Duration::from_millis(50));
        worker.settle(claimed, Disposition::Retry { until }).await;
        let again = worker.claim_one().await;
        assert_eq!((again.attempts, &again.message.hop), (attempts, kept));
        assert_eq!(again.message.work, new(&case, 0, "again").work);
        let until = UnixMs::now().plus(Duration::from_millis(50));
        worker.settle(again, Disposition::Snooze { until }).await;
    }
    let mut again = worker.claim_one().await;
    let hop = Some(Hop { url: case.url(7), count: 2, as_get: true });
    again.message.hop = hop.clone();
    let until = UnixMs::now().plus(Duration::from_millis(50));
    worker.settle(again, Disposition::Snooze { until }).await;
    let again = worker.claim_one().await;
    assert_eq!((&again.message.hop, &again.message.work), (&hop, &new(&case, 0, "again").work));
    worker.finish(again).await;
    assert_eq!(carrier.stats(&case).await?.status, CrawlState::Finished);
    Ok(())
}

/// A request that is a dead letter keeps its body, and is replayed as often as it fails, until it is purged.
pub async fn a_request_that_is_a_dead_letter_keeps_its_body_and_is_replayed(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let both = [new(&case, 0, "dead"), new(&case, 0, "deader")];
    dead_work::is_kept_replayed_and_purged(carrier, &case, both).await
}

/// A dead request of a finished crawl is admitted complete by a successor; the finished crawl does not change.
pub async fn a_dead_request_of_a_finished_crawl_is_replayed_into_another(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    dead_work::is_replayed_into_a_successor(carrier, &case, new(&case, 0, "late")).await
}

/// Requests that a page asks for are admitted before the page ends, so that their crawl does not end in between, and
/// count towards the limit of their host.
pub async fn requests_that_a_page_asks_for_are_admitted_before_it_ends(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    let worker = carrier.join(&case);
    let terms = Terms { max_per_host: NonZeroU64::new(3), ..Terms::default() };
    let session = carrier.open(&case, terms).await?;
    session.admit(&[new(&case, 0, "parent")]).await?;
    session.close().await?;
    let parent = worker.claim_one().await;
    let referrer = Some(parent.message.key());
    let child = |new: NewWork| NewWork { depth: 1, referrer: referrer.clone(), ..new };
    let children = ["child", "parent", "child", "other", "too many"].map(|body| child(new(&case, 0, body)));
    let ends = done(&parent.message, children.into());
    worker.settle(parent, ends).await;
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.admitted), (CrawlState::Running, 3));
    for claimed in worker.claim(2).await {
        assert_eq!((claimed.message.depth, &claimed.message.referrer), (1, &referrer));
        worker.finish(claimed).await;
    }
    let stats = carrier.stats(&case).await?;
    assert_eq!((stats.status, stats.counts.done), (CrawlState::Finished, 3));
    Ok(())
}

/// The unfinished requests of a cancelled crawl are cancelled, and their contents are forgotten.
pub async fn a_cancelled_crawl_leaves_no_request(carrier: &Carrier) -> Result<()> {
    let case = Case::new();
    carrier.begin_requests(&case, &["one", "two"]).await?;
    carrier.control.cancel(&case.crawl).await?;
    let stats = carrier.stats(&case).await?;
    let expected = Counts { admitted: 2, cancelled: 2, ..Counts::default() };
    assert_eq!((stats.status, stats.counts), (CrawlState::Cancelled, expected));
    assert_eq!(carrier.control.work(&case.crawl, &key(&case, 0, "one")).await?, None);
    // Unfinished requests are new to a later crawl.
    let next = case.next_crawl();
    carrier.begin_requests(&next, &["one"]).await?;
    let worker = carrier.join(&case);
    let claimed = worker.claim_one().await;
    assert_eq!(claimed.message.crawl, next.crawl);
    worker.finish(claimed).await;
    Ok(())
}
