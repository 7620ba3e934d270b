//! Programs, and the environment that they run in.

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

/// The value of `PATH` for programs if this process has none.
pub(crate) const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The program of a spider.
#[derive(Clone, Debug)]
pub struct Program {
    /// The spider's project.
    pub project: ProjectName,
    /// The spider.
    pub spider: SpiderName,
    /// The command, and its limits.
    pub handler: Handler,
    /// The working directory: the folder of the spider's file.
    pub folder: PathBuf,
    /// The supervisor of its runs.
    pub supervisor: Supervisor,
    /// Access of its runs to a proxy, if there is one.
    pub proxy: Option<Arc<dyn ProxyAccess>>,
    /// Whether its standard error is shown on this process's own, and not only in the log.
    pub shows_stderr: bool,
}

/// An executable that supervises programs.
#[derive(Clone, Debug)]
pub struct Supervisor(PathBuf);

impl Default for Supervisor {
    /// This executable, even if its file was replaced since it was started. Its `main` must call
    /// [`exec::run_if_called`].
    fn default() -> Self {
        Self("/proc/self/exe".into())
    }
}

impl Supervisor {
    /// Another executable whose `main` calls [`exec::run_if_called`].
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the command that starts a supervisor. The caller adds the order and the command to supervise.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.0);
        command.arg(exec::NAME).arg(exec::SUPERVISE);
        command
    }
}

impl Program {
    /// Returns its executable.
    ///
    /// # Errors
    /// If it cannot be run here.
    pub fn file(&self) -> Result<PathBuf, CannotRun> {
        file_of(&self.handler, &self.folder)
    }

    /// Admits a run to the proxy, if it is to use one. `task` is the task that the run is for, if it is for one.
    pub(crate) fn admission(&self, task: Option<&TaskView>) -> io::Result<Option<Admission>> {
        let proxy = self.proxy.as_ref().filter(|_| self.handler.proxy != ProxyUse::None);
        proxy.map(|proxy| proxy.admit(task)).transpose()
    }

    /// Returns the environment variables that are the same in every run.
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

/// Returns the executable of a handler's program, which runs in `folder`.
///
/// # Errors
/// If it cannot be run here.
pub fn file_of(handler: &Handler, folder: &Path) -> Result<PathBuf, CannotRun> {
    locate(&handler.run[0], folder, &variable("PATH", USUAL_PATH).to_string_lossy())
}

/// Returns a variable of this process's own environment.
pub(crate) fn variable(name: &str, usual: &str) -> OsString {
    std::env::var_os(name).filter(|value| !value.is_empty()).unwrap_or_else(|| usual.into())
}
