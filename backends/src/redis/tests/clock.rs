//! Redis' clock is set back: stamps from a future that has not come are not believed.

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::line::Line;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::politeness::gcra::{BackoffTerms, Pace, SlotRequest, Standing};
use trawl_common::ports::{BackoffRequest, Control, Finish, Stats};
use trawl_common::time::UnixMs;
use trawl_common::web::host::HostKey;
use trawl_engine::{Mark, Parking, Probe};

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

impl Stage {
    /// Sends a probe through every line, which comes back.
    async fn probe(&self) {
        let sent = self.frontier.now().await.unwrap();
        let probes = Line::ALL.map(|line| Probe { line, mark: Mark { sent, before: UnixMs(0) } });
        self.frontier.passed(&probes).await.unwrap();
    }
}

/// One request in ten seconds.
fn one(deadline: Option<UnixMs>) -> HostSlotRequest {
    let pace = Pace { interval: Duration::from_secs(10), ..Pace::UNLIMITED };
    let request =
        SlotRequest { pace, held: None, standing: Standing::New, deadline, token: 0, lapse: PATIENCE };
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
    let stage = Stage::new().await;
    let refused = stage.frontier.check_clock().await.unwrap_err();
    assert!(refused.to_string().contains("1day behind Redis'"), "{refused}");
    let fleet = stage.frontier.now().await.unwrap();
    assert!(UnixMs::now().0.abs_diff(fleet.0) < 60_000);
    stage.set_clock(Duration::ZERO).await;
    stage.frontier.check_clock().await.unwrap();
}

#[tokio::test]
async fn what_is_queued_is_not_lost_because_probes_came_back_in_a_future_that_is_no_more() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.probe().await;
    stage.set_clock(DAY - HOUR).await;
    stage.send(&lease, 0..5).await;
    stage.set_clock(DAY - HOUR + 3 * PATIENCE).await;
    assert_eq!(stage.round().await.lost, []);
    stage.probe().await;
    assert_eq!(stage.round().await.lost.len(), 5);
}

#[tokio::test]
async fn what_was_queued_in_the_future_is_found_when_it_is_lost() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.send(&lease, 0..5).await;
    stage.set_clock(DAY - HOUR).await;
    assert_eq!(stage.round().await.lost, []);
    stage.set_clock(DAY - HOUR + 3 * PATIENCE).await;
    stage.probe().await;
    assert_eq!(stage.round().await.lost.len(), 5);
}

#[tokio::test]
async fn what_was_never_confirmed_in_the_future_is_sent_again() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.frontier.admit(&lease, &[NewUrl::seed(Stage::url(0), Lane::Bulk)]).await.unwrap();
    stage.set_clock(DAY - HOUR).await;
    assert_eq!(stage.round().await.lost, []);
    stage.set_clock(DAY - HOUR + 2 * PATIENCE).await;
    assert_eq!(stage.round().await.lost.len(), 1);
}

#[tokio::test]
async fn probes_go_on() {
    let stage = Stage::new().await;
    assert!(stage.round().await.probe.is_some());
    stage.set_clock(DAY - HOUR).await;
    let probe = stage.round().await.probe.unwrap();
    assert_eq!(probe.before.0, 0);
}

#[tokio::test]
async fn a_barrier_is_not_lifted_by_probes_of_the_future() {
    let stage = Stage::new().await;
    stage.probe().await;
    stage.set_clock(DAY - HOUR).await;
    // Known from its message alone: the crawl was forgotten.
    stage.hear(&stage.worker, 0).await;
    assert_eq!(stage.round().await.awaiting, []);
    stage.set_clock(DAY - HOUR + 2 * PATIENCE).await;
    assert_eq!(stage.round().await.awaiting, []);
    stage.probe().await;
    assert_eq!(stage.round().await.awaiting, std::slice::from_ref(&stage.crawl));
}

#[tokio::test]
async fn a_barrier_of_the_future_is_lifted_as_if_it_were_set_now() {
    let stage = Stage::new().await;
    // Heard first, it goes round once more.
    assert_eq!(stage.hear(&stage.worker, 0).await, Heard::SendAgain);
    assert_eq!(stage.hear(&stage.worker, 0).await, TAKE);
    let finish = Finish::new(stage.claim(0), Terminal::Done);
    assert_eq!(stage.frontier.finish(&stage.worker, &[finish]).await.unwrap(), [true]);
    stage.set_clock(HOUR).await;
    assert_eq!(stage.round().await.awaiting, []);
    stage.set_clock(HOUR + 2 * PATIENCE).await;
    stage.probe().await;
    assert_eq!(stage.round().await.awaiting, std::slice::from_ref(&stage.crawl));
    stage.frontier.await_parked(&stage.crawl, Duration::ZERO).await.unwrap();
    stage.set_clock(HOUR + 5 * PATIENCE).await;
    stage.probe().await;
    stage.round().await;
    let stats = stage.frontier.crawl_stats(&stage.crawl.id).await.unwrap().unwrap();
    assert_eq!(stats.status, CrawlState::Finished);
}

#[tokio::test]
async fn what_a_worker_took_in_the_future_and_forgot_is_free_again_in_time() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.send(&lease, 0..1).await;
    assert_eq!(stage.hear(&stage.worker, 0).await, TAKE);
    stage.set_clock(DAY - HOUR).await;
    assert_eq!(stage.round().await.lost, []);
    stage.set_clock(DAY - HOUR + PATIENCE / 2).await;
    assert_eq!(stage.hear(&stage.other, 0).await, TAKE);
}

#[tokio::test]
async fn what_is_parked_later_than_any_message_is_is_taken_when_it_comes() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.send(&lease, 0..1).await;
    stage.hear(&stage.worker, 0).await;
    let until = stage.frontier.now().await.unwrap().plus(HOUR / 2);
    let parking = Parking { claim: stage.claim(0), until, failed: false };
    assert_eq!(stage.frontier.park(&stage.worker, &[parking]).await.unwrap(), [true]);
    assert_eq!(stage.hear(&stage.worker, 0).await, Heard::Drop);
    stage.set_clock(DAY - HOUR).await;
    assert_eq!(stage.hear(&stage.worker, 0).await, TAKE);
}

#[tokio::test]
async fn a_pause_that_began_in_the_future_moves_no_deadline() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    let deadline = stage.frontier.now().await.unwrap();
    let url = NewUrl { deadline: Some(deadline), ..NewUrl::seed(Stage::url(0), Lane::Bulk) };
    stage.frontier.admit(&lease, &[url]).await.unwrap();
    stage.frontier.pause(&stage.crawl).await.unwrap();
    stage.set_clock(DAY - HOUR).await;
    stage.frontier.resume(&stage.crawl).await.unwrap();
    let heard = stage.hear(&stage.worker, 0).await;
    assert_eq!(heard, Heard::Take { attempts: 0, starts: 0, deadline: Some(deadline) });
}

#[tokio::test]
async fn a_hosts_schedule_goes_back_with_the_clock_and_expires_nothing() {
    let stage = Stage::new().await;
    assert_eq!(stage.slot(&one(None)).await, Slot::Now);
    assert!(wait(stage.slot(&one(None)).await) <= Duration::from_secs(10));
    stage.set_clock(DAY - HOUR).await;
    let deadline = stage.frontier.now().await.unwrap().plus(Duration::from_secs(60));
    let third = wait(stage.slot(&one(Some(deadline))).await);
    assert!(third > Duration::from_secs(15) && third <= Duration::from_secs(20), "{third:?}");
}

#[tokio::test]
async fn a_back_off_goes_back_with_the_clock() {
    let stage = Stage::new().await;
    let key = HostKey::from_text("site.example");
    let asked = Some(Duration::from_secs(20));
    let terms = BackoffTerms { asked, base: PATIENCE, jitter: 0.0, most: HOUR };
    let refusal = BackoffRequest { status: 503, terms };
    stage.hosts.push_back(&key, &refusal).await.unwrap();
    stage.set_clock(DAY - HOUR).await;
    let left = wait(stage.slot(&one(None)).await);
    assert!(left > Duration::from_secs(15) && left <= Duration::from_secs(20), "{left:?}");
}
