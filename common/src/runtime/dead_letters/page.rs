//! The dead letters of a crawl, a page at a time.

use super::{Failed, Filter};
use crate::frontier::Key;
use crate::names::CrawlRef;
use crate::ports::{Control, Result};
use crate::time::UnixMs;

/// A page of dead letters, which may be empty although others follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The dead letters that pass the filter.
    pub dead_letters: Vec<Failed>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<u64>,
}

/// Returns the page of `crawl` at `cursor`, which is zero at first: of its failed URLs and tasks, and with the
/// last page of these, the texts that are no URLs. A dead letter may come on two pages, and none that was there
/// all the time is left out.
pub async fn page(control: &dyn Control, crawl: &CrawlRef, cursor: u64, filter: &Filter) -> Result<Page> {
    let read = control.failed(crawl, cursor).await?;
    let mut entries: Vec<_> = read.failed.into_iter().map(|(key, note)| (key.to_string(), note)).collect();
    if read.next.is_none() {
        entries.extend(control.invalid(crawl).await?);
    }
    let now = UnixMs::now();
    let all = entries.into_iter().map(|(url, note)| Failed { crawl: crawl.clone(), url, note });
    Ok(Page { dead_letters: all.filter(|failed| filter.takes(failed, now)).collect(), next: read.next })
}

/// Returns a crawl's dead letters for `text`: a URL in any form, a task's key, or the exact text that is neither.
pub async fn named(control: &dyn Control, crawl: &CrawlRef, text: &str) -> Result<Vec<Failed>> {
    let of = |url, note| Failed { crawl: crawl.clone(), url, note };
    let mut found = Vec::new();
    if let Ok(key) = text.parse::<Key>() {
        let note = control.failure(crawl, &key).await?;
        found.extend(note.map(|note| of(key.to_string(), note)));
    }
    let invalid = control.invalid(crawl).await?.into_iter().map(|(text, note)| of(text, note));
    found.extend(invalid.filter(|failed| failed.is_named(text)));
    Ok(found)
}

/// Removes dead letters of one crawl from its list for good. Returns the number removed.
pub async fn purge(control: &dyn Control, crawl: &CrawlRef, dead_letters: &[Failed]) -> Result<u64> {
    let keys: Vec<Key> = dead_letters.iter().filter_map(Failed::key).collect();
    let invalid = dead_letters.iter().filter(|failed| failed.key().is_none());
    let texts: Vec<String> = invalid.map(|failed| failed.url.clone()).collect();
    let mut purged = 0;
    if !keys.is_empty() {
        purged += control.purge(crawl, &keys).await?;
    }
    if !texts.is_empty() {
        purged += control.purge_invalid(crawl, &texts).await?;
    }
    Ok(purged)
}
