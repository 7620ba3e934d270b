//! Dead letters: what failed, and why.

use serde::{Deserialize, Serialize};

use crate::frontier::Key;
use crate::frontier::lane::Lane;
use crate::frontier::outcome::{Class, Reason};
use crate::names::{CrawlRef, WorkerId};
use crate::text::without_credentials;
use crate::time::UnixMs;

/// A dead letter, for people and other programs. Its text need not be a URL, which may be the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The URL, or the start of the text taken for one; printable, at most 8 KB.
    pub url: String,
    /// The crawl that it belonged to.
    pub crawl: CrawlRef,
    /// The cause.
    pub cause: Cause,
}

impl DeadLetter {
    /// Returns a dead letter for a text that is no URL, or no message. `error` says why, `worker` is the one that
    /// found it, if any. User and password in the text are left out, because many people read dead letters.
    pub fn invalid(text: String, crawl: CrawlRef, error: String, worker: Option<WorkerId>) -> Self {
        let cause = Cause { worker, ..Cause::new(Reason::Invalid, error, UnixMs::now()) };
        Self { url: without_credentials(&text), crawl, cause }
    }

    /// Returns the entry of it that a crawl's list keeps.
    pub fn note(&self) -> DeadLetterEntry {
        DeadLetterEntry::new(self.cause.clone())
    }
}

/// Why a URL came to no good end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The reason in one word.
    pub reason: Reason,
    /// The kind of the last failure.
    #[serde(flatten, with = "stored_class")]
    pub class: Option<Class>,
    /// The last HTTP status.
    pub status: Option<u16>,
    /// The last error, printable, at most 1 KB.
    pub error: String,
    /// Number of attempts.
    pub attempts: u32,
    /// The worker that gave up on it.
    pub worker: Option<WorkerId>,
    /// The time of the failure.
    pub failed_at: UnixMs,
}

/// The stored form of a class. Older programs don't know `crash`, and could not read the whole entry: they
/// find no class instead.
mod stored_class {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Class;

    #[derive(Serialize, Deserialize)]
    struct Stored {
        class: Option<Class>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        crash: bool,
    }

    pub(super) fn serialize<S: Serializer>(class: &Option<Class>, serializer: S) -> Result<S::Ok, S::Error> {
        let crash = *class == Some(Class::Crash);
        Stored { class: class.filter(|_| !crash), crash }.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(stored: D) -> Result<Option<Class>, D::Error> {
        let Stored { class, crash } = Stored::deserialize(stored)?;
        Ok(if crash { Some(Class::Crash) } else { class })
    }
}

impl Cause {
    /// Returns the cause of something that was never tried, with neither class, status nor worker.
    pub fn new(reason: Reason, error: impl Into<String>, failed_at: UnixMs) -> Self {
        Self { reason, class: None, status: None, error: error.into(), attempts: 0, worker: None, failed_at }
    }
}

/// An entry of a crawl's list of failed URLs: why the URL failed, and all that is needed to send it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterEntry {
    /// The cause.
    #[serde(flatten)]
    pub cause: Cause,
    /// The lane that it came through.
    pub lane: Lane,
    /// Number of links between the crawl's start and it.
    pub depth: u16,
    /// The page that linked to it, or the task that yielded it.
    pub referrer: Option<Key>,
}

impl DeadLetterEntry {
    /// Returns the entry of a URL of which only the cause is known.
    pub fn new(cause: Cause) -> Self {
        Self { cause, lane: Lane::default(), depth: 0, referrer: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(class: Option<Class>) -> Value {
        let cause = Cause { class, ..Cause::new(Reason::Final, "no", UnixMs(7)) };
        let note = DeadLetterEntry::new(cause);
        let text = serde_json::to_string(&note).unwrap();
        assert_eq!(serde_json::from_str::<DeadLetterEntry>(&text).unwrap(), note);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn an_older_program_can_read_every_entry() {
        let (parse, none, crash) = (written(Some(Class::Parse)), written(None), written(Some(Class::Crash)));
        assert_eq!((&parse["class"], parse.get("crash")), (&json!("parse"), None));
        assert_eq!((&none["class"], none.get("crash")), (&Value::Null, None));
        assert_eq!((&crash["class"], &crash["crash"]), (&Value::Null, &json!(true)));
    }
}
