//! The text of a spider's file, as a crawl carries it.

use std::sync::Arc;

use super::FileHash;

/// The text of a spider's file. It is stored with a crawl if not every worker can be expected to have it, because
/// it was deployed, or because the crawl was started with arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpiderText {
    text: Arc<str>,
    hash: FileHash,
}

impl SpiderText {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns its hash.
    pub fn hash(&self) -> FileHash {
        self.hash
    }
}

impl From<String> for SpiderText {
    fn from(text: String) -> Self {
        Self { hash: FileHash::from_text(&text), text: text.into() }
    }
}
