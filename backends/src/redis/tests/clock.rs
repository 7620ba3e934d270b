//! Redis' clock is set back: stamps from a future that has not come are not believed.

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::politeness::gcra::{BackoffTerms, Pace, SlotRequest, Standing};
use trawl_common::ports::{BackoffRequest, Control, Finish, Stats};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_engine::Parking;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

/// One request in ten seconds.
fn one(deadline: Option<UnixMs>) -> HostSlotRequest {
    let pace = Pace { interval: Duration::from_secs(10), ..Pace::UNLIMITED };
    let request =
        SlotRequest { pace, held: None, standing: Standing::New, deadline, token: 0, lapse: LOST_AFTER };
    HostSlotRequest { key: HostKey::from_text("site.example"), request }
}

fn wait(slot: Slot) -> Duration {
    match slot {
        Slot::Reserved { wait, .. } => wait,
        other => panic!("not reserved: {other:?}"),
    }
}

#[tokio::test]
async fn a_machine_far_from_redis_clock_is_refused_and_goes_by_it_if_it_may() {
    let fixture = Fixture::new().await;
    let refused = fixture.frontier.check_clock().await.unwrap_err();
    assert!(refused.to_string().contains("1day behind Redis'"), "{refused}");
    let fleet = fixture.frontier.now().await.unwrap();
    assert!(UnixMs::now().0.abs_diff(fleet.0) < 60_000);
    fixture.set_clock(Duration::ZERO).await;
    fixture.frontier.check_clock().await.unwrap();
}

#[tokio::test]
async fn what_is_queued_is_not_lost_because_probes_came_back_in_a_future_that_is_no_more() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.probe().await;
    fixture.set_clock(DAY - HOUR).await;
    fixture.send(&lease, 0..5).await;
    fixture.set_clock(DAY - HOUR + 3 * LOST_AFTER).await;
    assert_eq!(fixture.round().await.lost, []);
    fixture.probe().await;
    assert_eq!(fixture.round().await.lost.len(), 5);
}

#[tokio::test]
async fn what_was_queued_in_the_future_is_found_when_it_is_lost() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..5).await;
    fixture.set_clock(DAY - HOUR).await;
    assert_eq!(fixture.round().await.lost, []);
    fixture.set_clock(DAY - HOUR + 3 * LOST_AFTER).await;
    fixture.probe().await;
    let lost = fixture.round().await.lost;
    assert_eq!(lost.len(), 5);
    let now = fixture.frontier.now().await.unwrap();
    assert!(
        lost.iter().all(|message| message.since <= Some(now)),
        "it waits since no later than now: {lost:?}"
    );
}

#[tokio::test]
async fn what_was_never_confirmed_in_the_future_is_sent_again() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.frontier.admit(&lease, &[NewWork::seed(Fixture::url(0), Lane::Bulk)]).await.unwrap();
    fixture.set_clock(DAY - HOUR).await;
    assert_eq!(fixture.round().await.lost, []);
    fixture.set_clock(DAY - HOUR + 2 * LOST_AFTER).await;
    assert_eq!(fixture.round().await.lost.len(), 1);
}

#[tokio::test]
async fn probes_go_on() {
    let fixture = Fixture::new().await;
    assert!(fixture.round().await.probe.is_some());
    fixture.set_clock(DAY - HOUR).await;
    let probe = fixture.round().await.probe.unwrap();
    assert_eq!(probe.previous.0, 0);
}

#[tokio::test]
async fn a_barrier_is_not_lifted_by_probes_of_the_future() {
    let fixture = Fixture::new().await;
    fixture.probe().await;
    fixture.set_clock(DAY - HOUR).await;
    // Known from its message alone: the crawl was forgotten.
    fixture.claim(&fixture.worker, 0).await;
    assert_eq!(fixture.round().await.awaiting, []);
    fixture.set_clock(DAY - HOUR + 2 * LOST_AFTER).await;
    assert_eq!(fixture.round().await.awaiting, []);
    fixture.probe().await;
    assert_eq!(fixture.round().await.awaiting, std::slice::from_ref(&fixture.crawl));
}

#[tokio::test]
async fn a_barrier_of_the_future_is_lifted_as_if_it_were_set_now() {
    let fixture = Fixture::new().await;
    // The first claim requeues it.
    assert_eq!(fixture.claim(&fixture.worker, 0).await, ClaimReply::SendAgain);
    assert_eq!(fixture.claim(&fixture.worker, 0).await, TAKE);
    let finish = Finish::new(fixture.claim_on(0), Terminal::Done);
    assert_eq!(fixture.frontier.finish(&fixture.worker, &[finish]).await.unwrap(), [true]);
    fixture.set_clock(HOUR).await;
    assert_eq!(fixture.round().await.awaiting, []);
    fixture.set_clock(HOUR + 2 * LOST_AFTER).await;
    fixture.probe().await;
    assert_eq!(fixture.round().await.awaiting, std::slice::from_ref(&fixture.crawl));
    fixture.frontier.await_parked(&fixture.crawl, Duration::ZERO).await.unwrap();
    fixture.set_clock(HOUR + 5 * LOST_AFTER).await;
    fixture.probe().await;
    fixture.round().await;
    let stats = fixture.frontier.crawl_stats(&fixture.crawl.id).await.unwrap().unwrap();
    assert_eq!(stats.status, CrawlState::Finished);
}

#[tokio::test]
async fn what_a_worker_took_in_the_future_and_forgot_is_free_again_in_time() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    assert_eq!(fixture.claim(&fixture.worker, 0).await, TAKE);
    fixture.set_clock(DAY - HOUR).await;
    assert_eq!(fixture.round().await.lost, []);
    fixture.set_clock(DAY - HOUR + LOST_AFTER / 2).await;
    assert_eq!(fixture.claim(&fixture.other, 0).await, TAKE);
}

#[tokio::test]
async fn what_is_parked_later_than_any_message_is_is_taken_when_it_comes() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..1).await;
    fixture.claim(&fixture.worker, 0).await;
    let until = fixture.frontier.now().await.unwrap().plus(HOUR / 2);
    let parking = Parking { claim: fixture.claim_on(0), until, failed: false };
    assert_eq!(fixture.frontier.park(&fixture.worker, &[parking]).await.unwrap(), [true]);
    let parked = Message { wake: Some(until), ..fixture.message(0) };
    fixture.frontier.confirm(&[parked]).await.unwrap();
    assert_eq!(fixture.claim(&fixture.worker, 0).await, ClaimReply::Drop);
    fixture.set_clock(DAY - HOUR).await;
    assert_eq!(fixture.claim(&fixture.worker, 0).await, TAKE);
}

#[tokio::test]
async fn a_pause_that_began_in_the_future_moves_no_deadline() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    let deadline = fixture.frontier.now().await.unwrap();
    let url = NewWork { deadline: Some(deadline), ..NewWork::seed(Fixture::url(0), Lane::Bulk) };
    fixture.frontier.admit(&lease, &[url]).await.unwrap();
    fixture.frontier.pause(&fixture.crawl).await.unwrap();
    fixture.set_clock(DAY - HOUR).await;
    fixture.frontier.resume(&fixture.crawl).await.unwrap();
    let reply = fixture.claim(&fixture.worker, 0).await;
    assert_eq!(reply, ClaimReply::Take { attempts: 0, starts: 0, deadline: Some(deadline) });
}

#[tokio::test]
async fn a_hosts_schedule_goes_back_with_the_clock_and_expires_nothing() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.slot(&one(None)).await, Slot::Now);
    assert!(wait(fixture.slot(&one(None)).await) <= Duration::from_secs(10));
    fixture.set_clock(DAY - HOUR).await;
    let deadline = fixture.frontier.now().await.unwrap().plus(Duration::from_secs(60));
    let third = wait(fixture.slot(&one(Some(deadline))).await);
    assert!(third > Duration::from_secs(15) && third <= Duration::from_secs(20), "{third:?}");
}

#[tokio::test]
async fn a_back_off_goes_back_with_the_clock() {
    let fixture = Fixture::new().await;
    let key = HostKey::from_text("site.example");
    let asked = Some(Duration::from_secs(20));
    let terms = BackoffTerms { asked, base: LOST_AFTER, jitter: 0.0, most: HOUR };
    let refusal = BackoffRequest { status: 503, terms, crawl: None };
    fixture.hosts.push_back(&key, &refusal).await.unwrap();
    fixture.set_clock(DAY - HOUR).await;
    let left = wait(fixture.slot(&one(None)).await);
    assert!(left > Duration::from_secs(15) && left <= Duration::from_secs(20), "{left:?}");
}
