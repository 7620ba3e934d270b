//! What is stored and cannot be read stops nothing else, is named, and keeps no crawl from its end.

use trawl_common::frontier::Start;
use trawl_common::frontier::crawl::{CrawlState, CrawlStats};
use trawl_common::frontier::dead_letter::DeadLetter;
use trawl_common::frontier::outcome::{Reason, Terminal};
use trawl_common::ports::{Control, Finish, Stats};
use trawl_engine::{Linked, Linking, Parking};

use super::*;

const PENDING: &str = "{crawled_urls}:pending:c";
const FAILED: &str = "{crawled_urls}:failed:c";
const CORRUPT: &str = "{crawled_urls}:corrupt:c";

/// What no version ever wrote, and not even text.
const GARBAGE: &[u8] = b"h17+ \xff\x1b[2J nonsense";

impl Stage {
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

    /// That page `number` is quarantined, and no other.
    async fn quarantined(&self, number: usize) {
        let kept: Vec<(Vec<u8>, Vec<u8>)> = self.ask(redis::cmd("HGETALL").arg(CORRUPT)).await;
        assert_eq!(kept, [(Self::url(number).as_str().as_bytes().to_vec(), GARBAGE.to_vec())]);
        let stats = self.crawl_stats().await;
        assert_eq!((stats.counts.failed, stats.reasons["failed:corrupt"]), (1, 1));
        let note = self.frontier.failure(&self.crawl, &Self::url(number)).await.unwrap().unwrap();
        assert_eq!(note.cause.reason, Reason::Corrupt);
        assert_eq!(note.cause.error, "its record cannot be read: h17+ ??[2J nonsense");
        let page = self.frontier.failed(&self.crawl, 0).await.unwrap();
        assert_eq!(page.urls, [(Self::url(number), note)]);
    }

    /// The worker takes and ends these pages.
    async fn finish(&self, numbers: impl IntoIterator<Item = usize>) {
        for number in numbers {
            self.hear(&self.worker, number).await;
            let finish = Finish::new(self.claim(number), Terminal::Done);
            self.frontier.finish(&self.worker, &[finish]).await.unwrap();
        }
    }
}

/// A crawl of three pages, of which the worker has the first and the last, and the one in between cannot be read.
async fn spoiled() -> (Stage, Lease) {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.send(&lease, 0..3).await;
    for number in [0, 2] {
        assert_eq!(stage.hear(&stage.worker, number).await, TAKE);
    }
    stage.spoil(1).await;
    (stage, lease)
}

#[tokio::test]
async fn a_batch_is_heard_but_for_the_record_that_cannot_be_read() {
    let stage = Stage::new().await;
    let lease = stage.open().await;
    stage.send(&lease, 0..3).await;
    stage.spoil(1).await;
    // The first two are known from their messages alone.
    let messages = [4, 5, 0, 1, 2].map(|number| stage.message(number));
    let heard = stage.frontier.hear(&stage.worker, &messages).await.unwrap();
    assert_eq!(heard, [TAKE, TAKE, TAKE, Heard::Drop, TAKE]);
    stage.quarantined(1).await;
    assert_eq!(stage.crawl_stats().await.pending, 4);
}

#[tokio::test]
async fn a_crawl_ends_although_a_record_cannot_be_read() {
    let (stage, lease) = spoiled().await;
    stage.finish([0, 2]).await;
    stage.frontier.close(lease).await.unwrap();
    stage.round().await;
    stage.quarantined(1).await;
    stage.round().await;
    assert_eq!(stage.crawl_stats().await.status, CrawlState::Finished);
}

#[tokio::test]
async fn others_are_kept_started_parked_and_released() {
    let (stage, _lease) = spoiled().await;
    stage.frontier.keep(&stage.worker, &[0, 1, 2].map(|number| stage.message(number))).await.unwrap();
    stage.quarantined(1).await;

    let (stage, _lease) = spoiled().await;
    let claims = [0, 1, 2].map(|number| stage.claim(number));
    let started = stage.frontier.start(&stage.worker, &claims).await.unwrap();
    assert_eq!(started, [Start::Go, Start::Lost, Start::Go]);
    stage.quarantined(1).await;

    let (stage, _lease) = spoiled().await;
    let until = stage.frontier.now().await.unwrap();
    let parkings = [0, 1, 2].map(|number| Parking { claim: stage.claim(number), until, failed: false });
    assert_eq!(stage.frontier.park(&stage.worker, &parkings).await.unwrap(), [true, false, true]);
    stage.quarantined(1).await;

    let (stage, _lease) = spoiled().await;
    let claims = [0, 1, 2].map(|number| stage.claim(number));
    stage.frontier.release(&stage.worker, &claims).await.unwrap();
    stage.quarantined(1).await;
    assert_eq!(stage.hear(&stage.other, 2).await, TAKE);
}

#[tokio::test]
async fn others_are_finished() {
    let (stage, _lease) = spoiled().await;
    let finishes = [0, 1, 2].map(|number| Finish::new(stage.claim(number), Terminal::Done));
    assert_eq!(stage.frontier.finish(&stage.worker, &finishes).await.unwrap(), [true; 3]);
    stage.quarantined(1).await;
    assert_eq!(stage.crawl_stats().await.counts.done, 2);
}

#[tokio::test]
async fn a_page_that_cannot_be_read_admits_no_links() {
    let (stage, _lease) = spoiled().await;
    let link = NewUrl::seed(Stage::url(9), Lane::Bulk);
    let linking = |number| Linking { page: stage.claim(number), links: vec![link.clone()] };
    let taken = stage.frontier.admit_links(&stage.worker, &[linking(1), linking(2)]).await.unwrap();
    assert!(taken[0] == Linked::NotHeld && matches!(taken[1], Linked::Taken(_)));
    stage.quarantined(1).await;
}

#[tokio::test]
async fn a_sweep_finds_what_is_lost_beside_what_cannot_be_read() {
    let (stage, _lease) = spoiled().await;
    stage.set_clock(24 * HOUR + PATIENCE).await;
    assert_eq!(stage.round().await.lost.len(), 2);
    stage.quarantined(1).await;
}

#[tokio::test]
async fn what_cannot_be_read_is_a_dead_letter_until_it_is_published() {
    let (stage, _lease) = spoiled().await;
    stage.round().await;
    stage.quarantined(1).await;
    let cause = stage.frontier.failure(&stage.crawl, &Stage::url(1)).await.unwrap().unwrap().cause;
    let dead_letter = DeadLetter { url: Stage::url(1).to_string(), crawl: stage.crawl.clone(), cause };
    for _ in 0..2 {
        assert_eq!(
            stage.round().await.corrupt,
            std::slice::from_ref(&dead_letter),
            "whoever was to publish it may have died"
        );
    }
    stage.frontier.buried(&[dead_letter]).await.unwrap();
    assert_eq!(stage.round().await.corrupt, []);
}

#[tokio::test]
async fn a_record_under_a_key_that_is_no_url_is_out_of_the_way() {
    let (stage, lease) = spoiled().await;
    stage.overwrite(Stage::url(1).as_str().as_bytes(), b"n5").await;
    stage.overwrite(b"no \xff URL", b"n5").await;
    let () = stage.ask(redis::cmd("HINCRBY").arg("{crawled_urls}:crawl:c").arg("admitted").arg(1)).await;
    let lost: Vec<CanonicalUrl> = stage.round().await.lost.into_iter().map(|lost| lost.url).collect();
    assert_eq!(lost, [Stage::url(1)]);
    stage.finish([0, 1, 2]).await;
    stage.frontier.close(lease).await.unwrap();
    stage.round().await;
    assert_eq!(
        (stage.crawl_stats().await.status, stage.crawl_stats().await.counts.failed),
        (CrawlState::Finished, 1)
    );
    assert_eq!(stage.frontier.failed(&stage.crawl, 0).await.unwrap().urls, []);
}

#[tokio::test]
async fn what_could_not_be_read_is_replayed_as_new() {
    let (stage, lease) = spoiled().await;
    stage.hear(&stage.worker, 1).await;
    stage.quarantined(1).await;
    let replayed = stage.frontier.replay(&stage.crawl, &stage.crawl, &[Stage::url(1)]).await.unwrap();
    assert_eq!(replayed, [stage.message(1)]);
    let stats = stage.crawl_stats().await;
    assert_eq!((stats.counts.failed, stats.reasons.get("failed:corrupt")), (0, None));
    stage.finish([0, 1, 2]).await;
    stage.frontier.close(lease).await.unwrap();
    assert_eq!(stage.crawl_stats().await.status, CrawlState::Finished);
}

#[tokio::test]
async fn a_note_that_cannot_be_read_is_listed_with_its_text_and_replayed() {
    let (stage, _lease) = spoiled().await;
    stage.finish([1]).await;
    let () = stage
        .ask(redis::cmd("HSET").arg(FAILED).arg(Stage::url(1).as_str()).arg(b"{\xff\x1b".as_slice()))
        .await;
    let () = stage.ask(redis::cmd("HINCRBY").arg("{crawled_urls}:crawl:c").arg("failed").arg(1)).await;
    let page = stage.frontier.failed(&stage.crawl, 0).await.unwrap();
    let error = &page.urls[0].1.cause.error;
    assert!(page.urls[0].0 == Stage::url(1) && error.starts_with("its note cannot be read"), "{error}");
    assert!(!error.contains('\u{1b}'), "{error:?}");
    let replayed = stage.frontier.replay(&stage.crawl, &stage.crawl, &[Stage::url(1)]).await.unwrap();
    assert_eq!(replayed, [stage.message(1)]);
}
