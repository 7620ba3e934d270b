//! A state file that refuses changes, as it does where its disk is full.

use std::sync::Arc;
use std::time::Duration;

use super::support::*;
use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::sample::subsequence;
use tokio::task::JoinSet;
use trawl_backends::embedded::Embedded;
use trawl_common::frontier::StartReply;
use trawl_common::frontier::crawl::CrawlState;
use trawl_common::health::Health;
use trawl_common::ports::{Claim, Joined, Opening, Terms};
use trawl_testkit::conformance::carrying::random::{obeys_the_model, steps};

#[tokio::test]
async fn discovery_of_a_session_that_is_gone_ends_although_the_file_refuses_that_at_first() {
    let (directory, engine) = state_file();
    let health = Arc::new(Health::default());
    let Joined { frontier: _frontier, maintenance } =
        join_with(&engine, Arc::clone(&health), Duration::from_millis(12));
    let opening = Opening {
        judging: None,
        crawl: crawl(),
        terms: Terms::default(),
        text: None,
        is_new: true,
        lease: Duration::ZERO,
        reads: None,
    };
    drop(engine.engine().open(opening, Arc::default()).await.unwrap());
    let refusal =
        Refusal::new(&["UPDATE OF discovered ON crawls"], false, &directory.path().join("crawl.db"));
    let _maintenance = JoinSet::from_iter([maintenance]);
    eventually(async || health.trouble().is_some()).await;
    drop(refusal);
    let status = async || engine.stats().crawl_stats(&crawl().id).await.unwrap().unwrap().status;
    eventually(async || status().await == CrawlState::Finished).await;
}

#[tokio::test]
async fn a_url_whose_end_the_file_refuses_stays_in_hand_and_ends_when_it_can() {
    for undoes_at_once in [false, true] {
        let (directory, engine) = state_file();
        let _session = admit(&engine, 0..1).await;
        let health = Arc::new(Health::default());
        let Joined { frontier, .. } = join_with(&engine, Arc::clone(&health), LONG);
        let claimed = frontier.claim(1).await.unwrap().remove(0);
        assert_eq!(frontier.start(&[Claim::new(&claimed.message)]).await.unwrap(), [StartReply::Go]);
        let refusal =
            Refusal::new(&["DELETE ON records"], undoes_at_once, &directory.path().join("crawl.db"));
        let settling = frontier.settle(vec![done(&claimed)]);
        let meanwhile = async {
            eventually(async || health.trouble().is_some()).await;
            assert_eq!(frontier.activity().in_flight, 1);
            assert_eq!(available(&engine, 0).await, [] as [usize; 0], "nobody else gets it");
            drop(refusal);
        };
        let (settled, ()) = tokio::join!(settling, meanwhile);
        assert_eq!((settled.unwrap().ended.len(), frontier.activity().in_flight), (1, 0));
    }
}

/// Changes that a state file may refuse.
const CHANGES: [&str; 10] = [
    "UPDATE OF discovered ON crawls",
    "UPDATE OF status ON crawls",
    "UPDATE OF done ON crawls",
    "INSERT ON records",
    "UPDATE ON records",
    "DELETE ON records",
    "INSERT ON fresh",
    "INSERT ON gone",
    "INSERT ON failed",
    "INSERT ON crawl_hosts",
];

proptest! {
    // A refusal costs a pause.
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_change_that_the_file_refuses_has_changed_nothing(
        steps in steps(),
        refusals in btree_map(0..60_usize, (subsequence(&CHANGES[..], 1..6), any::<bool>()), 4..16),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("crawl.db");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let connect = async || Embedded::open(&path).map(|engine| carrier_of(&engine));
        let fault = |number| {
            let (changes, undoes_at_once) = refusals.get(&number)?;
            Some(Refusal::new(changes, *undoes_at_once, &path))
        };
        runtime.block_on(obeys_the_model(connect, fault, &steps)).unwrap();
    }
}
