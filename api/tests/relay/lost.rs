//! Lost replies and lost APIs lose nothing, and count nothing twice.

use trawl_common::frontier::outcome::Terminal;
use trawl_common::names::CrawlId;
use trawl_common::ports::{Claim as Held, Completion, Disposition, Finish, Settlement};
use trawl_common::relay::{Claim, JoinFleet, Outcome, Progress, Settle};

use crate::fixture::Serving;
use crate::support;

fn done(message: &trawl_common::frontier::message::Message) -> Disposition {
    Disposition::Finish(Box::new(Completion::new(Finish::new(Held::new(message), Terminal::Done))))
}

#[tokio::test]
async fn a_call_that_is_repeated_after_its_reply_was_lost_is_carried_out_once() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 4, Default::default()).await;
    let runner = serving.runner("r1").await;
    let api = runner.link.api();
    let session =
        api.call(&JoinFleet { process: 1, prefetch: 9, tasks: 0 }, None, None).await.unwrap().session;
    let claim = async |number| {
        let claim = Claim { tasks: false, most: 2 };
        api.call(&claim, Some(&session), Some(number)).await.unwrap()
    };
    let first = claim(1).await;
    assert_eq!((first.len(), claim(1).await == first), (2, true));
    let second = claim(2).await;
    assert!(second.iter().all(|claimed| !first.contains(claimed)));
    let message = &first[0].message;
    let outcome =
        Outcome { claim: Held::new(message), progress: Progress::new(message), disposition: done(message) };
    let settle = Settle { batch: vec![outcome] };
    for _ in 0..3 {
        let recorded = api.call(&settle, Some(&session), Some(3)).await.unwrap();
        assert_eq!(recorded.ended.len(), 1, "as it was at first");
    }
    let recorded = api.call(&settle, Some(&session), Some(4)).await.unwrap();
    assert_eq!(recorded.ended.len(), 0, "it is held no more");
    let id: CrawlId = "c1".parse().unwrap();
    assert_eq!(serving.backend.stats.crawl_stats(&id).await.unwrap().unwrap().counts.done, 1);
}

#[tokio::test]
async fn what_is_in_hand_when_the_api_dies_is_handed_out_again_and_counts_once() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 3, Default::default()).await;
    let runner = serving.runner("r1").await;
    let hand = runner.join();
    let claimed = hand.claim(3).await;
    let serving = serving.restart().await;
    let batch: Vec<Settlement> = claimed
        .iter()
        .map(|claimed| Settlement { message: claimed.message.clone(), disposition: done(&claimed.message) })
        .collect();
    let settled = hand.frontier.settle(batch).await.unwrap();
    assert_eq!((settled.ended.len(), settled.not_stored.len()), (0, 0), "they are this runner's no more");
    let again = hand.claim(3).await;
    let batch = again
        .iter()
        .map(|claimed| Settlement { message: claimed.message.clone(), disposition: done(&claimed.message) })
        .collect();
    assert_eq!(hand.frontier.settle(batch).await.unwrap().ended.len(), 3);
    let id: CrawlId = "c1".parse().unwrap();
    let stats = serving.backend.stats.crawl_stats(&id).await.unwrap().unwrap();
    assert_eq!((stats.counts.done, stats.pending), (3, 0));
}

#[tokio::test]
async fn a_runner_that_leaves_gives_back_what_it_holds() {
    let serving = Serving::start().await;
    support::crawl(&serving.backend, "c1", "shop", 3, Default::default()).await;
    let (runner, other) = (serving.runner("r1").await, serving.runner("r2").await);
    let hand = runner.join();
    hand.claim(3).await;
    hand.frontier.release().await.unwrap();
    assert_eq!(other.join().claim(3).await.len(), 3);
}
