//! The dead letters of a crawl, a page at a time.

use super::Filter;
use crate::frontier::Key;
use crate::frontier::dead_letter::Note;
use crate::frontier::outcome::Reason;
use crate::names::CrawlRef;
use crate::ports::{Control, Result};
use crate::time::UnixMs;

/// A URL or a task that failed, of some crawl, or a text that is neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The URL, the task's key, or the text.
    pub url: String,
    /// Why it failed.
    pub note: Note,
}

impl Failed {
    /// What names it, unless it is neither, or came in a message that was none.
    pub fn key(&self) -> Option<Key> {
        let is_invalid = self.note.cause.reason == Reason::Invalid;
        self.url.parse().ok().filter(|_| !is_invalid)
    }

    /// Its host; `-` if it is no URL.
    pub fn host(&self) -> String {
        let key = self.key();
        key.as_ref().and_then(Key::url).map_or_else(|| "-".to_owned(), |url| url.host().to_string())
    }
}

/// A page of dead letters, which may be empty although others follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Those that fit.
    pub letters: Vec<Failed>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

/// The page of `crawl` at `cursor`, which is zero at first: of its URLs and tasks that failed, and with the last of these, the texts that
/// are no URLs. A letter may come on two pages, and none is left out that was there all the time.
pub async fn page(control: &dyn Control, crawl: &CrawlRef, cursor: u64, filter: &Filter) -> Result<Page> {
    let read = control.failed(crawl, cursor).await?;
    let mut entries: Vec<_> = read.failed.into_iter().map(|(key, note)| (key.to_string(), note)).collect();
    if read.next.is_none() {
        entries.extend(control.invalid(crawl).await?);
    }
    let now = UnixMs::now();
    let all = entries.into_iter().map(|(url, note)| Failed { crawl: crawl.clone(), url, note });
    Ok(Page { letters: all.filter(|failed| filter.takes(failed, now)).collect(), next: read.next })
}

/// What a crawl's list says of `text`: a URL in any form, a task's key, or the very text that is neither.
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

/// Takes dead letters of one crawl out of its list for good. Returns how many were in it.
pub async fn purge(control: &dyn Control, crawl: &CrawlRef, letters: &[Failed]) -> Result<u64> {
    let keys: Vec<Key> = letters.iter().filter_map(Failed::key).collect();
    let invalid = letters.iter().filter(|failed| failed.key().is_none());
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
