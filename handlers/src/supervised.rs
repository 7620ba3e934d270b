//! One run of a command, with its supervisor.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::{Level, debug, enabled};
use trawl_common::handler::{Answer, Verdict};
use trawl_common::task::TaskView;
use trawl_common::text::printable;

use crate::exec::{GRACE, Order, Report};
use crate::items_file::{Folder, ItemsFile};
use crate::output;
use crate::program::{Program, Supervisor};
use crate::proxy::Admission;
use crate::strays;
use crate::usage::Usage;

/// How long a supervisor has to end its program beyond the program's own grace period.
const SLACK: Duration = Duration::from_secs(2);

/// How long the remaining pipe content is read after a supervisor is gone: it may have been killed, and an unknown
/// process may hold the pipes.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum length of a line of standard error in an error, in bytes.
const MAX_WORDS: usize = 300;

/// Maximum length of a line of standard error in the log, in bytes.
const MAX_LINE: usize = 4096;

/// A command to run under a supervisor, and its limits.
pub struct Launch<'a> {
    /// The supervisor of the run.
    pub supervisor: &'a Supervisor,
    /// The name of the program in the log.
    pub name: &'a str,
    /// The executable.
    pub file: &'a Path,
    /// The arguments of the executable.
    pub arguments: Vec<OsString>,
    /// The working directory.
    pub folder: &'a Path,
    /// The environment. The run also gets `TMPDIR`, a folder of its own that is removed at its end.
    pub variables: Vec<(&'a str, &'a OsStr)>,
    /// Maximum memory in bytes of the command and all its descendants.
    pub memory: u64,
    /// Maximum size in bytes of its own folder.
    pub disk: u64,
    /// Whether its standard error is shown on this process's own, and not only in the log.
    pub shows_stderr: bool,
}

/// A running command.
pub struct Supervised {
    child: Child,
    token: String,
    folder: PathBuf,
    /// The open folder, which stays valid whatever the program does to its path.
    opened: Folder,
    shows_stderr: bool,
    /// Completes with the end of standard error: after the supervisor's report, unless the supervisor is killed.
    stderr: Shared<BoxFuture<'static, Vec<u8>>>,
    /// Permits it to use the proxy.
    _admission: Option<Admission>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The supervisor's report; `None` if it was killed.
    pub(crate) report: Option<Report>,
    /// The last of what the program wrote to its standard error.
    pub(crate) stderr: Vec<u8>,
    /// Whether all of that has been shown already.
    pub(crate) is_shown: bool,
}

impl End {
    /// Describes the end in words that follow a program's name.
    pub fn how(&self) -> String {
        match &self.report {
            Some(report) if report.lacked_memory(&self.stderr) => {
                format!(
                    "{report}, without the memory that it asked for (one process may reserve twice [handler] memory)"
                )
            }
            Some(report) => report.to_string(),
            None => "lost its supervisor, which was killed".to_owned(),
        }
    }

    /// Returns the last line that the program wrote to its standard error.
    pub fn last_words(&self) -> Option<String> {
        let said = String::from_utf8_lossy(&self.stderr);
        said.lines().rfind(|line| !line.trim().is_empty()).map(|line| printable(line, MAX_WORDS))
    }
}

impl Launch<'_> {
    /// Starts the command. Returns its pipes for standard input and output.
    ///
    /// # Errors
    /// If the system starts no process, or gives it no folder.
    pub fn start(self) -> io::Result<(Supervised, ChildStdin, ChildStdout)> {
        let token = format!("{:032x}", rand());
        let folder = private_folder(&token)?;
        let opened = Folder::open(&folder).inspect_err(|_| remove(&folder))?;
        let order = Order {
            token: &token,
            parent: std::process::id(),
            memory: self.memory,
            disk: self.disk,
            folder: &folder,
        };
        let mut command = self.supervisor.command();
        command
            .args(order.to_arguments())
            .arg(self.file)
            .args(self.arguments)
            .env_clear()
            .envs(self.variables)
            .env(strays::ID, &token)
            .env("TRAWL_TMP", &folder)
            .env("TMPDIR", &folder)
            .current_dir(self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A signal from a terminal is for the worker, which ends its programs itself.
            .process_group(0);
        let mut child = command.spawn().inspect_err(|_| remove(&folder))?;
        let (stdin, stdout, stderr) = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => (stdin, stdout, stderr),
            _ => return Err(io::Error::other("the system gave no pipes")),
        };
        let (name, report, shows_stderr) = (self.name.to_owned(), token.clone(), self.shows_stderr);
        let line = move |line: &[u8]| show(&name, line, &report, shows_stderr);
        let line = (shows_stderr || enabled!(Level::DEBUG)).then_some(line);
        let stderr = tokio::spawn(output::tail(stderr, line)).map(Result::unwrap_or_default).boxed().shared();
        let running = Supervised { child, token, folder, opened, shows_stderr, stderr, _admission: None };
        Ok((running, stdin, stdout))
    }
}

impl Supervised {
    /// Starts a program with additional arguments and variables, either for one task or permanently. Returns its pipes
    /// for standard input and output.
    pub(crate) fn start(
        program: &Program,
        task: Option<&TaskView>,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        let file = program.file().map_err(io::Error::other)?;
        let admission = program.admission(task)?;
        let proxy = admission.as_ref().map(|admission| admission.variables(program.handler.proxy));
        let environment = program.environment();
        let own = environment.iter().map(|(name, value)| (*name, value.as_os_str()));
        let given = variables.iter().copied().chain(proxy.into_iter().flatten());
        let launch = Launch {
            supervisor: &program.supervisor,
            name: program.spider.as_str(),
            file: &file,
            arguments: program.handler.run[1..]
                .iter()
                .map(OsString::from)
                .chain(arguments.iter().map(OsString::from))
                .collect(),
            folder: &program.folder,
            variables: own.chain(given.map(|(name, value)| (name, OsStr::new(value)))).collect(),
            memory: program.handler.memory.as_u64(),
            disk: program.handler.disk.as_u64(),
            shows_stderr: program.shows_stderr,
        };
        let (mut running, stdin, stdout) = launch.start()?;
        running._admission = admission;
        Ok((running, stdin, stdout))
    }

    /// The program's own folder, which is deleted with it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes the file of items that an answer names, if the answer counts. Must be called before the program is
    /// stopped.
    pub(crate) fn take_items(&self, answer: &Answer) -> Option<Result<ItemsFile, String>> {
        let named = answer.items_file.as_ref().filter(|_| answer.verdict == Verdict::Done)?;
        Some(self.opened.take(&self.folder, named))
    }

    /// Returns the memory and the processor time of the program and all that it started.
    pub async fn usage(&self) -> Usage {
        let Some(supervisor) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else {
            return Usage::default();
        };
        spawn_blocking(move || Usage::of_run(supervisor)).await.unwrap_or_default()
    }

    /// Waits until the program and all that it started have ended. Its folder stays until `stop`. Cancelling the call
    /// loses nothing.
    pub async fn ended(&mut self) -> End {
        self.gone().await;
        let was_killed = |status: ExitStatus| !status.success();
        if self.child.try_wait().is_ok_and(|status| status.is_some_and(was_killed)) {
            self.clean_up().await;
        }
        let stderr = timeout(DRAIN_TIMEOUT, self.stderr.clone()).await.unwrap_or_default();
        let (report, stderr) = Report::new(&self.token, stderr);
        if report.is_none() {
            let _ = self.child.wait().await;
            self.clean_up().await;
        }
        End { report, stderr, is_shown: self.shows_stderr }
    }

    /// Waits until the supervisor has reported the program's end, or is gone. Cancelling the call loses nothing.
    pub(crate) async fn gone(&mut self) {
        tokio::select! {
            _ = self.stderr.clone() => {}
            _ = self.child.wait() => {}
        }
    }

    /// Cleans up after a supervisor that was killed.
    async fn clean_up(&self) {
        let (token, folder) = (self.token.clone(), self.folder.clone());
        let cleaning = spawn_blocking(move || {
            strays::kill(&token);
            remove(&folder);
        });
        let _ = cleaning.await;
    }

    /// Ends the program and all that it started: first by request, then by force. Deletes its folder.
    pub async fn stop(&mut self) -> End {
        self.ask_to_end();
        if timeout(GRACE + SLACK, self.child.wait()).await.is_err() {
            // The supervisor was stopped, or hangs: the program dies with it.
            let _ = self.child.start_kill();
        }
        self.ended().await
    }

    fn ask_to_end(&self) {
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for Supervised {
    /// The supervisor ends the program by itself.
    fn drop(&mut self) {
        self.ask_to_end();
    }
}

/// Logs a line of a program's standard error, or shows it on this process's own. The supervisor's report, which begins
/// with `token`, is not the program's.
fn show(name: &str, line: &[u8], token: &str, is_shown: bool) {
    if line.is_empty() || line.starts_with(token.as_bytes()) {
        return;
    }
    let line = printable(&String::from_utf8_lossy(line), MAX_LINE);
    if is_shown {
        // Nobody may be reading.
        let _ = writeln!(io::stderr(), "{line}");
    } else {
        debug!(name, line, "a program writes to its standard error");
    }
}

/// Creates a folder for the program that no other user may read.
fn private_folder(token: &str) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = std::env::temp_dir().join(format!("trawl-handler-{token}"));
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

fn remove(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
}

/// Returns a random number from the seed of the standard library's maps.
fn rand() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let half = || u128::from(RandomState::new().hash_one(std::process::id()));
    (half() << 64) | half()
}
