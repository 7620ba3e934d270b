//! `[spiders]`: what a spider whose text came with a crawl may use of the machine that works for it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[spiders]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spiders {
    /// The folder below which such a spider's sinks write. It should hold nothing but items.
    pub sinks_dir: PathBuf,
    /// The environment variables that such a spider may name.
    #[serde(default)]
    pub variables: Vec<String>,
}

impl Default for Spiders {
    fn default() -> Self {
        Self { sinks_dir: "items".into(), variables: Vec::new() }
    }
}
