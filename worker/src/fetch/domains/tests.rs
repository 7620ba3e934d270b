use std::ops::Range;

use futures::FutureExt;
use tokio::time::advance;
use trawl_web::Threads;

use super::state::{APART, AWAY, CLOSE, LONGEST};
use super::*;

/// Eight fetch permits, and twelve slow permits.
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

/// A page of each of these domains, which have answered, and are slow.
async fn slow(domains: &Arc<Domains>, numbers: Range<usize>) -> Vec<UnderWay> {
    let mut pages = Vec::new();
    for number in numbers {
        domains.begin(domain(number)).unwrap().is_answered();
        pages.push(slow_page(domains, number).await.unwrap());
    }
    pages
}

/// A page that takes more than a second.
async fn slow_page(domains: &Arc<Domains>, number: usize) -> Result<UnderWay, Duration> {
    let mut page = domains.begin(domain(number))?;
    advance(SLOW).await;
    page.is_slow().map(|()| page)
}

#[tokio::test(start_paused = true)]
async fn slow_pages_give_up_their_permits_and_leave_half_of_them_to_quick_domains() {
    let domains = domains();
    domains.begin(domain(100)).unwrap().is_answered();
    let slow = slow(&domains, 0..12).await;
    assert!(slow.iter().all(|page| !page.needs_permit()));
    let unknown: Vec<_> = (20..24).map(|number| domains.begin(domain(number)).unwrap()).collect();
    assert!(domains.begin(domain(101)).is_err(), "nobody knows whether it is quick");
    assert!(domains.begin(domain(100)).is_ok());
    drop(unknown);
    assert!(domains.begin(domain(101)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn domains_of_which_nothing_is_known_have_all_permits_while_no_page_is_slow() {
    let domains = domains();
    let pages: Vec<_> = (0..8).map(|number| domains.begin(domain(number)).unwrap()).collect();
    assert!(pages.iter().all(UnderWay::needs_permit));
    assert!(domains.begin(domain(8)).is_err());
    drop(pages);
    let _slow = slow(&domains, 0..2).await;
    assert_eq!((10..20).map_while(|number| domains.begin(domain(number)).ok()).collect::<Vec<_>>().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn slow_domains_have_as_many_slow_permits_as_they_leave_to_others() {
    let domains = domains();
    let mut pages = slow(&domains, 0..1).await;
    while let Ok(page) = domains.begin(domain(0)) {
        pages.push(page);
    }
    assert_eq!(pages.len(), 6, "half of the slow permits");
    assert_eq!(domains.keeps_away(&domain(0)), Some(AWAY + APART), "one was put off already");
    assert_eq!(domains.keeps_away(&domain(1)), None);
    pages.extend(slow(&domains, 1..4).await);
    assert!(domains.begin(domain(1)).is_ok());
    assert!(domains.begin(domain(0)).is_err());
}

#[tokio::test(start_paused = true)]
async fn no_page_of_a_domain_is_given_up_that_is_alone() {
    let domains = domains();
    let mut pages: Vec<_> = (0..8).map(|_| domains.begin(domain(0)).unwrap()).collect();
    advance(SLOW).await;
    assert!(pages.iter_mut().all(|page| page.is_slow().is_ok()));
    assert_eq!(pages.iter().filter(|page| page.needs_permit()).count(), 2, "six have slow permits");
    assert!(domains.begin(domain(1)).is_ok(), "there are permits for others");
}

#[tokio::test(start_paused = true)]
async fn of_pages_that_prove_slow_without_a_slow_permit_a_quarter_of_the_permits_is_kept_and_the_others_are_given_up()
 {
    let domains = domains();
    domains.begin(domain(100)).unwrap().is_answered();
    let _slow = slow(&domains, 0..12).await;
    let stuck = [slow_page(&domains, 102).await.unwrap(), slow_page(&domains, 103).await.unwrap()];
    assert!(stuck.iter().all(UnderWay::needs_permit));
    for number in [100, 101] {
        assert_eq!(slow_page(&domains, number).await.err(), Some(AWAY));
    }
    assert_eq!(domains.begin(domain(104)).map(|page| page.needs_permit()).ok(), Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_slow_domain_that_has_not_answered_yet_has_few_slow_permits() {
    let domains = domains();
    let mut pages = Vec::new();
    while let Ok(page) = slow_page(&domains, 0).await {
        pages.push(page);
    }
    assert_eq!(pages.len(), FEW);
    pages[0].is_answered();
    assert!(domains.begin(domain(0)).is_ok());
}

/// A page of each of these domains, which never answer.
async fn silent(domains: &Arc<Domains>, numbers: Range<usize>) -> Vec<UnderWay> {
    let mut pages: Vec<_> = numbers.map(|number| domains.begin(domain(number)).unwrap()).collect();
    advance(SLOW).await;
    assert!(pages.iter_mut().all(|page| page.is_slow().is_ok()));
    pages
}

#[tokio::test(start_paused = true)]
async fn the_last_quarter_of_the_slow_permits_is_for_domains_that_have_not_been_tried() {
    let domains = domains();
    let mut pages = silent(&domains, 0..4).await;
    pages.extend(silent(&domains, 4..8).await);
    assert!(domains.begin(domain(0)).is_ok());
    pages.extend(silent(&domains, 8..9).await);
    assert!(domains.begin(domain(0)).is_err(), "it was tried");
    pages.extend(silent(&domains, 9..12).await);
    assert!(pages.iter().all(|page| !page.needs_permit()));
}

#[tokio::test(start_paused = true)]
async fn where_all_slow_permits_are_taken_the_oldest_first_try_gives_way_to_another() {
    let domains = domains();
    let mut pages = Vec::new();
    for first in [0, 4, 8] {
        pages.extend(silent(&domains, first..first + 4).await);
    }
    let (of_first, of_second) = (pages[0].domain.clone(), pages[1].domain.clone());
    assert!(!slow_page(&domains, 20).await.unwrap().needs_permit());
    let away = pages[0].gives_way(&threads()).await;
    assert!((AWAY..LONGEST).contains(&away), "{away:?}");
    drop(pages.remove(0));
    assert!(domains.state().slow.of(&of_first) == 0 && domains.state().slow.of(&of_second) == 1);
    assert_eq!(domains.slow(), 11, "one was given up, and the one that took its permit is over");
}

#[tokio::test(start_paused = true)]
async fn where_first_tries_have_taken_all_slow_permits_one_gives_way_to_a_slow_domain_that_has_answered() {
    let domains = domains();
    slow(&domains, 20..21).await;
    let mut pages = Vec::new();
    for first in [0, 4, 8] {
        pages.extend(silent(&domains, first..first + 4).await);
    }
    assert_eq!(domains.keeps_away(&domain(20)), None);
    let few: Vec<_> = (0..FEW).map(|_| domains.begin(domain(20)).unwrap()).collect();
    assert!(domains.keeps_away(&domain(20)).is_some());
    assert!(pages[..FEW].iter_mut().all(|page| page.gives_way(&threads()).now_or_never().is_some()));
    assert!(few.iter().all(|page| !page.needs_permit()));
}

#[tokio::test(start_paused = true)]
async fn a_first_try_does_not_give_way_at_once_nor_when_its_domain_has_answered() {
    let domains = domains();
    let mut pages = silent(&domains, 0..4).await;
    for page in &pages {
        page.is_answered();
    }
    pages.extend(silent(&domains, 4..8).await);
    pages.extend(silent(&domains, 8..12).await);
    let late = silent(&domains, 20..21).await;
    assert!(pages[..4].iter_mut().all(|page| page.gives_way(&threads()).now_or_never().is_none()));
    assert!(pages[4].gives_way(&threads()).now_or_never().is_some());
    assert!(!late[0].needs_permit());
}

#[tokio::test(start_paused = true)]
async fn beside_slow_pages_a_domain_of_which_nothing_is_known_begins_with_one_page() {
    let domains = domains();
    let pages: Vec<_> = (0..8).map_while(|_| domains.begin(domain(0)).ok()).collect();
    assert_eq!(pages.len(), 8);
    drop(pages);
    let _slow = slow(&domains, 1..2).await;
    let pages: Vec<_> = (0..8).map_while(|_| domains.begin(domain(0)).ok()).collect();
    assert_eq!(pages.len(), 1);
    assert!(domains.begin(domain(2)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn once_threads_were_kept_busy_only_a_domain_is_trusted_that_is_quick() {
    let domains = domains();
    let first = domains.begin(domain(0)).unwrap();
    assert!(domains.is_trusted(&domain(0)));
    let second = domains.begin(domain(0)).unwrap();
    assert!(!domains.is_trusted(&domain(0)), "two pages at once");
    first.is_answered();
    assert!(domains.is_trusted(&domain(0)));
    domains.kept_busy(domain(1));
    assert!(domains.is_trusted(&domain(0)) && !domains.is_trusted(&domain(1)));
    assert!(!domains.is_trusted(&domain(2)));
    advance(WARY).await;
    assert!(domains.is_trusted(&domain(1)) && domains.is_trusted(&domain(2)));
    drop(second);
}

#[tokio::test(start_paused = true)]
async fn a_slow_domain_is_quick_again_when_its_pages_have_been_quick_for_a_minute() {
    let domains = domains();
    slow(&domains, 0..1).await.remove(0).is_answered();
    domains.begin(domain(0)).unwrap().is_answered();
    assert!(matches!(domains.speed(&domain(0)), Some(Speed::Slow(_))));
    advance(REMEMBERED + SLOW).await;
    domains.begin(domain(0)).unwrap().is_answered();
    assert_eq!(domains.speed(&domain(0)), Some(Speed::Quick));
}

#[tokio::test(start_paused = true)]
async fn urls_that_are_put_off_come_back_one_after_the_other() {
    let domains = domains();
    let _slow = slow(&domains, 0..12).await;
    let mut away = Vec::new();
    for _ in 0..2_000 {
        away.extend(domains.begin(domain(0)).err());
    }
    assert_eq!((away[0], away[1], away[1_999]), (AWAY, AWAY + APART, LONGEST));
    assert_eq!(domains.begin(domain(1)).err(), Some(AWAY), "those of another come between them");
    assert_eq!(domains.begin(domain(1)).err(), Some(AWAY + APART * 2));
    advance(LONGEST).await;
    assert_eq!(domains.begin(domain(0)).err(), Some(AWAY));
    let _first = domains.begin(domain(50)).unwrap();
    let unknown = [(); 2].map(|()| domains.begin(domain(50)).err());
    assert_eq!(unknown, [Some(AWAY), Some(AWAY + CLOSE)], "it soon shows how fast it is");
}
