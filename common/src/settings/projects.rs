//! `[projects]`: the code of projects, as it comes from Git.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::project::CloneUrl;

/// `[projects]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Projects {
    /// The folder for versions of projects' code. Without one, no code from Git is run on this machine.
    #[serde(default)]
    pub dir: Option<PathBuf>,
    /// The protocols by which it is fetched.
    pub protocols: Vec<Protocol>,
}

/// A protocol of Git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Protocol {
    /// HTTPS.
    Https,
    /// SSH.
    Ssh,
    /// A repository on this machine.
    File,
}

impl Default for Projects {
    fn default() -> Self {
        Self { dir: None, protocols: vec![Protocol::Https, Protocol::Ssh] }
    }
}

impl Projects {
    /// Returns whether a repository may be fetched by its protocol.
    pub fn allows(&self, url: &CloneUrl) -> bool {
        self.protocols.iter().any(|protocol| <&str>::from(protocol) == url.scheme())
    }

    /// Returns the protocols as git's `GIT_ALLOW_PROTOCOL` lists them.
    pub fn as_list(&self) -> String {
        self.protocols.iter().map(<&str>::from).collect::<Vec<_>>().join(":")
    }
}
