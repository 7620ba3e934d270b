//! The supervisor of a program: this program, started again under a hidden name.
//!
//! It is started twice. The first process (`SUPERVISE`) stays: it adopts all that loses its parent below it (a child subreaper),
//! counts processes and memory, and ends when the program has ended, when it is asked to, or when the worker is gone. At its end it
//! kills all that is left below it, and says on standard error how the program ended. The second process (`START`) makes itself a
//! session of its own with its limits, and then becomes the program.
//!
//! Where the system can (Landlock, from Linux 6.12 on), the program can signal and look into nothing but what it started itself: neither
//! its supervisor nor the worker. The supervisor itself is no process that others of its user can look into.
//!
//! What no process can see to is its own death: where the supervisor is killed, the program dies with it (its parent-death signal),
//! and the worker looks for what that had started.

mod disk;
mod order;
mod processes;
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
/// The role of the second one.
pub(crate) const START: &str = "start";

/// How long a program that is asked to end may take before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How many processes and threads a program may have, itself included.
pub(crate) const MAX_PROCESSES: usize = 512;

/// How many files and folders a program may have in its own folder.
pub(crate) const MAX_FILES: usize = 100_000;

/// Does what a worker asked for, if this process was started as a supervisor; to be called first in `main`. `None` if it was not.
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

/// Whether the system keeps programs from stopping their supervisors, and so from what bounds them.
pub fn can_confine() -> bool {
    start::can_confine()
}

fn usage() -> u8 {
    eprintln!("{NAME}: only workers call this");
    2
}
