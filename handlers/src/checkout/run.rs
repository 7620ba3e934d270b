//! One command of taking a version, within its bounds.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use trawl_common::names::ProjectName;
use trawl_common::text::printable;

use super::folder_size::{self, MAX_BYTES};
use crate::exec::Report;
use crate::output;
use crate::program::{Supervisor, USUAL_PATH, variable};
use crate::supervised::{End, Launch};

/// Maximum memory of a command in bytes.
const MEMORY: u64 = 1 << 30;

/// Maximum size of a command's temporary files in bytes.
const DISK: u64 = 4 << 30;

/// Maximum number of lines, and of bytes of each, that are told of a command that failed.
const TOLD: (usize, usize) = (20, 400);

/// A command of a project.
pub(super) struct Command<'a> {
    pub(super) supervisor: &'a Supervisor,
    pub(super) project: &'a ProjectName,
    pub(super) file: &'a Path,
    pub(super) arguments: Vec<OsString>,
    /// The folder that it runs in.
    pub(super) folder: &'a Path,
    /// Variables of its environment, beside those of every command.
    pub(super) variables: Vec<(&'static str, OsString)>,
}

/// The bounds of a command, beside its memory.
pub(super) struct Bounds<'a> {
    pub(super) time: Duration,
    /// The folder whose size is bounded.
    pub(super) folder: Option<&'a Path>,
}

/// The reason why a command failed, with the end of what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    how: String,
    log: String,
}

impl Failed {
    pub(super) fn new(how: impl Into<String>) -> Self {
        Self { how: how.into(), log: String::new() }
    }

    /// Returns the failure of a command of this name.
    pub(super) fn within(name: &str, Self { how, log }: Self) -> Self {
        Self { how: format!("{name} {how}"), log }
    }

    fn from_end(how: String, output: &[u8], end: &End) -> Self {
        let written = [String::from_utf8_lossy(output), String::from_utf8_lossy(&end.stderr)].concat();
        let lines: Vec<String> = written
            .lines()
            .map(|line| printable(line, TOLD.1))
            .filter(|line| !line.trim().is_empty())
            .collect();
        let log = lines[lines.len().saturating_sub(TOLD.0)..].join("\n");
        Self { how, log }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.log.as_str() {
            "" => f.write_str(&self.how),
            log => write!(f, "{}:\n{log}", self.how),
        }
    }
}

/// Runs a command to its end. Returns the end of its output.
pub(super) async fn run(command: Command<'_>, bounds: &Bounds<'_>) -> Result<Vec<u8>, Failed> {
    let Command { supervisor, project, file, arguments, folder, variables } = command;
    let variables = [environment(), variables].concat();
    let launch = Launch {
        supervisor,
        name: project.as_str(),
        file,
        arguments,
        folder,
        variables: variables.iter().map(|(name, value)| (*name, value.as_os_str())).collect(),
        memory: MEMORY,
        disk: DISK,
        shows_stderr: false,
    };
    let (mut running, stdin, stdout) =
        launch.start().map_err(|error| Failed::new(format!("cannot be started: {error}")))?;
    // It is asked nothing.
    drop(stdin);
    let whole = async { tokio::join!(output::tail(stdout, None::<fn(&[u8])>), running.ended()) };
    let ended = tokio::select! {
        whole = timeout(bounds.time, whole) => whole.map_err(|_| format!("took longer than {:?}", bounds.time)),
        () = folder_size::exceeded(bounds.folder) => Err(format!("wrote more than {} GB", MAX_BYTES >> 30)),
    };
    let stopped = running.stop().await;
    match ended {
        Ok((output, end)) if end.report == Some(Report::Exited(0)) => Ok(output),
        Ok((output, end)) => Err(Failed::from_end(end.how(), &output, &end)),
        Err(how) => Err(Failed::from_end(how, &[], &stopped)),
    }
}

/// Returns the environment of every command.
fn environment() -> Vec<(&'static str, OsString)> {
    vec![
        ("PATH", variable("PATH", USUAL_PATH)),
        ("HOME", variable("HOME", "/")),
        ("LANG", variable("LANG", "C.UTF-8")),
    ]
}
