//! Tests of the order in which a settlement is written.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use trawl_common::frontier::outcome::Terminal;
use trawl_common::ports::{Disposition, Settled};

use super::servers::{Fault, Servers};
use super::{A, B, LIMIT, Member, ends, fails, links, waits};

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_stored_before_its_record_ends_and_its_message_is_acknowledged_last() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    let disposition = fails(&claimed.message);
    member.settle(claimed.message, disposition).await.unwrap();
    let expected = [
        format!("claim {A}"),
        format!("extend {A}"),
        format!("dead letter {A}"),
        format!("finish {A}"),
        "ack 1".into(),
    ];
    assert_eq!(servers.calls(), expected);
}

#[tokio::test(start_paused = true)]
async fn links_are_published_before_their_page_ends() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    let disposition = links(&claimed.message);
    let settled = member.settle(claimed.message, disposition).await.unwrap();
    assert_eq!(settled.ended[0].links.len(), 1);
    let expected = [
        format!("claim {A}"),
        format!("admit links of {A}"),
        format!("publish {B}"),
        format!("confirm {B}"),
        format!("finish {A}"),
        "ack 1".into(),
    ];
    assert_eq!(servers.calls(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_has_its_record_written_first_then_its_message_and_its_acknowledgement_last() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    let disposition = waits(&claimed.message);
    member.settle(claimed.message, disposition).await.unwrap();
    let calls = ["claim", "park record of", "park message of", "confirm"].map(|call| format!("{call} {A}"));
    assert_eq!(servers.calls(), [&calls[..], &["ack 1".to_owned()]].concat());
    assert_eq!(member.frontier.activity().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_held_is_sent_again_and_ends_nothing() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    let claimed = member.claim().await;
    servers.fault(Fault::NotHeld);
    let ending = ends(&claimed.message, Terminal::Done);
    let settled = member.settle(claimed.message, Disposition::Finish(Box::new(ending))).await.unwrap();
    assert_eq!(settled, Settled::default());
    assert_eq!(
        servers.calls(),
        [format!("claim {A}"), format!("finish {A}"), format!("publish {A}"), "ack 1".into()]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_released_is_free_before_its_message_is() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    member.claim().await;
    timeout(LIMIT, member.frontier.release()).await.unwrap().unwrap();
    assert_eq!(servers.calls(), [format!("claim {A}"), format!("release record of {A}"), "release 1".into()]);
    assert_eq!(member.frontier.activity(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_claimed_once_a_worker_releases_what_it_has() {
    let servers = Servers::default();
    servers.deliver(A);
    let member = Member::join(&servers, |_| {});
    member.claim().await;
    timeout(LIMIT, member.frontier.release()).await.unwrap().unwrap();
    servers.deliver(B);
    sleep(Duration::from_secs(1)).await;
    assert!(!servers.calls().contains(&format!("claim {B}")), "{:#?}", servers.calls());
}
