//! Projects: which spiders belong together, and the secret that only their programs are given.

mod hook;
mod key;
mod sealed;
mod secret;
mod source;
mod version_report;

use std::collections::BTreeSet;

pub use hook::{HookSecret, NoPush, push};
pub use key::{NoSealingKey, SealingKey};
pub use sealed::{NotOpened, NotSealed, SealedSecret};
pub use secret::{MAX_SECRET_BYTES, NoProjectSecret, ProjectSecret};
use serde::{Deserialize, Serialize};
pub use source::{Branch, CloneUrl, Commit, NoBranch, NoCloneUrl, NoCommit, Source, Wanted};
pub use version_report::{Failure, Machine, VersionReport, VersionResult};

use crate::names::{ProjectName, SpiderName};
use crate::time::UnixMs;

/// A project as people have made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its name.
    pub name: ProjectName,
    /// When it was made.
    pub created: UnixMs,
    /// Its spiders; none of them is another project's.
    pub spiders: BTreeSet<SpiderName>,
    /// Whether it has a secret.
    pub has_secret: bool,
    /// The source of its code, if that is Git.
    pub source: Option<Source>,
    /// The commit that workers are to run.
    pub wanted: Option<Wanted>,
}

/// A project without its spiders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectCode {
    /// When it was made.
    pub created: UnixMs,
    /// The source of its code, if that is Git.
    pub source: Option<Source>,
    /// The commit that workers are to run.
    pub wanted: Option<Wanted>,
    /// Its secret, if it has one, or the error if that cannot be read.
    pub secret: Result<Option<SealedSecret>, NotSealed>,
}

/// The part of a project that a machine needs to run the programs of its spiders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The project.
    pub project: ProjectName,
    /// Its secret.
    pub secret: GrantedSecret,
    /// The version of its code that is to run, if that comes from Git.
    pub wanted: Option<Wanted>,
}

/// The secret of a project, as one machine gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantedSecret {
    /// There is none.
    None,
    /// The secret.
    Given(ProjectSecret),
    /// It is kept from this machine, for this reason: programs that need it do not run here.
    Denied(String),
}
