//! Projects that people have made, and runners.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::shown::{Text, Time};

/// All projects.
#[derive(Deserialize)]
pub(crate) struct MadeProjects {
    pub(crate) projects: Vec<MadeProject>,
}

/// A project.
#[derive(Deserialize)]
pub(crate) struct MadeProject {
    pub(crate) project: String,
    pub(crate) spiders: Vec<String>,
    pub(crate) secret: bool,
    pub(crate) clone_url: Option<Text>,
    pub(crate) branch: Option<Text>,
    pub(crate) commit: Option<Text>,
    /// Absent in a list.
    #[serde(default)]
    pub(crate) machines: Vec<MachineVersion>,
}

/// The result of a machine with the commit of a project.
#[derive(Deserialize)]
pub(crate) struct MachineVersion {
    pub(crate) machine: Text,
    pub(crate) at: Time,
    /// Why the machine does not run the commit.
    pub(crate) error: Option<String>,
}

/// All runners.
#[derive(Deserialize)]
pub(crate) struct Runners {
    pub(crate) runners: Vec<Runner>,
}

/// A runner.
#[derive(Deserialize)]
pub(crate) struct Runner {
    pub(crate) runner: String,
    pub(crate) fingerprint: String,
    pub(crate) asked: Time,
    pub(crate) working: bool,
    /// `assign` or `submit` by project.
    pub(crate) access: BTreeMap<String, String>,
}

impl MachineVersion {
    /// The lines of the error, safe to show.
    pub(crate) fn lines(&self) -> Vec<Text> {
        self.error.iter().flat_map(|error| error.lines()).map(Text::from).collect()
    }
}
