//! `[secrets]`: the key that seals the secrets of projects.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::project::SealingKey;
use crate::small_file;

/// Maximum size of the file of the key.
const MAX_KILOBYTES: u16 = 1;

/// `[secrets]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    /// The file with the key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
}

/// The reason why there is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("secrets.key_file: {0}")]
pub struct NoKeyInFile(String);

impl Secrets {
    /// Reads the key from its file; `None` if the settings name none.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or holds no key.
    pub fn key(&self) -> Result<Option<SealingKey>, NoKeyInFile> {
        self.key_file.as_deref().map(read).transpose()
    }
}

fn read(path: &Path) -> Result<SealingKey, NoKeyInFile> {
    let failed = |why: &dyn std::fmt::Display| NoKeyInFile(format!("{}: {why}", path.display()));
    let text = small_file::read(path, MAX_KILOBYTES).map_err(|error| failed(&error))?;
    text.parse().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_in_the_file_and_an_error_names_that_and_not_its_content() {
        assert_eq!(Secrets::default().key(), Ok(None));
        let file = tempfile::NamedTempFile::new().unwrap();
        let secrets = Secrets { key_file: Some(file.path().to_owned()) };
        std::fs::write(file.path(), "12".repeat(32)).unwrap();
        assert!(secrets.key().unwrap().is_some());
        std::fs::write(file.path(), "s3cret").unwrap();
        let error = secrets.key().unwrap_err().to_string();
        assert!(error.contains(&*file.path().to_string_lossy()) && !error.contains("s3cret"), "{error}");
        let missing = Secrets { key_file: Some("/nowhere/key".into()) };
        assert!(missing.key().unwrap_err().to_string().starts_with("secrets.key_file: /nowhere/key: "));
    }
}
