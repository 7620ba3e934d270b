//! What a spider's file says, as a crawl carries it.

use std::sync::Arc;

use super::FileHash;

/// The text of a spider's file. It is kept with a crawl where not every worker can be expected to have it: it was deployed, or whoever
/// started the crawl gave arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpiderText {
    text: Arc<str>,
    hash: FileHash,
}

impl SpiderText {
    /// The text as it is.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its hash.
    pub fn hash(&self) -> FileHash {
        self.hash
    }
}

impl From<String> for SpiderText {
    fn from(text: String) -> Self {
        Self { hash: FileHash::of(&text), text: text.into() }
    }
}
