//! Tests of how messages are handled.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{ClaimReply, StartReply};
use trawl_common::names::CrawlRef;
use trawl_common::ports::{Claim, Disposition, Result};
use trawl_common::settings::{Acks, Settings};
use trawl_common::time::UnixMs;

use super::servers::{Fault, Servers};
use super::{A, B, LIMIT, Member, ends};

/// Most leases need no extension, and one may come to need it while others are being extended.
#[tokio::test(start_paused = true)]
async fn what_is_held_does_not_count_as_lost_because_leases_take_long_to_extend() {
    let servers = Servers::default();
    let member = Member::join(&servers, |_| {});
    servers.deliver(A);
    let first = member.claim().await.message;
    sleep(Duration::from_secs(1)).await;
    servers.deliver(B);
    let second = member.claim().await.message;
    // A lease is extended after five seconds.
    sleep(Duration::from_millis(4_500)).await;
    servers.fault(Fault::SlowLeases);
    assert_eq!(member.frontier.extend(&[&first, &second]).await.unwrap(), [true, true]);
}

/// A lease lasts fifteen seconds and is checked every five. A claim made just after a check is still young at
/// the next one.
#[tokio::test(start_paused = true)]
async fn a_lease_is_extended_in_its_first_half_whenever_it_began() {
    for claimed_after in [1, 2_600, 4_900].map(Duration::from_millis) {
        let servers = Servers::default();
        let _member = Member::join(&servers, |_| {});
        sleep(claimed_after).await;
        servers.deliver(A);
        timeout(LIMIT, servers.until_taken()).await.unwrap();
        let claimed_at = Instant::now();
        while !servers.calls().contains(&format!("extend {A}")) {
            sleep(Duration::from_millis(100)).await;
        }
        assert!(claimed_at.elapsed() <= Duration::from_millis(7_700), "{:?}", claimed_at.elapsed());
    }
}

/// It cannot be acknowledged twice, so releasing it publishes another message.
#[tokio::test(start_paused = true)]
async fn a_message_that_was_acknowledged_when_its_url_began_gets_a_successor_when_it_is_released() {
    let servers = Servers::default();
    servers.deliver(A);
    let early = |settings: &mut Settings| settings.queues.bulk.acks = Acks::Early;
    let member = Member::join(&servers, early);
    let claimed = member.claim().await;
    assert_eq!(member.frontier.start(&[Claim::new(&claimed.message)]).await.unwrap(), [StartReply::Go]);
    timeout(LIMIT, member.frontier.release()).await.unwrap().unwrap();
    let calls = servers.calls();
    assert_eq!(calls[..3], [format!("claim {A}"), format!("start {A}"), "ack 1".to_owned()]);
    assert_eq!(
        calls[3..],
        ["park record of", "park message of", "confirm"].map(|call| format!("{call} {A}"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_message_that_comes_twice_is_claimed_once_and_both_are_acknowledged() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    servers.deliver(A);
    timeout(LIMIT, servers.until_taken()).await.unwrap();
    let ending = ends(&claimed.message, Terminal::Done);
    member.settle(claimed.message, Disposition::Finish(Box::new(ending))).await.unwrap();
    assert_eq!(
        servers.calls(),
        [format!("claim {A}"), format!("finish {A}"), "ack 1".into(), "ack 2".into()]
    );
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_no_work_never_reach_the_worker() {
    let servers = Servers::default();
    servers.replies_to_claim(A, ClaimReply::Drop);
    servers.replies_to_claim(B, ClaimReply::Wait { until: UnixMs::now().plus(Duration::from_secs(60)) });
    servers.deliver(A);
    servers.deliver(B);
    let member = Member::join(&servers, |_| {});
    timeout(LIMIT, servers.until("ack", 2)).await.unwrap();
    assert!(timeout(Duration::from_secs(1), member.frontier.claim(1)).await.is_err());
    let calls = servers.calls();
    assert!(calls.contains(&format!("park message of {B}")), "{calls:#?}");
    assert!(!calls.iter().any(|call| call.contains("record")), "{calls:#?}");
    assert_eq!(member.frontier.activity().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_only_newer_workers_read_is_passed_on_and_then_acknowledged() {
    let servers = Servers::default();
    servers.deliver_newer("as it came");
    let member = Member::join(&servers, |_| {});
    timeout(LIMIT, servers.until("ack", 1)).await.unwrap();
    assert_eq!(servers.calls(), ["pass on as it came", "ack 1"]);
    assert_eq!(member.frontier.activity(), Default::default());
}

/// Holds even for a lane that acknowledges on arrival.
#[tokio::test(start_paused = true)]
async fn a_message_that_only_newer_workers_read_is_kept_while_the_broker_takes_none() {
    let servers = Servers::default();
    servers.fault(Fault::Away("pass on"));
    servers.deliver_newer("as it came");
    let _member = Member::join(&servers, |settings| settings.queues.bulk.acks = Acks::None);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(servers.calls(), [""; 0]);
    servers.fault(Fault::None);
    timeout(LIMIT, servers.until("ack", 1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_record_only_newer_workers_read_waits_and_the_record_is_left_alone() {
    let servers = Servers::default();
    servers.replies_to_claim(A, ClaimReply::Newer);
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    timeout(LIMIT, servers.until("ack", 1)).await.unwrap();
    assert_eq!(servers.calls(), [format!("claim {A}"), format!("park message of {A}"), "ack 1".into()]);
    assert_eq!(member.frontier.activity().in_flight, 0);
}

/// The sweep claims it.
#[tokio::test(start_paused = true)]
async fn a_url_whose_messages_are_lost_again_and_again_is_claimed_without_one() {
    let servers = Servers::default();
    let lost = Message::seed(A.parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk);
    let member = Member::join(&servers, |_| {});
    for time in 1..=3 {
        servers.lose(lost.clone());
        timeout(LIMIT, servers.until("confirm", time)).await.unwrap();
    }
    servers.lose(lost.clone());
    let claimed = member.claim().await;
    assert_eq!((claimed.message.key(), claimed.attempts), (lost.key(), 0));
    let calls = servers.calls();
    assert_eq!(calls.iter().filter(|call| call.starts_with("publish")).count(), 3);
    let settled = member
        .settle(claimed.message.clone(), Disposition::Finish(Box::new(ends(&lost, Terminal::Done))))
        .await
        .unwrap();
    assert_eq!(settled.ended.len(), 1);
    timeout(LIMIT, servers.until("finish", 1)).await.unwrap();
    assert!(!servers.calls().iter().any(|call| call.starts_with("ack")), "there is no message");
}

#[tokio::test(start_paused = true)]
async fn lost_messages_are_published_and_confirmed() -> Result<()> {
    let servers = Servers::default();
    let lost = Message::seed(A.parse().unwrap(), CrawlRef::adhoc(), Lane::Bulk);
    servers.lose(lost);
    let _member = Member::join(&servers, |_| {});
    timeout(LIMIT, servers.until("confirm", 1)).await.unwrap();
    assert_eq!(servers.calls(), [format!("publish {A}"), format!("confirm {A}")]);
    Ok(())
}
