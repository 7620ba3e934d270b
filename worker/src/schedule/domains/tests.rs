use std::collections::VecDeque;
use std::ops::Range;

use futures::FutureExt;
use tokio::time::advance;
use trawl_web::Threads;

use super::put_off::{MAX_WAIT, MIN_WAIT};
use super::speed::SLOW_TTL;
use super::*;

/// Eight fetch permits, and twelve places.
fn domains() -> Arc<Domains> {
    let worker = settings::Worker { concurrency: 8, prefetch: 32, ..settings::Worker::default() };
    Arc::new(Domains::new(&worker, Arc::default()))
}

fn threads() -> Threads {
    Threads::start(1).unwrap()
}

fn domain(number: usize) -> HostKey {
    HostKey::from_text(&format!("{number}.example"))
}

/// A page of a domain that was not put off before.
fn page(number: usize) -> Candidate {
    Candidate { domain: domain(number), since: None }
}

/// A page of a domain whose URL returns after it was put off.
fn returning(number: usize, away: Away) -> Candidate {
    Candidate { since: Some(away.since), ..page(number) }
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
    assert!(domains.keeps_away(&page(1)).is_none());
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
    assert!((MIN_WAIT..=MAX_WAIT).contains(&away.wait), "{away:?}");
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
    let others = (0..5).map(|_| domains.begin(page(0)).unwrap());
    [first].into_iter().chain(others).collect()
}

/// Puts this many URLs off, of a domain that has no place. Returns how long each has to stay away.
fn put_off(domains: &Arc<Domains>, number: usize, count: usize) -> Vec<Away> {
    (0..count).filter_map(|_| domains.begin(page(number)).err()).collect()
}

/// Returns how long each of these URLs of a domain has to stay away that answers after `took`.
async fn waits(took: Duration, count: usize) -> Vec<Duration> {
    let domains = domains();
    let _pages = full(&domains, took).await;
    put_off(&domains, 0, count).iter().map(|away| away.wait).collect()
}

#[tokio::test(start_paused = true)]
async fn urls_that_are_put_off_come_back_as_fast_as_their_domain_answers() {
    let (fast, slow) = (waits(2 * SLOW_PAGE, 20).await, waits(6 * SLOW_PAGE, 20).await);
    assert_eq!((fast[11] - fast[5]).as_secs_f64().round(), 2.0, "six at once, two seconds each: {fast:?}");
    assert_eq!((slow[3] - slow[0]).as_secs_f64().round(), 3.0, "six at once, six seconds each: {slow:?}");
}

#[tokio::test(start_paused = true)]
async fn urls_that_are_put_off_stay_away_for_five_seconds_at_most_unless_there_are_thousands() {
    assert_eq!(waits(60 * SLOW_PAGE, 2_000).await[1_999], MAX_WAIT);
    assert_eq!(
        waits(60 * SLOW_PAGE, 20_000).await[19_999].as_secs_f64().round(),
        40.0,
        "500 return in a second"
    );
}

#[tokio::test(start_paused = true)]
async fn a_place_is_left_for_each_url_that_is_about_to_return() {
    let domains = domains();
    let mut pages = full(&domains, 12 * SLOW_PAGE).await;
    let away = domains.begin(page(0)).err().unwrap();
    advance(away.wait - SLOW_PAGE / 2).await;
    pages.pop_front();
    assert!(domains.begin(page(0)).is_err(), "the place is kept");
    assert!(domains.keeps_away(&page(0)).is_some());
    assert!(domains.keeps_away(&page(1)).is_none(), "other domains lose nothing by it");
    pages.push_back(domains.begin(returning(0, away)).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_place_is_not_kept_for_long_for_a_url_that_does_not_return() {
    let domains = domains();
    let mut pages = full(&domains, 12 * SLOW_PAGE).await;
    let away = domains.begin(page(0)).err().unwrap();
    advance(away.wait + 3 * SLOW_PAGE).await;
    pages.pop_front();
    assert!(domains.begin(page(0)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_domain_that_is_quick_again_keeps_no_places() {
    let domains = domains();
    let mut pages = full(&domains, 12 * SLOW_PAGE).await;
    let away = domains.begin(page(0)).err().unwrap();
    advance(away.wait).await;
    pages.pop_front();
    domains.begin(returning(0, away)).unwrap().mark_answered();
    assert_eq!(all_of(&domains, 0).len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_url_that_returns_too_early_stays_ahead_of_those_put_off_after_it() {
    let domains = domains();
    let mut pages = full(&domains, 12 * SLOW_PAGE).await;
    let away = put_off(&domains, 0, 40);
    advance(SLOW_PAGE).await;
    let again = domains.begin(returning(0, away[0])).err().unwrap();
    assert!(again.since == away[0].since && again.wait < away[1].wait, "{again:?}, after {:?}", away[1]);
    advance(again.wait - SLOW_PAGE / 2).await;
    pages.pop_front();
    assert!(domains.begin(returning(0, away[39])).is_err(), "the place is for the first");
    assert!(domains.begin(returning(0, away[0])).is_ok());
}

/// The visits of a domain to which ten URLs a second come.
struct Visits {
    /// The numbers of its URLs, in the order in which their pages began.
    order: Vec<usize>,
    /// The instants at which they did, since the first came.
    began: Vec<Duration>,
    /// Number of times for which each was put off.
    returns: Vec<u32>,
}

/// Visits a domain with this many URLs, which holds six places while slow; a page that begins at a time takes so long.
async fn visit(urls: usize, took: impl Fn(Duration) -> Duration) -> Visits {
    const TICK: Duration = Duration::from_millis(100);
    let domains = domains();
    let first = full(&domains, 2 * SLOW_PAGE).await.into_iter();
    let mut pages: Vec<_> = first.map(|page| (Instant::now() + 2 * SLOW_PAGE, page)).collect();
    let start = Instant::now();
    let mut waiting: Vec<_> = (0..urls).map(|number| (start + TICK * number as u32, number, None)).collect();
    let mut visits = Visits { order: Vec::new(), began: Vec::new(), returns: vec![0; urls] };
    while !waiting.is_empty() {
        advance(TICK).await;
        let now = Instant::now();
        pages.extract_if(.., |(ends, _)| *ends <= now).for_each(|(_, page)| page.mark_answered());
        let due: Vec<_> = waiting.extract_if(.., |(at, ..)| *at < now).collect();
        for (_, number, away) in due {
            let page = away.map_or_else(|| page(0), |away| returning(0, away));
            match domains.begin(page) {
                Ok(page) => {
                    pages.push((now + took(now - start), page));
                    visits.order.push(number);
                    visits.began.push(now - start);
                }
                Err(away) => {
                    visits.returns[number] += 1;
                    waiting.push((now + away.wait, number, Some(away)));
                }
            }
        }
    }
    visits
}

#[tokio::test(start_paused = true)]
async fn urls_of_a_slow_domain_begin_in_about_the_order_in_which_they_came() {
    let Visits { order, began, returns } = visit(600, |_| 2 * SLOW_PAGE).await;
    let late = order.iter().enumerate().map(|(place, number)| place.saturating_sub(*number)).max().unwrap();
    let (took, returns) = (began[599].as_secs(), *returns.iter().max().unwrap());
    assert!((190..=240).contains(&took), "three a second can begin, and it took {took} s");
    assert!(late < 25, "one came {late} places late");
    assert!(u64::from(returns) <= took / MAX_WAIT.as_secs() + 10, "one returned {returns} times");
}

#[tokio::test(start_paused = true)]
async fn a_domain_that_is_quick_again_has_no_url_waiting_for_longer_than_five_seconds() {
    let quick_from = 60 * SLOW_PAGE;
    let took = |began| if began < quick_from { 6 * SLOW_PAGE } else { SLOW_PAGE / 10 };
    let Visits { order, began, .. } = visit(600, took).await;
    let before = began.iter().filter(|began| **began < quick_from).count();
    assert!(before < 100 && order.len() == 600, "{before} began while it was slow");
    assert!(
        began[599] < quick_from + 6 * SLOW_PAGE + MAX_WAIT + SLOW_PAGE,
        "the last began at {:?}",
        began[599]
    );
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
