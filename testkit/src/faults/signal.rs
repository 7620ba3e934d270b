//! Signals to processes that this suite started.

use std::io;
use std::process::Stdio;

use tokio::process::Command;

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Stop,
    /// SIGCONT.
    Continue,
    /// SIGTERM.
    Term,
}

impl Signal {
    fn flag(self) -> &'static str {
        match self {
            Self::Kill => "-KILL",
            Self::Stop => "-STOP",
            Self::Continue => "-CONT",
            Self::Term => "-TERM",
        }
    }
}

/// Sends `signal` to a process. It is no error if the process has ended.
pub(crate) async fn send(process: u32, signal: Signal) -> io::Result<()> {
    send_to_all(&[process], signal).await
}

/// Sends `signal` to each of these processes, in this order.
pub(crate) async fn send_to_all(processes: &[u32], signal: Signal) -> io::Result<()> {
    if processes.is_empty() {
        return Ok(());
    }
    let mut kill = Command::new("kill");
    kill.args([signal.flag(), "--"]).args(processes.iter().map(u32::to_string));
    kill.stdin(Stdio::null()).stderr(Stdio::null());
    kill.status().await.map(drop)
}
