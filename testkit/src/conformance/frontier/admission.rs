//! How URLs get in.

use std::sync::Arc;

use trawl_common::frontier::crawl::CrawlState;
use trawl_common::frontier::lane::Lane;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Terminal;
use trawl_common::frontier::{Heard, Taken};
use trawl_common::ports::{Claim, Finish, NewUrl, Result};
use trawl_common::web::url::CanonicalUrl;
use trawl_engine::{Linked, Linking, Records};

use crate::conformance::scene::{Scene, TAKE};

/// Once per spider, within a batch and across batches.
pub async fn a_url_is_admitted_once_however_often_it_is_named(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier);
    let lease = scene.open().await?;
    assert_eq!(scene.admit(&lease, [0, 1, 0]).await?, [true, true, false]);
    assert_eq!(scene.admit(&lease, [1, 2]).await?, [false, true]);
    assert!(scene.admit(&lease, []).await?.is_empty());
    let stats = scene.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.pending), (3, 3));
    Ok(())
}

/// Seen is seen for the spider, whether the URL has ended or not.
pub async fn a_later_crawl_of_the_spider_admits_only_what_is_new(frontier: &Arc<dyn Records>) -> Result<()> {
    let first = Scene::new(frontier);
    let lease = first.begin(2).await?;
    first.hear(&first.worker, 0).await?;
    first.finish(0, Terminal::Done).await?;
    frontier.close(lease).await?;
    let second = first.next_crawl();
    let lease = second.open().await?;
    assert_eq!(second.admit(&lease, 0..3).await?, [false, false, true]);
    assert_eq!(second.crawl_stats().await?.counts.admitted, 1);
    assert_eq!(first.crawl_stats().await?.counts.admitted, 2);
    Ok(())
}

/// Long URLs take more than short ones.
pub async fn a_backlog_is_reported_in_urls_and_in_bytes(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier);
    assert_eq!(frontier.backlog(&scene.crawl).await?.urls, 0);
    let lease = scene.begin(10).await?;
    let short = frontier.backlog(&scene.crawl).await?;
    assert!(short.urls == 10 && (500..10_000).contains(&short.bytes), "{short:?}");
    let long = |number| {
        let url = format!("{}?{}", scene.url(number), "x".repeat(2000));
        NewUrl::seed(CanonicalUrl::parse(&url).expect("it is a URL"), Lane::Bulk)
    };
    frontier.admit(&lease, &(0..990).map(long).collect::<Vec<_>>()).await?;
    let both = frontier.backlog(&scene.crawl).await?;
    assert!(both.urls == 1000 && (1_900_000..3_000_000).contains(&both.bytes), "{both:?}");
    scene.hear(&scene.worker, 0).await?;
    scene.finish(0, Terminal::Done).await?;
    assert_eq!(frontier.backlog(&scene.crawl).await?.urls, 999);
    Ok(())
}

/// Each spider has a set of its own.
pub async fn what_one_spider_has_seen_is_new_to_another(frontier: &Arc<dyn Records>) -> Result<()> {
    let one = Scene::new(frontier);
    one.begin(2).await?;
    let two = one.other_spider();
    let lease = two.open().await?;
    assert_eq!(two.admit(&lease, 0..2).await?, [true, true]);
    assert_eq!(one.hear(&one.worker, 0).await?, TAKE);
    assert_eq!(two.hear(&two.other, 0).await?, TAKE);
    assert!(two.end(&two.other, 0, Terminal::Done).await?);
    assert_eq!((one.crawl_stats().await?.pending, two.crawl_stats().await?.pending), (2, 1));
    Ok(())
}

/// An adapter may split a batch, and must put its answers together again.
pub async fn a_batch_of_any_size_is_answered_in_order(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier);
    let lease = scene.begin(0).await?;
    scene.admit(&lease, (0..1200).step_by(3)).await?;
    let new = scene.admit(&lease, 0..1200).await?;
    assert!(new.iter().enumerate().all(|(number, new)| *new == (number % 3 != 0)));
    let ended: Vec<_> = (0..1200).step_by(2).map(|number| scene.ending(number, Terminal::Done)).collect();
    assert!(scene.finish_all(&ended).await?.iter().all(|ended| *ended));
    let messages: Vec<_> = (0..1200).map(|number| scene.message(number)).collect();
    let heard = frontier.hear(&scene.worker, &messages).await?;
    assert_eq!(heard.len(), 1200);
    assert!(heard.iter().enumerate().all(|(number, heard)| (*heard == TAKE) == (number % 2 == 1)));
    Ok(())
}

/// A confirmation may come twice, for a URL that ended meanwhile, or for one that never was.
pub async fn confirming_again_or_too_much_changes_nothing(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier);
    scene.begin(3).await?;
    scene.finish(0, Terminal::Done).await?;
    scene.hear(&scene.worker, 1).await?;
    let before = scene.crawl_stats().await?;
    let urls: Vec<_> = (0..4).map(|number| scene.url(number)).collect();
    frontier.confirm(&scene.crawl, &urls).await?;
    let after = scene.crawl_stats().await?;
    assert_eq!((after.counts, after.pending), (before.counts, before.pending));
    assert!(scene.is_held_back(&scene.other, 1).await?, "a held URL stays held");
    assert_eq!(scene.hear(&scene.other, 2).await?, TAKE);
    Ok(())
}

/// A bare URL from any program belongs to `adhoc`, which never ends.
pub async fn a_url_published_by_hand_is_taken_once(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier).of_requests();
    assert_eq!(scene.hear_stranger(0).await?, TAKE);
    assert!(scene.is_held_back(&scene.other, 0).await?);
    assert!(scene.end(&scene.worker, 0, Terminal::Done).await?);
    assert_eq!(scene.hear(&scene.worker, 0).await?, Heard::Drop);
    assert_eq!(scene.status().await?, CrawlState::Running);
    Ok(())
}

/// Whoever publishes a URL may have added it to what the spider has seen, or wants to see it again.
pub async fn a_url_published_by_hand_is_taken_though_its_spider_has_seen_it(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let requests = Scene::new(frontier).of_requests();
    let crawl = requests.next_crawl();
    crawl.begin(2).await?;
    crawl.finish(0, Terminal::Done).await?;
    assert_eq!(requests.hear_stranger(0).await?, TAKE);
    assert!(!frontier.has_seen(&requests.crawl, &requests.url(1)).await?, "nobody has asked for it yet");
    requests.finish(0, Terminal::Done).await?;
    assert!(frontier.has_seen(&requests.crawl, &requests.url(0)).await?);
    let stats = requests.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.counts.done), (1, 1));
    Ok(())
}

/// And nothing is dropped without being counted; copies that trawl's own programs sent are no requests.
pub async fn a_url_asked_for_twice_at_once_is_a_repeat_that_is_counted(
    frontier: &Arc<dyn Records>,
) -> Result<()> {
    let scene = Scene::new(frontier).of_requests();
    assert_eq!(scene.hear_stranger(0).await?, TAKE);
    scene.finish(0, Terminal::Done).await?;
    for _ in 0..3 {
        assert_eq!(scene.hear_stranger(0).await?, Heard::Drop);
        assert_eq!(scene.hear(&scene.worker, 0).await?, Heard::Drop);
    }
    let stats = scene.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.reasons.get("dropped:repeat")), (1, Some(&3)));
    Ok(())
}

/// A page that is followed leads to each page once, however often the first is asked for: two that link to each other would
/// else be fetched for ever.
pub async fn what_a_requested_page_links_to_is_admitted_once(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier).of_requests();
    let crawl = scene.next_crawl();
    crawl.begin(2).await?;
    crawl.finish(1, Terminal::Done).await?;
    scene.hear_stranger(2).await?;
    let links = [1, 3].map(|number| NewUrl { depth: 1, ..scene.new_url(number) }).to_vec();
    let linking = Linking { page: scene.claim(2), links };
    let taken = frontier.admit_links(&scene.worker, &[linking]).await?;
    assert_eq!(taken, [Linked::Taken(vec![Taken::Seen, Taken::New])]);
    Ok(())
}

/// A store that was emptied learns of its crawls from their messages, which may have to go round once more.
pub async fn a_message_of_an_unknown_crawl_begins_its_stats(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier);
    let mut heard = scene.hear(&scene.worker, 0).await?;
    if heard == Heard::SendAgain {
        assert_eq!(scene.crawl_stats().await?.pending, 1, "it is known from now on");
        heard = scene.hear(&scene.worker, 0).await?;
    }
    assert_eq!(heard, TAKE);
    let stats = scene.crawl_stats().await?;
    assert_eq!((stats.counts.admitted, stats.pending, stats.status), (1, 1, CrawlState::Running));
    assert!(scene.end(&scene.worker, 0, Terminal::Done).await?);
    assert_eq!(scene.status().await?, CrawlState::Running, "nobody has said that this was all");
    Ok(())
}

/// A name that nobody gave is a mistake, and leaves no crawl behind that never ends.
pub async fn a_strangers_message_of_an_unknown_crawl_is_refused(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier);
    let stranger = |number| Message { is_ours: false, ..scene.message(number) };
    assert_eq!(frontier.hear(&scene.worker, &[stranger(0), stranger(1)]).await?, [Heard::Unknown; 2]);
    assert_eq!(frontier.crawl_stats(&scene.crawl.id).await?, None);
    scene.begin(1).await?;
    assert_eq!(frontier.hear(&scene.worker, &[stranger(1)]).await?, [TAKE], "of a known one it is by hand");
    Ok(())
}

/// What comes late does not revive a crawl.
pub async fn a_message_for_a_crawl_that_is_over_is_dropped(frontier: &Arc<dyn Records>) -> Result<()> {
    let scene = Scene::new(frontier);
    let lease = scene.begin(0).await?;
    frontier.close(lease).await?;
    assert_eq!(scene.hear(&scene.worker, 0).await?, Heard::Drop);
    assert_eq!(scene.crawl_stats().await?.counts.admitted, 0);
    Ok(())
}

/// The record belongs to the crawl that admitted it.
pub async fn a_message_of_another_crawl_of_the_spider_is_dropped(frontier: &Arc<dyn Records>) -> Result<()> {
    let first = Scene::new(frontier);
    let lease = first.begin(1).await?;
    frontier.close(lease).await?;
    let second = first.next_crawl();
    second.open().await?;
    let foreign = Message::seed(first.url(0), second.crawl.clone(), Lane::Priority);
    assert_eq!(frontier.hear(&first.worker, &[foreign]).await?, [Heard::Drop]);
    let claim = Claim { crawl: second.crawl.clone(), url: first.url(0) };
    let finish = Finish::new(claim, Terminal::Done);
    frontier.finish(&first.worker, &[finish]).await?;
    assert_eq!((first.crawl_stats().await?.pending, second.crawl_stats().await?.counts.done), (1, 0));
    Ok(())
}
