//! One dead letter, as commands list it.

use trawl_cli::count;
use trawl_common::frontier::dead_letter::Note;
use trawl_common::frontier::outcome::Reason;
use trawl_common::names::CrawlRef;
use trawl_common::web::url::CanonicalUrl;

/// A URL that failed, of some crawl, or a text that is none.
pub(crate) struct Failed {
    pub(crate) crawl: CrawlRef,
    pub(crate) url: String,
    pub(crate) note: Note,
}

impl Failed {
    /// The URL, unless it is none, or came in a message that was none.
    pub(crate) fn canonical(&self) -> Option<CanonicalUrl> {
        let is_invalid = self.note.cause.reason == Reason::Invalid;
        self.url.parse().ok().filter(|_| !is_invalid)
    }

    /// Its host; `-` if it is no URL.
    pub(crate) fn host(&self) -> String {
        self.canonical().map_or_else(|| "-".to_owned(), |url| url.host().to_string())
    }
}

/// `1 dead letter`, `1,234 dead letters`.
pub(super) fn dead_letters(number: u64) -> String {
    format!("{} dead letter{}", count(number), if number == 1 { "" } else { "s" })
}
