//! Tests that stored records that cannot be read stop nothing else, are named, and keep no crawl from its end.

use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::frontier::{StartReply, Work};
use trawl_common::ports::{Control, Finish, Stats};
use trawl_engine::{Linked, Linking, Parking};

use super::*;

const PENDING: &str = "{crawled_urls}:pending:c";
const FAILED: &str = "{crawled_urls}:failed:c";
const CORRUPT: &str = "{crawled_urls}:corrupt:c";

/// A value that no version ever wrote, and that is not even text.
const GARBAGE: &[u8] = b"h17+ \xff\x1b[2J nonsense";

impl Fixture {
    async fn overwrite(&self, url: &[u8], record: &[u8]) {
        let () = self.ask(redis::cmd("HSET").arg(PENDING).arg(url).arg(record)).await;
    }

    async fn spoil(&self, number: usize) {
        self.overwrite(Self::url(number).as_str().as_bytes(), GARBAGE).await;
    }

    async fn crawl_stats(&self) -> CrawlStats {
        let stats = self.frontier.crawl_stats(&self.crawl.id).await.unwrap().unwrap();
        assert_eq!(stats.counts.admitted, stats.pending + stats.counts.ended(), "{stats:?}");
        stats
    }

    /// Asserts that page `number` is quarantined, and no other.
    async fn quarantined(&self, number: usize) {
        let kept: Vec<(Vec<u8>, Vec<u8>)> = self.ask(redis::cmd("HGETALL").arg(CORRUPT)).await;
        assert_eq!(kept, [(Self::url(number).as_str().as_bytes().to_vec(), GARBAGE.to_vec())]);
        let stats = self.crawl_stats().await;
        assert_eq!((stats.counts.failed, stats.reasons["failed:corrupt"]), (1, 1));
        let note = self.frontier.failure(&self.crawl, &Self::url(number).into()).await.unwrap().unwrap();
        assert_eq!(note.cause.reason, Reason::Corrupt);
        assert_eq!(note.cause.error, "its record cannot be read: h17+ ??[2J nonsense");
        let page = self.frontier.failed(&self.crawl, 0).await.unwrap();
        assert_eq!(page.failed, [(Self::url(number).into(), note)]);
    }

    /// The worker takes and ends these pages.
    async fn finish(&self, numbers: impl IntoIterator<Item = usize>) {
        for number in numbers {
            self.claim(&self.worker, number).await;
            let finish = Finish::new(self.claim_on(number), Terminal::Done);
            self.frontier.finish(&self.worker, &[finish]).await.unwrap();
        }
    }
}

/// A crawl of three pages, of which the worker has the first and the last, and the one in between cannot be read.
async fn spoiled() -> (Fixture, Lease) {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..3).await;
    for number in [0, 2] {
        assert_eq!(fixture.claim(&fixture.worker, number).await, TAKE);
    }
    fixture.spoil(1).await;
    (fixture, lease)
}

#[tokio::test]
async fn a_batch_is_claimed_but_for_the_record_that_cannot_be_read() {
    let fixture = Fixture::new().await;
    let lease = fixture.open().await;
    fixture.send(&lease, 0..3).await;
    fixture.spoil(1).await;
    // The first two are known from their messages alone.
    let messages = [4, 5, 0, 1, 2].map(|number| fixture.message(number));
    let replies = fixture.frontier.claim(&fixture.worker, &messages).await.unwrap();
    assert_eq!(replies, [TAKE, TAKE, TAKE, ClaimReply::Drop, TAKE]);
    fixture.quarantined(1).await;
    assert_eq!(fixture.crawl_stats().await.pending, 4);
}

#[tokio::test]
async fn a_crawl_ends_although_a_record_cannot_be_read() {
    let (fixture, lease) = spoiled().await;
    fixture.finish([0, 2]).await;
    fixture.frontier.close(lease, None).await.unwrap();
    fixture.round().await;
    fixture.quarantined(1).await;
    fixture.round().await;
    assert_eq!(fixture.crawl_stats().await.status, CrawlState::Finished);
}

#[tokio::test]
async fn others_are_kept_started_parked_and_released() {
    let (fixture, _lease) = spoiled().await;
    fixture.frontier.extend(&fixture.worker, &[0, 1, 2].map(|number| fixture.message(number))).await.unwrap();
    fixture.quarantined(1).await;

    let (fixture, _lease) = spoiled().await;
    let claims = [0, 1, 2].map(|number| fixture.claim_on(number));
    let started = fixture.frontier.start(&fixture.worker, &claims).await.unwrap();
    assert_eq!(started, [StartReply::Go, StartReply::Lost, StartReply::Go]);
    fixture.quarantined(1).await;

    let (fixture, _lease) = spoiled().await;
    let until = fixture.frontier.now().await.unwrap();
    let parkings = [0, 1, 2].map(|number| Parking { claim: fixture.claim_on(number), until, failed: false });
    assert_eq!(fixture.frontier.park(&fixture.worker, &parkings).await.unwrap(), [true, false, true]);
    fixture.quarantined(1).await;

    let (fixture, _lease) = spoiled().await;
    let claims = [0, 1, 2].map(|number| fixture.claim_on(number));
    fixture.frontier.release(&fixture.worker, &claims).await.unwrap();
    fixture.quarantined(1).await;
    assert_eq!(fixture.claim(&fixture.other, 2).await, TAKE);
}

#[tokio::test]
async fn others_are_finished() {
    let (fixture, _lease) = spoiled().await;
    let finishes = [0, 1, 2].map(|number| Finish::new(fixture.claim_on(number), Terminal::Done));
    assert_eq!(fixture.frontier.finish(&fixture.worker, &finishes).await.unwrap(), [true; 3]);
    fixture.quarantined(1).await;
    assert_eq!(fixture.crawl_stats().await.counts.done, 2);
}

#[tokio::test]
async fn a_page_that_cannot_be_read_admits_no_links() {
    let (fixture, _lease) = spoiled().await;
    let link = NewWork::seed(Fixture::url(9), Lane::Bulk);
    let linking = |number| Linking { page: fixture.claim_on(number), links: vec![link.clone()] };
    let taken = fixture.frontier.admit_links(&fixture.worker, &[linking(1), linking(2)]).await.unwrap();
    assert!(taken[0] == Linked::NotHeld && matches!(taken[1], Linked::Taken(_)));
    fixture.quarantined(1).await;
}

#[tokio::test]
async fn a_sweep_finds_what_is_lost_beside_what_cannot_be_read() {
    let (fixture, _lease) = spoiled().await;
    fixture.set_clock(24 * HOUR + LOST_AFTER).await;
    assert_eq!(fixture.round().await.lost.len(), 2);
    fixture.quarantined(1).await;
}

#[tokio::test]
async fn what_cannot_be_read_is_a_dead_letter_until_it_is_published() {
    let (fixture, _lease) = spoiled().await;
    fixture.round().await;
    fixture.quarantined(1).await;
    let cause =
        fixture.frontier.failure(&fixture.crawl, &Fixture::url(1).into()).await.unwrap().unwrap().cause;
    let dead_letter = DeadLetter { url: Fixture::url(1).to_string(), crawl: fixture.crawl.clone(), cause };
    for _ in 0..2 {
        assert_eq!(
            fixture.round().await.corrupt,
            std::slice::from_ref(&dead_letter),
            "whoever was to publish it may have died"
        );
    }
    fixture.frontier.dead_letters_published(&[dead_letter]).await.unwrap();
    assert_eq!(fixture.round().await.corrupt, []);
}

#[tokio::test]
async fn a_record_under_a_key_that_is_no_url_is_out_of_the_way() {
    let (fixture, lease) = spoiled().await;
    fixture.overwrite(Fixture::url(1).as_str().as_bytes(), b"n5").await;
    fixture.overwrite(b"no \xff URL", b"n5").await;
    let () = fixture.ask(redis::cmd("HINCRBY").arg("{crawled_urls}:crawl:c").arg("admitted").arg(1)).await;
    let lost: Vec<Work> = fixture.round().await.lost.into_iter().map(|lost| lost.work).collect();
    assert_eq!(lost, [Fixture::url(1)]);
    fixture.finish([0, 1, 2]).await;
    fixture.frontier.close(lease, None).await.unwrap();
    fixture.round().await;
    assert_eq!(
        (fixture.crawl_stats().await.status, fixture.crawl_stats().await.counts.failed),
        (CrawlState::Finished, 1)
    );
    assert_eq!(fixture.frontier.failed(&fixture.crawl, 0).await.unwrap().failed, []);
}

#[tokio::test]
async fn what_could_not_be_read_is_replayed_as_new() {
    let (fixture, lease) = spoiled().await;
    fixture.claim(&fixture.worker, 1).await;
    fixture.quarantined(1).await;
    let replayed =
        fixture.frontier.replay(&fixture.crawl, &fixture.crawl, &[Fixture::url(1).into()]).await.unwrap();
    assert_eq!(replayed, [fixture.message(1)]);
    let stats = fixture.crawl_stats().await;
    assert_eq!((stats.counts.failed, stats.reasons.get("failed:corrupt")), (0, None));
    fixture.finish([0, 1, 2]).await;
    fixture.frontier.close(lease, None).await.unwrap();
    assert_eq!(fixture.crawl_stats().await.status, CrawlState::Finished);
}

#[tokio::test]
async fn a_note_that_cannot_be_read_is_listed_with_its_text_and_replayed() {
    let (fixture, _lease) = spoiled().await;
    fixture.finish([1]).await;
    let () = fixture
        .ask(redis::cmd("HSET").arg(FAILED).arg(Fixture::url(1).as_str()).arg(b"{\xff\x1b".as_slice()))
        .await;
    let () = fixture.ask(redis::cmd("HINCRBY").arg("{crawled_urls}:crawl:c").arg("failed").arg(1)).await;
    let page = fixture.frontier.failed(&fixture.crawl, 0).await.unwrap();
    let error = &page.failed[0].1.cause.error;
    assert!(page.failed[0].0 == Fixture::url(1) && error.starts_with("its note cannot be read"), "{error}");
    assert!(!error.contains('\u{1b}'), "{error:?}");
    let replayed =
        fixture.frontier.replay(&fixture.crawl, &fixture.crawl, &[Fixture::url(1).into()]).await.unwrap();
    assert_eq!(replayed, [fixture.message(1)]);
}
