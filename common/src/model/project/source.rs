//! Where the code of a project comes from: a branch of a Git repository.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::as_text::{as_text, text};

/// Maximum length of a URL and of the name of a branch, in bytes.
const MAX_LENGTH: usize = 1024;

/// The schemes by which a repository can be fetched.
const SCHEMES: [&str; 3] = ["https", "ssh", "file"];

/// A branch of a Git repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The repository.
    pub clone_url: CloneUrl,
    /// The branch.
    pub branch: Branch,
}

/// A commit of a Git repository that workers are to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Wanted {
    /// The repository.
    pub clone_url: CloneUrl,
    /// The commit.
    pub commit: Commit,
}

/// The URL of a Git repository: `https`, `ssh` or `file`, without a password, which would stand in lists of processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CloneUrl(Arc<str>);

/// The error for a text that is no [`CloneUrl`], which it does not show: it may have a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the URL of a repository is https://…, ssh://… or file:///…, without a password: give the machine an SSH key, or a credential helper of git"
)]
pub struct NoCloneUrl;

/// The name of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Branch(Arc<str>);

/// The error for a text that is no [`Branch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a branch has letters, digits, `.`, `_`, `-` and `/`, as `main`")]
pub struct NoBranch;

/// The name of a commit: 40 or 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Commit(Arc<str>);

/// The error for a text that is no [`Commit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a commit is 40 or 64 hexadecimal digits")]
pub struct NoCommit;

impl CloneUrl {
    /// Returns the scheme.
    pub fn scheme(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }
}

impl FromStr for CloneUrl {
    type Err = NoCloneUrl;

    fn from_str(text: &str) -> Result<Self, NoCloneUrl> {
        let url = Url::parse(text).map_err(|_| NoCloneUrl)?;
        let is_plain = text.len() <= MAX_LENGTH && text.bytes().all(|byte| byte.is_ascii_graphic());
        // A user alone is the account of SSH; of HTTPS it may be a token.
        let has_secret = url.password().is_some() || url.scheme() == "https" && !url.username().is_empty();
        let is_option = url.username().starts_with('-') || url.authority().contains('%');
        let has_place = match url.scheme() {
            "file" => !url.has_host() && url.path().len() > 1,
            _ => url.host_str().is_some_and(|host| !host.starts_with('-')),
        };
        // Git knows schemes in lower case alone.
        let is_known = SCHEMES.iter().any(|scheme| text.starts_with(&format!("{scheme}://")));
        let fits = is_plain && !has_secret && !is_option && has_place && is_known;
        if fits { Ok(Self(text.into())) } else { Err(NoCloneUrl) }
    }
}

impl FromStr for Branch {
    type Err = NoBranch;

    fn from_str(text: &str) -> Result<Self, NoBranch> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
        let fits = (1..=MAX_LENGTH).contains(&text.len())
            && is_plain
            && !text.starts_with(['-', '/', '.'])
            && !text.ends_with(['/', '.'])
            && !text.contains("..")
            && !text.contains("//");
        if fits { Ok(Self(text.into())) } else { Err(NoBranch) }
    }
}

impl FromStr for Commit {
    type Err = NoCommit;

    fn from_str(text: &str) -> Result<Self, NoCommit> {
        let is_hash = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash { Ok(Self(text.to_ascii_lowercase().into())) } else { Err(NoCommit) }
    }
}

text!(CloneUrl, Branch, Commit);
as_text!(CloneUrl, Branch, Commit);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_named_by_a_url_without_a_password() {
        for fit in [
            "https://git.example/me/shop.git",
            "ssh://git@git.example:22/me/shop.git",
            "file:///srv/git/shop.git",
        ] {
            let url: CloneUrl = fit.parse().unwrap();
            assert_eq!((url.as_str(), url.scheme()), (fit, fit.split(':').next().unwrap()));
        }
        for wrong in [
            "",
            "git@git.example:me/shop.git",
            "http://git.example/shop.git",
            "git://git.example/shop.git",
            "HTTPS://git.example/shop.git",
            "ext::sh -c touch% /tmp/x",
            "--upload-pack=touch /tmp/x",
            "https://t0ken@git.example/shop.git",
            "https://me:s3cret@git.example/shop.git",
            "ssh://me:s3cret@git.example/shop.git",
            "ssh://-oProxyCommand=x/shop.git",
            "ssh://-oProxyCommand=x@git.example/shop.git",
            "ssh://%2doProxyCommand=x@git.example/shop.git",
            "file://",
            "file://host/shop.git",
            "https://git.example/a b",
            "https://git.example/\u{202e}",
        ] {
            let error = wrong.parse::<CloneUrl>().unwrap_err().to_string();
            assert!(!error.contains("s3cret") && !error.contains("t0ken"), "{wrong}");
        }
    }

    #[test]
    fn a_branch_is_no_option_and_no_other_ref() {
        for fit in ["main", "release/1.2", "a_b-c"] {
            assert!(fit.parse::<Branch>().is_ok(), "{fit}");
        }
        for wrong in
            ["", "-x", "--upload-pack=x", "a..b", "a//b", "/a", "a/", ".a", "a.", "a b", "a:b", "a~1", "é"]
        {
            assert!(wrong.parse::<Branch>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_commit_is_a_hash() {
        for length in [40, 64] {
            assert!("a1".repeat(length / 2).parse::<Commit>().is_ok());
        }
        for wrong in ["", "main", "a1b2", &"g".repeat(40), &"a".repeat(41)] {
            assert!(wrong.parse::<Commit>().is_err(), "{wrong}");
        }
    }
}
