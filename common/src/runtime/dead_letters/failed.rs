//! One dead letter.

use crate::frontier::Key;
use crate::frontier::dead_letter::DeadLetterEntry;
use crate::frontier::outcome::Reason;
use crate::names::CrawlRef;

/// A failed URL, request or task of a crawl, or a text that is none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The crawl.
    pub crawl: CrawlRef,
    /// The URL, the key of the request or the task, or the text.
    pub url: String,
    /// The reason for the failure.
    pub note: DeadLetterEntry,
}

impl Failed {
    /// Returns the key of its record; `None` if the text is no key, or came in an invalid message.
    pub fn key(&self) -> Option<Key> {
        let is_invalid = self.note.cause.reason == Reason::Invalid;
        self.url.parse().ok().filter(|_| !is_invalid)
    }

    /// Returns its host; `-` if it is neither a URL nor a request.
    pub fn host(&self) -> String {
        let page = self.key().as_ref().and_then(Key::page);
        page.map_or_else(|| "-".to_owned(), |url| url.host().to_string())
    }

    /// Returns whether a person means this one by `text`.
    pub fn is_named(&self, text: &str) -> bool {
        text == self.url || text.parse::<Key>().is_ok_and(|key| key.as_str() == self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::dead_letter::Cause;
    use crate::time::UnixMs;

    #[test]
    fn a_request_has_the_host_of_its_url_and_a_task_has_none() {
        let host = |url: &str| {
            let crawl = CrawlRef::adhoc();
            let note = DeadLetterEntry::new(Cause::new(Reason::Retries, "503", UnixMs(0)));
            Failed { crawl, url: url.to_owned(), note }.host()
        };
        let digits = "0123456789abcdef0123456789abcdef";
        assert_eq!(host("https://a.example/x"), "a.example");
        assert_eq!(host(&format!("https://a.example:8443/x#request:{digits}")), "a.example");
        assert_eq!((host(&format!("task:{digits}")), host("no URL")), ("-".to_owned(), "-".to_owned()));
    }
}
