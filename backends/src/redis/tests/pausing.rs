//! Tests of records that wait in a pause while RabbitMQ loses their messages.

use trawl_common::ports::Control;

use super::*;

/// The time to which the clock is set when a test begins.
const BEGINNING: Duration = Duration::from_secs(24 * 3600);

impl Fixture {
    /// A fixture with five pages of a paused crawl, each of which a worker has received.
    async fn paused() -> Self {
        let fixture = Self::new().await;
        let lease = fixture.open().await;
        fixture.send(&lease, 0..5).await;
        fixture.frontier.pause(&fixture.crawl).await.unwrap();
        for number in 0..5 {
            let reply = fixture.claim(&fixture.worker, number).await;
            assert!(matches!(reply, ClaimReply::Wait { .. }), "{reply:?}");
        }
        fixture
    }

    /// Returns the number of pages sent again by a round that begins then, when all due messages have been
    /// delivered.
    async fn sent_again_after(&self, time: Duration) -> usize {
        self.set_clock(BEGINNING + time).await;
        self.probe().await;
        self.round().await.lost.len()
    }
}

#[tokio::test]
async fn what_waits_in_a_pause_is_sent_again_if_its_message_does_not_come_back() {
    let fixture = Fixture::paused().await;
    assert_eq!(fixture.sent_again_after(2 * LOST_AFTER).await, 0, "its message is on the ladder");
    assert_eq!(fixture.sent_again_after(10 * LOST_AFTER).await, 5);
}

#[tokio::test]
async fn what_waits_in_a_pause_is_not_sent_again_as_long_as_its_message_comes_round() {
    let fixture = Fixture::paused().await;
    fixture.set_clock(BEGINNING + 8 * LOST_AFTER).await;
    for number in 0..5 {
        assert!(matches!(fixture.claim(&fixture.other, number).await, ClaimReply::Wait { .. }));
    }
    assert_eq!(fixture.sent_again_after(10 * LOST_AFTER).await, 0);
}

#[tokio::test]
async fn what_waits_in_a_pause_is_sent_again_as_soon_as_it_is_over() {
    let fixture = Fixture::paused().await;
    fixture.frontier.resume(&fixture.crawl).await.unwrap();
    let lost = fixture.round().await.lost;
    assert_eq!(lost.len(), 5);
    assert!(lost.iter().all(|message| message.until.is_none()), "it waits no more: {lost:?}");
    assert_eq!(fixture.claim(&fixture.other, 0).await, TAKE);
}
