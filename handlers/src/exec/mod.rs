//! The supervisor of a program: this executable, started again under a hidden name.
//!
//! It is started twice. The first process (`SUPERVISE`) stays: it adopts every orphan below it (as a child subreaper),
//! counts processes and memory, and ends when the program has ended, when it is asked to, or when the worker is gone.
//! At its end it kills all processes left below it, and reports on standard error how the program ended. The second
//! process (`START`) creates a session of its own, sets its limits, and then becomes the program.
//!
//! If the system supports it (Landlock, from Linux 6.12 on), the program can signal and inspect only the processes
//! that it started itself, not its supervisor or the worker. Other processes of the same user cannot inspect the
//! supervisor.
//!
//! No process can clean up after its own death: if the supervisor is killed, the program dies with it (its parent-death
//! signal), and the worker looks for the processes that the program had started.

pub(crate) mod disk;
mod order;
pub(crate) mod processes;
mod report;
mod start;
mod supervise;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) use order::Order;
pub(crate) use report::Report;

/// The hidden name.
pub(crate) const NAME: &str = "handler-exec";
/// The role of the first process.
pub(crate) const SUPERVISE: &str = "supervise";
/// The role of the second process.
pub(crate) const START: &str = "start";

/// Time a program is given to end after it is asked to, before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Maximum number of processes and threads of a program, itself included.
pub(crate) const MAX_PROCESSES: usize = 512;

/// Maximum number of files and folders in a program's own folder.
pub(crate) const MAX_FILES: usize = 100_000;

/// Runs as a supervisor if this process was started as one, and returns the exit code; otherwise returns `None`. Must
/// be called first in `main`.
pub fn run_if_called() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != NAME {
        return None;
    }
    let role = arguments.next()?;
    let rest: Vec<OsString> = arguments.collect();
    let code = match role.to_str() {
        Some(SUPERVISE) => supervise::run(rest),
        Some(START) => start::run(rest),
        _ => usage(),
    };
    Some(ExitCode::from(code))
}

/// Whether the system can keep programs from signalling their supervisors, which enforce their limits.
pub fn can_confine() -> bool {
    start::can_confine()
}

fn usage() -> u8 {
    eprintln!("{NAME}: only workers call this");
    2
}
