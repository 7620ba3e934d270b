//! What is run, and with what around it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::process::Command;
use trawl_common::names::{ProjectName, SpiderName};
use trawl_common::spider::{Handler, ProxyUse};
use trawl_common::task::TaskView;

use crate::exec;
use crate::locate::{CannotRun, locate};
use crate::proxy::{Admission, ProxyAccess};

/// Where programs are looked for if this process has no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The program of a spider.
#[derive(Clone, Debug)]
pub struct Program {
    /// Whose spider it is.
    pub project: ProjectName,
    /// The spider.
    pub spider: SpiderName,
    /// What to run, and its limits.
    pub handler: Handler,
    /// Where it runs: the folder of the spider's file.
    pub folder: PathBuf,
    /// What stands between it and this process.
    pub supervisor: Supervisor,
    /// What lets its runs use a proxy, if there is one.
    pub proxy: Option<Arc<dyn ProxyAccess>>,
}

/// The program that supervises others.
#[derive(Clone, Debug)]
pub struct Supervisor(PathBuf);

impl Default for Supervisor {
    /// This program, whatever has become of its file since it was started: one whose `main` calls [`exec::run_if_called`].
    fn default() -> Self {
        Self("/proc/self/exe".into())
    }
}

impl Supervisor {
    /// Another program whose `main` does so.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The command that supervises something: the order, and then what to run, are to be added.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command.arg(exec::NAME).arg(exec::SUPERVISE);
        command
    }
}

impl Program {
    /// Its file.
    ///
    /// # Errors
    /// It cannot be run here.
    pub fn file(&self) -> Result<PathBuf, CannotRun> {
        file_of(&self.handler, &self.folder)
    }

    /// Lets a run of it, for a task if that is for one, use the proxy.
    pub(crate) fn admission(&self, task: Option<&TaskView>) -> io::Result<Option<Admission>> {
        let proxy = self.proxy.as_ref().filter(|_| self.handler.proxy != ProxyUse::None);
        proxy.map(|proxy| proxy.admit(task)).transpose()
    }

    /// All of its environment but what differs from run to run.
    pub(crate) fn environment(&self) -> [(&'static str, OsString); 5] {
        [
            ("PATH", variable("PATH", USUAL_PATH)),
            ("HOME", variable("HOME", "/")),
            ("LANG", variable("LANG", "C.UTF-8")),
            ("TRAWL_PROJECT", self.project.as_str().into()),
            ("TRAWL_SPIDER", self.spider.as_str().into()),
        ]
    }
}

/// The file of a handler's program, which runs in `folder`.
///
/// # Errors
/// It cannot be run here.
pub fn file_of(handler: &Handler, folder: &Path) -> Result<PathBuf, CannotRun> {
    locate(&handler.run[0], folder, &variable("PATH", USUAL_PATH).to_string_lossy())
}

fn variable(name: &str, usual: &str) -> OsString {
    std::env::var_os(name).filter(|value| !value.is_empty()).unwrap_or_else(|| usual.into())
}
