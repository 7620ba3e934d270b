//! One dead letter.

use crate::frontier::Key;
use crate::frontier::dead_letter::Note;
use crate::frontier::outcome::Reason;
use crate::names::CrawlRef;

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

    /// Whether a person means this one by `text`.
    pub fn is_named(&self, text: &str) -> bool {
        text == self.url || text.parse::<Key>().is_ok_and(|key| key.as_str() == self.url)
    }
}
