//! Private servers at fixed addresses, which a test may kill and bring back: the parts common to all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::process;
use super::signal::{self, Signal};

/// Maximum time for a server to come up, on a machine that is busy otherwise.
const START_TIMEOUT: Duration = Duration::from_secs(90);
/// Time between checks of something outside this process.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A folder with settings for all servers, as `scripts/servers` writes them. Dropping it stops the servers that run in
/// it.
pub struct PrivateServers {
    folder: PathBuf,
    guard: std::process::Child,
    /// The address of RabbitMQ.
    pub broker: SocketAddr,
    /// The address of its management API.
    pub management: SocketAddr,
    /// The address of Redis.
    pub store: SocketAddr,
    /// The address of PostgreSQL.
    pub database: SocketAddr,
}

impl PrivateServers {
    /// Finds free ports and writes settings into `folder`.
    ///
    /// # Errors
    /// If the script fails.
    pub async fn prepare(folder: &Path) -> io::Result<Self> {
        let printed = output(script(["settings".as_ref(), folder.as_os_str()])).await?;
        let port = |name: &str| {
            let line = printed.lines().find(|line| line.starts_with(&format!("export {name}=")));
            let after = line.and_then(|line| line.rsplit_once("127.0.0.1:"));
            let digits = after.map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
            let port: Option<u16> = digits.and_then(|digits| digits.parse().ok());
            port.map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
                .ok_or_else(|| io::Error::other(format!("scripts/servers named no {name}: {printed}")))
        };
        Ok(Self {
            broker: port("RABBITMQ_URL")?,
            management: port("RABBITMQ_MANAGEMENT_URL")?,
            store: port("REDIS_URL")?,
            database: port("POSTGRES_URL")?,
            guard: guard(folder)?,
            folder: folder.to_owned(),
        })
    }

    /// Returns the path of a folder in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the command that runs a server's program with these settings.
    pub(crate) fn program(&self, program: &str) -> Command {
        script(["run".as_ref(), self.folder.as_os_str(), program.as_ref()])
    }
}

impl Drop for PrivateServers {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // Its output does not matter: it stops the servers that are left.
        let _ = self.guard.wait();
    }
}

/// Starts a process that stops the servers of `folder` when its standard input closes. That happens however this
/// process ends.
fn guard(folder: &Path) -> io::Result<std::process::Child> {
    std::process::Command::new("sh")
        .args(["-c", "cat >/dev/null; exec \"$0\" stop \"$1\""])
        .arg(script_path())
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A signal that ends a test goes to the test's process group.
        .process_group(0)
        .spawn()
}

fn script_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/servers")
}

/// Returns a command of `scripts/servers` with these arguments.
pub(crate) fn script(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(script_path());
    command.args(words).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command to its end. Returns its output.
pub(crate) async fn output(mut command: Command) -> io::Result<String> {
    let output = command.output().await?;
    if !output.status.success() {
        let printed = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{command:?}: {}: {printed}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A server that may be running, with all processes that it started.
#[derive(Default)]
pub(crate) struct Server(Option<Child>);

impl Server {
    /// Starts it. Its log and the number of its group, for `scripts/servers stop`, are beside its folder.
    pub(crate) fn start(&mut self, mut command: Command, folder: &Path) -> io::Result<()> {
        let log = File::options().create(true).append(true).open(folder.with_extension("log"))?;
        command.process_group(0).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn()?;
        let group = child.id().ok_or_else(|| io::Error::other("a server ended at once"))?;
        fs::write(folder.with_extension("pid"), group.to_string())?;
        self.0 = Some(child);
        Ok(())
    }

    /// Sends a signal to all its processes, if it is running.
    pub(crate) async fn signal(&self, signal: Signal) -> io::Result<()> {
        signal::send_to_all(&self.processes(), signal).await
    }

    /// Kills it with `kill -9`, and waits until all its processes are gone: until then they may still write and listen.
    ///
    /// # Errors
    /// If a process does not end.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        let processes = self.processes();
        signal::send_to_all(&processes, Signal::Kill).await?;
        if let Some(mut child) = self.0.take() {
            child.wait().await?;
        }
        until_ok(|| async {
            match processes.iter().find(|process| process::is_alive(**process)) {
                None => Ok(()),
                Some(process) => Err(io::Error::other(format!("process {process} was killed, and lives"))),
            }
        })
        .await
    }

    fn processes(&self) -> Vec<u32> {
        self.0.as_ref().and_then(Child::id).map(process::with_descendants).unwrap_or_default()
    }
}

/// Repeats `call` until it succeeds.
///
/// # Errors
/// The last error of `call`, after [`START_TIMEOUT`].
pub(crate) async fn until_ok<T, F: Future<Output = io::Result<T>>>(call: impl Fn() -> F) -> io::Result<T> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        match call().await {
            Ok(value) => return Ok(value),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => sleep(POLL_INTERVAL).await,
        }
    }
}
