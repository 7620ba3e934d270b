use std::collections::VecDeque;
use std::ops::Range;

use futures::FutureExt;
use tokio::time::advance;
use trawl_web::Threads;

use super::put_off::{MAX_DELAY, MIN_DELAY};
use super::speed::SLOW_TTL;
use super::*;

/// Eight fetch permits, and twelve places.
fn domains() -> Arc<Domains> {
    let worker = settings::Worker { concurrency: 8, prefetch: 32, ..settings::Worker::default() };
    Arc::new(Domains::new(&worker))
}

fn threads() -> Threads {
    Threads::start(1).unwrap()
}

fn domain(number: usize) -> HostKey {
    HostKey::from_text(&format!("{number}.example"))
}

/// A page of a domain that was not put off before.
fn page(number: usize) -> Candidate {
    Candidate { domain: domain(number), was_parked: false }
}

/// A page of a domain whose URL returns after it was put off.
fn returning(number: usize) -> Candidate {
    Candidate { was_parked: true, ..page(number) }
}

/// As many pages of a domain as may begin.
fn all_of(domains: &Arc<Domains>, number: usize) -> Vec<UnderWay> {
    std::iter::from_fn(|| domains.begin(page(number)).ok()).take(100).collect()
}

/// Makes domains known as quick.
fn quick(domains: &Arc<Domains>, numbers: Range<usize>) {
    numbers.for_each(|number| domains.begin(page(number)).unwrap().mark_answered());
}

/// A page of each of these domains, which have answered, and are slow.
async fn slow(domains: &Arc<Domains>, numbers: Range<usize>) -> Vec<UnderWay> {
    quick(domains, numbers.clone());
    silent(domains, numbers).await
}

/// A page of each of these domains that takes more than a second.
async fn silent(domains: &Arc<Domains>, numbers: Range<usize>) -> Vec<UnderWay> {
    let mut pages: Vec<_> = numbers.map(|number| domains.begin(page(number)).unwrap()).collect();
    advance(SLOW_PAGE).await;
    assert!(pages.iter_mut().all(|page| page.mark_slow().is_ok()));
    pages
}

/// Twelve silent domains, each of which has a place.
async fn crowd(domains: &Arc<Domains>) -> Vec<UnderWay> {
    let mut pages = Vec::new();
    for first in [0, 4, 8] {
        pages.extend(silent(domains, first..first + 4).await);
    }
    pages
}

#[tokio::test(start_paused = true)]
async fn slow_pages_give_up_their_permits_and_leave_half_of_them_to_quick_domains() {
    let domains = domains();
    let slow = slow(&domains, 0..5).await;
    assert!(slow.iter().all(|page| !page.needs_permit()));
    quick(&domains, 100..101);
    let unknown: Vec<_> = (20..24).map(|number| domains.begin(page(number)).unwrap()).collect();
    assert!(unknown.iter().all(UnderWay::needs_permit));
    assert!(domains.begin(page(101)).is_err(), "nobody knows whether it is quick");
    assert!(domains.begin(page(100)).is_ok());
    drop(unknown);
    assert!(domains.begin(page(101)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn domains_of_which_nothing_is_known_have_all_permits_while_no_page_is_slow() {
    let domains = domains();
    let pages: Vec<_> = (0..8).map(|number| domains.begin(page(number)).unwrap()).collect();
    assert!(pages.iter().all(UnderWay::needs_permit));
    assert!(domains.begin(page(8)).is_err());
}

#[tokio::test(start_paused = true)]
async fn domains_have_as_many_places_as_they_leave_to_others() {
    let domains = domains();
    let pages = slow(&domains, 0..1).await;
    assert_eq!(pages.len() + all_of(&domains, 0).len(), 6, "half of the places");
    let _pages = all_of(&domains, 0);
    assert!(domains.keeps_away(&page(0)).is_some());
    assert_eq!(domains.keeps_away(&page(1)), None);
    assert_eq!(all_of(&domains, 1).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn no_page_of_a_domain_is_given_up_that_is_alone() {
    let domains = domains();
    quick(&domains, 0..1);
    let mut pages: Vec<_> = (0..8).map(|_| domains.begin(page(0)).unwrap()).collect();
    advance(SLOW_PAGE).await;
    assert!(pages.iter_mut().all(|page| page.mark_slow().is_ok()));
    assert_eq!(pages.iter().filter(|page| page.needs_permit()).count(), 2, "six have places");
    assert!(domains.begin(page(1)).is_ok(), "there are permits for others");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_quick_domain_that_proves_slow_without_a_place_is_given_up_where_others_are_slow() {
    let domains = domains();
    quick(&domains, 0..2);
    let mut pages: Vec<_> = (0..8).map(|number| domains.begin(page(number % 2)).unwrap()).collect();
    let _others = slow(&domains, 10..14).await;
    let slow = pages.iter_mut().filter_map(|page| page.mark_slow().err()).count();
    assert_eq!(slow, 2, "three of each have places beside four of others");
}

#[tokio::test(start_paused = true)]
async fn where_no_place_is_left_the_first_page_of_a_silent_domain_gives_way_to_one_that_was_not_tried() {
    let domains = domains();
    let mut pages = crowd(&domains).await;
    let first = domains.begin(page(20)).unwrap();
    let away = pages[0].gives_way(&threads()).await;
    assert!((MIN_DELAY..=MAX_DELAY).contains(&away), "{away:?}");
    assert!(pages[1].gives_way(&threads()).now_or_never().is_none());
    assert!(domains.begin(page(1)).is_err(), "it was tried");
    drop((pages.remove(0), first));
    assert_eq!(domains.slow(), 11, "one was given up, and the one that took its place is over");
}

#[tokio::test(start_paused = true)]
async fn where_no_place_is_left_silent_domains_give_way_to_a_few_pages_of_a_slow_one_that_has_answered() {
    let domains = domains();
    drop(slow(&domains, 20..21).await);
    let mut pages = crowd(&domains).await;
    let few = all_of(&domains, 20);
    assert_eq!(few.len(), MAX_ON_TRIAL);
    assert!(pages[..MAX_ON_TRIAL].iter_mut().all(|page| page.gives_way(&threads()).now_or_never().is_some()));
    assert!(few.iter().all(|page| !page.needs_permit()));
}

#[tokio::test(start_paused = true)]
async fn a_page_does_not_give_way_at_once_nor_when_its_domain_has_answered() {
    let domains = domains();
    let mut pages = silent(&domains, 0..4).await;
    for page in &pages {
        page.mark_answered();
    }
    pages.extend(silent(&domains, 4..8).await);
    pages.extend(silent(&domains, 8..12).await);
    let _late: Vec<_> = (20..24).map(|number| domains.begin(page(number)).unwrap()).collect();
    assert!(domains.begin(page(24)).is_err(), "the others have not had their try");
    assert!(pages[..4].iter_mut().all(|page| page.gives_way(&threads()).now_or_never().is_none()));
    assert!(pages[4..8].iter_mut().all(|page| page.gives_way(&threads()).now_or_never().is_some()));
}

#[tokio::test(start_paused = true)]
async fn once_threads_were_kept_busy_only_a_domain_is_trusted_that_is_quick_and_did_not_do_so() {
    let domains = domains();
    let first = domains.begin(page(0)).unwrap();
    assert!(domains.is_trusted(&domain(0)));
    let second = domains.begin(page(0)).unwrap();
    assert!(!domains.is_trusted(&domain(0)), "two pages at once");
    first.mark_answered();
    assert!(domains.is_trusted(&domain(0)));
    domains.kept_busy(domain(1));
    domains.begin(page(1)).unwrap().mark_answered();
    assert!(domains.is_trusted(&domain(0)) && !domains.is_trusted(&domain(1)));
    assert!(!domains.is_trusted(&domain(2)));
    advance(DISTRUST_TIME).await;
    assert!(domains.is_trusted(&domain(1)) && domains.is_trusted(&domain(2)));
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn a_slow_domain_is_quick_again_as_soon_as_it_answers_quickly() {
    let domains = domains();
    let _slow = slow(&domains, 0..1).await;
    assert!(all_of(&domains, 0).len() < 100);
    domains.begin(page(0)).unwrap().mark_answered();
    assert_eq!(all_of(&domains, 0).len(), 100, "fetch permits alone bound it");
}

#[tokio::test(start_paused = true)]
async fn a_silent_domain_is_as_if_unknown_after_a_minute() {
    let domains = domains();
    drop(silent(&domains, 0..1).await);
    let pages = crowd(&domains).await;
    assert!(domains.begin(page(0)).is_err());
    drop(pages);
    advance(SLOW_TTL + SLOW_PAGE).await;
    assert!(domains.begin(page(0)).unwrap().needs_permit());
}

/// The pages of a domain that answers after this time and holds all its places: six.
async fn full(domains: &Arc<Domains>, took: Duration) -> VecDeque<UnderWay> {
    quick(domains, 0..1);
    let mut first = domains.begin(page(0)).unwrap();
    advance(took).await;
    first.mark_slow().unwrap();
    first.mark_answered();
    [first].into_iter().chain(all_of(domains, 0)).collect()
}

/// The times for which these URLs of a domain have to stay away that answers after `took`.
async fn put_off(took: Duration, count: usize) -> Vec<Duration> {
    let domains = domains();
    let _pages = full(&domains, took).await;
    (0..count).filter_map(|_| domains.begin(page(0)).err()).collect()
}

#[tokio::test(start_paused = true)]
async fn urls_that_are_put_off_come_back_as_fast_as_their_domain_answers() {
    let (fast, slow) = (put_off(2 * SLOW_PAGE, 20).await, put_off(12 * SLOW_PAGE, 20).await);
    let rate = |away: &[Duration]| 10.0 / (away[19] - away[9]).as_secs_f64();
    assert!((rate(&fast) - 3.0).abs() < 0.1, "six at once, two seconds each: {fast:?}");
    assert!((rate(&slow) - 0.5).abs() < 0.1, "six at once, twelve seconds each: {slow:?}");
    assert_eq!(put_off(12 * SLOW_PAGE, 1_000).await[999], MAX_DELAY);
}

#[tokio::test(start_paused = true)]
async fn urls_of_a_domain_of_which_nothing_is_known_return_with_the_first_of_them() {
    let domains = domains();
    let mut pages = full(&domains, 12 * SLOW_PAGE).await;
    let _others: Vec<_> = (1..200).filter_map(|number| domains.begin(page(number)).ok()).collect();
    advance(12 * SLOW_PAGE).await;
    pages.pop_front();
    let away: Vec<_> = (0..100).filter_map(|_| domains.begin(page(200)).err()).collect();
    assert!(away.len() > 90, "there is hardly a place for it");
    assert!(away[90] <= away[0] + 2 * SLOW_PAGE, "{away:?}");
}

#[tokio::test(start_paused = true)]
async fn a_place_is_left_for_each_url_that_is_about_to_return() {
    let domains = domains();
    let mut pages = full(&domains, 12 * SLOW_PAGE).await;
    let away = domains.begin(page(0)).err().unwrap();
    advance(away - SLOW_PAGE / 2).await;
    pages.pop_front();
    assert!(domains.begin(page(0)).is_err(), "the place is kept");
    assert!(domains.keeps_away(&page(0)).is_some());
    assert_eq!(domains.keeps_away(&page(1)), None, "other domains lose nothing by it");
    pages.push_back(domains.begin(returning(0)).unwrap());
    pages.pop_front();
    assert!(domains.begin(page(0)).is_ok(), "nobody else is due so soon");
}

#[tokio::test(start_paused = true)]
async fn a_place_is_not_kept_for_long_for_a_url_that_does_not_return() {
    let domains = domains();
    let mut pages = full(&domains, 12 * SLOW_PAGE).await;
    let away = domains.begin(page(0)).err().unwrap();
    advance(away + 3 * SLOW_PAGE).await;
    pages.pop_front();
    assert!(domains.begin(page(0)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_domain_that_is_quick_again_keeps_no_places() {
    let domains = domains();
    let mut pages = full(&domains, 12 * SLOW_PAGE).await;
    let away = domains.begin(page(0)).err().unwrap();
    pages.pop_front();
    domains.begin(page(0)).unwrap().mark_answered();
    advance(away - SLOW_PAGE / 2).await;
    assert_eq!(all_of(&domains, 0).len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_url_that_returns_in_vain_stays_ahead_of_those_put_off_after_it() {
    let domains = domains();
    let _pages = full(&domains, 12 * SLOW_PAGE).await;
    let away: Vec<_> = (0..100).filter_map(|_| domains.begin(page(0)).err()).collect();
    advance(away[0]).await;
    let again = domains.begin(returning(0)).err().unwrap();
    assert!(
        (MIN_DELAY..=4 * SLOW_PAGE).contains(&again),
        "{again:?}, where the last waits for {:?}",
        away[99]
    );
}

#[tokio::test(start_paused = true)]
async fn urls_of_a_slow_domain_begin_in_about_the_order_in_which_they_came() {
    const TICK: Duration = Duration::from_millis(100);
    let domains = domains();
    let mut pages = full(&domains, 2 * SLOW_PAGE).await;
    let began = Instant::now();
    // Ten URLs a second come for a minute, and three a second can begin.
    let mut came: Vec<(Instant, usize)> =
        (0..600).map(|number| (began + TICK * number as u32, number)).collect();
    let (mut order, mut returns) = (Vec::new(), [0; 600]);
    while !came.is_empty() {
        advance(TICK).await;
        while pages.front().is_some_and(|page| page.began.elapsed() >= 2 * SLOW_PAGE) {
            pages.pop_front().unwrap().mark_answered();
        }
        let due = came.extract_if(.., |(at, _)| at.elapsed() > Duration::ZERO).collect::<Vec<_>>();
        for (_, number) in due {
            let page = if returns[number] == 0 { page(0) } else { returning(0) };
            match domains.begin(page) {
                Ok(page) => {
                    pages.push_back(page);
                    order.push(number);
                }
                Err(away) => {
                    returns[number] += 1;
                    came.push((Instant::now() + away, number));
                }
            }
        }
    }
    let latest = order.iter().enumerate().map(|(place, number)| place.saturating_sub(*number)).max().unwrap();
    let most = returns.iter().max().unwrap();
    assert!(latest < 50 && *most <= 5, "one came {latest} places late, one returned {most} times");
}

#[tokio::test(start_paused = true)]
async fn a_domain_whose_file_has_begun_to_come_is_slow_and_gives_way_to_no_other() {
    let domains = domains();
    let mut file = domains.begin(page(0)).unwrap();
    domains.mark_begun(domain(0), Duration::from_millis(100));
    advance(SLOW_PAGE).await;
    file.mark_slow().unwrap();
    assert!(!domains.is_silent(&domain(0)) && !file.needs_permit());
}
