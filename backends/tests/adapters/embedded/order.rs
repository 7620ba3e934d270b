//! The order in which URLs are handed out, and the removal of records.

use super::support::*;
use trawl_common::frontier::lane::Lane;
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claimed, Disposition, NewWork, Settlement};
use trawl_common::time::UnixMs;

#[tokio::test]
async fn parked_urls_come_first_then_priority_then_bulk_each_in_order() {
    let (_directory, engine) = state_file();
    let session = admit(&engine, 0..4).await;
    let urgent: Vec<_> = (4..6).map(|number| NewWork { lane: Lane::Priority, ..page(number) }).collect();
    session.admit(&urgent).await.unwrap();
    let worker = join(&engine);
    for claimed in claim_all(&*worker, 6).await {
        match number(&claimed) {
            1 => put_aside(&*worker, &claimed, 5_000).await,
            3 => put_aside(&*worker, &claimed, 9_000).await,
            _ => {}
        }
    }
    worker.release().await.unwrap();
    assert_eq!(available(&engine, 6).await, [3, 1, 4, 5, 0, 2]);
}

#[tokio::test]
async fn what_a_worker_had_is_available_when_it_is_gone() {
    let (_directory, engine) = state_file();
    let _session = admit(&engine, 0..3).await;
    assert_eq!(available(&engine, 3).await, [0, 1, 2]);
    assert_eq!(available(&engine, 3).await, [0, 1, 2]);
}

#[tokio::test]
async fn what_is_given_back_before_its_lane_was_walked_comes_once() {
    let (_directory, engine) = state_file();
    let _session = admit(&engine, 0..3).await;
    let worker = join(&engine);
    let Claimed { message, .. } = worker.claim(1).await.unwrap().remove(0);
    worker.settle(vec![Settlement { message, disposition: Disposition::Release }]).await.unwrap();
    assert_eq!(available(&engine, 3).await, [0, 1, 2]);
}

#[tokio::test]
async fn a_paused_crawl_is_handed_out_after_it_and_others_meanwhile() {
    let (_directory, engine) = state_file();
    let session = admit(&engine, 0..4).await;
    let worker = join(&engine);
    let claimed = claim_all(&*worker, 4).await;
    put_aside(&*worker, &claimed[1], 5).await;
    worker.release().await.unwrap();
    engine.control().pause(&crawl()).await.unwrap();
    let other = CrawlRef { id: "c2".parse().unwrap(), spider: "s2".parse().unwrap() };
    let of_other = open_crawl(&engine, other).await;
    of_other.admit(&[page(7)]).await.unwrap();
    session.admit(&[page(4)]).await.unwrap();
    assert_eq!(available(&engine, 1).await, [7]);
    engine.control().resume(&crawl()).await.unwrap();
    assert_eq!(available(&engine, 6).await, [1, 0, 2, 3, 7, 4]);
}

#[tokio::test]
async fn what_is_forgotten_is_forgotten_beyond_memory_and_the_rest_is_not() {
    let (_directory, engine) = state_file();
    const COUNT: usize = 70_000;
    let _session = admit(&engine, 0..COUNT).await;
    let worker = join(&engine);
    for _ in 0..COUNT / 1000 {
        let claimed = worker.claim(1000).await.unwrap();
        assert_eq!(claimed.len(), 1000);
        let (even, odd): (Vec<_>, Vec<_>) =
            claimed.into_iter().partition(|claimed| number(claimed).is_multiple_of(2));
        let later = |Claimed { message, .. }| {
            let disposition = Disposition::Snooze { until: UnixMs::now().plus(LONG) };
            Settlement { message, disposition }
        };
        worker.settle(even.iter().map(done).chain(odd.into_iter().map(later)).collect()).await.unwrap();
    }
    engine.control().cancel(&crawl()).await.unwrap();
    let next = CrawlRef { id: "c2".parse().unwrap(), ..crawl() };
    let session = open_crawl(&engine, next).await;
    let pages: Vec<NewWork> = (0..COUNT).map(page).collect();
    let new = session.admit(&pages).await.unwrap();
    assert!(new.iter().enumerate().all(|(number, new)| *new == (number % 2 == 1)));
}
