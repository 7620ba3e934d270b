//! The promises of every page history.

use std::collections::BTreeSet;
use std::sync::Arc;

use trawl_common::names::SpiderName;
use trawl_common::ports::{PageHistories, Result};
use trawl_common::spider::item::Change;
use trawl_common::spider::page_history::{PageAnswer, Tally, Validators, Visited};
use trawl_common::time::UnixMs;
use trawl_common::web::url::{CanonicalUrl, Fingerprint};

use super::{page, unique};

/// Makes a test of each promise of a page history; the fixture returns a guard and an `Arc<dyn PageHistories>`.
#[macro_export]
macro_rules! pages_conformance {
    ($fixture:path) => {
        $crate::promises! { $fixture, pages:
            what_was_noted_is_remembered_in_the_order_asked
            every_part_and_every_absence_survives
            the_last_note_is_the_one_remembered
            what_is_known_of_is_walked_and_was_not_visited
            what_is_forgotten_is_not_remembered
            spiders_remember_apart
            a_walk_meets_every_page
            a_walk_ends_though_its_pages_are_noted_meanwhile
        }
    };
}

fn spider() -> SpiderName {
    unique("spider").parse().expect("a unique name is a name")
}

fn visited(number: usize) -> Visited {
    Visited {
        fetched_at: UnixMs(1_700_000_000_000 + number as u64),
        validators: Validators::new(Some(&format!("\"{number}\"")), None),
        content: Fingerprint::from_text(&number.to_string()),
        change: Change::New,
        depth: number as u16,
        items: (number > 0)
            .then(|| Tally::one_each([None, Some("a 'book'\n".to_owned())].into_iter().take(number - 1))),
        answer: (number > 0).then(|| PageAnswer {
            status: 200 + number as u16,
            links: number as u32,
            landed: (number > 1).then(|| page("landed", number)),
        }),
    }
}

fn notes(site: &str, count: usize) -> Vec<(CanonicalUrl, Visited)> {
    (0..count).map(|number| (page(site, number), visited(number))).collect()
}

/// Visits are returned in the order of the URLs asked for, and `None` for URLs that were never noted.
pub async fn what_was_noted_is_remembered_in_the_order_asked(pages: &Arc<dyn PageHistories>) -> Result<()> {
    const COUNT: usize = 1_200;
    let (spider, site) = (spider(), unique("site"));
    let even: Vec<_> = notes(&site, COUNT).into_iter().step_by(2).collect();
    pages.note(&spider, &even).await?;
    let urls: Vec<CanonicalUrl> = (0..COUNT).rev().map(|number| page(&site, number)).collect();
    let expected: Vec<_> =
        (0..COUNT).rev().map(|number| (number % 2 == 0).then(|| visited(number))).collect();
    assert!(pages.look(&spider, &urls).await? == expected);
    assert_eq!(pages.look(&spider, &[]).await?, []);
    Ok(())
}

/// Validators survive as servers write them, each with and without the other.
pub async fn every_part_and_every_absence_survives(pages: &Arc<dyn PageHistories>) -> Result<()> {
    let (spider, site) = (spider(), unique("site"));
    let date = "Sat, 21 Nov 2026 15:45:29 GMT";
    let long = "x".repeat(1024);
    let validators = [
        (None, None),
        (Some("W/\"a b\""), None),
        (None, Some(date)),
        (Some("\"\u{fc}' -- \\ \u{1f600}\""), Some(date)),
        (Some(&*long), Some(&*long)),
    ];
    let mut all = Vec::new();
    for (number, (etag, date)) in validators.into_iter().enumerate() {
        for (at, change) in [Change::New, Change::Changed, Change::Unchanged].into_iter().enumerate() {
            let validators = Validators::new(etag, date);
            let full = Visited { validators, change, depth: u16::MAX, ..visited(number) };
            all.push((page(&site, 3 * number + at), full));
        }
    }
    pages.note(&spider, &all).await?;
    for (url, visited) in all {
        assert_eq!(pages.look(&spider, &[url]).await?, [Some(visited)]);
    }
    Ok(())
}

/// The last note of a page replaces earlier ones, however often it is noted.
pub async fn the_last_note_is_the_one_remembered(pages: &Arc<dyn PageHistories>) -> Result<()> {
    let (spider, url) = (spider(), page(&unique("site"), 0));
    for number in [1, 2, 2] {
        pages.note(&spider, &[(url.clone(), visited(number))]).await?;
        assert_eq!(pages.look(&spider, std::slice::from_ref(&url)).await?, [Some(visited(number))]);
    }
    assert_eq!(pages.walk(&spider, 0).await?.pages, [(url, 2)]);
    Ok(())
}

/// A page that is only known is walked, and was not visited until it is noted. Knowing it again does not change its
/// note.
pub async fn what_is_known_of_is_walked_and_was_not_visited(pages: &Arc<dyn PageHistories>) -> Result<()> {
    let (spider, url) = (spider(), page(&unique("site"), 0));
    for _ in 0..2 {
        pages.know(&spider, &[(url.clone(), 7)]).await?;
        assert_eq!(pages.look(&spider, std::slice::from_ref(&url)).await?, [None]);
        assert_eq!(pages.walk(&spider, 0).await?.pages, [(url.clone(), 7)]);
    }
    pages.note(&spider, &[(url.clone(), visited(3))]).await?;
    pages.know(&spider, &[(url.clone(), 7)]).await?;
    assert_eq!(pages.look(&spider, std::slice::from_ref(&url)).await?, [Some(visited(3))]);
    assert_eq!(pages.walk(&spider, 0).await?.pages, [(url, 3)]);
    pages.know(&spider, &[]).await
}

/// A forgotten page is not remembered, and may be noted again.
pub async fn what_is_forgotten_is_not_remembered(pages: &Arc<dyn PageHistories>) -> Result<()> {
    let (spider, site) = (spider(), unique("site"));
    let urls: Vec<CanonicalUrl> = (0..3).map(|number| page(&site, number)).collect();
    pages.note(&spider, &notes(&site, 3)).await?;
    for _ in 0..2 {
        pages.forget(&spider, &urls[..2]).await?;
        assert_eq!(pages.look(&spider, &urls).await?, [None, None, Some(visited(2))]);
    }
    pages.forget(&spider, &[]).await?;
    pages.note(&spider, &notes(&site, 1)).await?;
    assert_eq!(pages.look(&spider, &urls[..1]).await?, [Some(visited(0))]);
    Ok(())
}

/// Spiders have separate histories, the default spider too.
pub async fn spiders_remember_apart(pages: &Arc<dyn PageHistories>) -> Result<()> {
    let site = unique("site");
    let url = page(&site, 0);
    let spiders = [spider(), spider(), SpiderName::default()];
    for (number, spider) in spiders.iter().enumerate() {
        pages.note(spider, &[(url.clone(), visited(number))]).await?;
    }
    pages.forget(&spiders[0], std::slice::from_ref(&url)).await?;
    let mut found = Vec::new();
    for spider in &spiders {
        found.extend(pages.look(spider, std::slice::from_ref(&url)).await?);
    }
    assert_eq!(found, [None, Some(visited(1)), Some(visited(2))]);
    assert_eq!(pages.walk(&spiders[0], 0).await?.pages, []);
    Ok(())
}

/// A walk returns every page of its spider, visited or not, and of no other.
pub async fn a_walk_meets_every_page(pages: &Arc<dyn PageHistories>) -> Result<()> {
    const COUNT: usize = 1_700;
    let (spider, other, site) = (spider(), self::spider(), unique("site"));
    pages.note(&other, &notes(&site, COUNT)).await?;
    let (known, noted): (Vec<_>, Vec<_>) =
        notes(&site, COUNT).into_iter().partition(|(_, visited)| visited.depth % 2 == 0);
    pages.note(&spider, &noted).await?;
    let known: Vec<(CanonicalUrl, u16)> =
        known.into_iter().map(|(url, visited)| (url, visited.depth)).collect();
    pages.know(&spider, &known).await?;
    pages.note(&other, &notes(&unique("site"), COUNT)).await?;
    let mut met = BTreeSet::new();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let walk = pages.walk(&spider, at).await?;
        met.extend(walk.pages);
        cursor = walk.next;
    }
    assert_eq!(met, (0..COUNT).map(|number| (page(&site, number), number as u16)).collect());
    Ok(())
}

/// A walk ends although its pages are noted meanwhile, as by workers while a producer walks.
pub async fn a_walk_ends_though_its_pages_are_noted_meanwhile(pages: &Arc<dyn PageHistories>) -> Result<()> {
    const COUNT: usize = 1_200;
    let (spider, site) = (spider(), unique("site"));
    pages.note(&spider, &notes(&site, COUNT)).await?;
    let mut met = BTreeSet::new();
    let mut parts = 0;
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        let walk = pages.walk(&spider, at).await?;
        let seen: Vec<_> = walk.pages.into_iter().map(|(url, _)| (url, visited(parts))).collect();
        pages.note(&spider, &seen).await?;
        met.extend(seen.into_iter().map(|(url, _)| url));
        cursor = walk.next;
        parts += 1;
        assert!(parts < COUNT, "it walks in a circle");
    }
    assert_eq!(met.len(), COUNT);
    Ok(())
}
