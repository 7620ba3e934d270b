//! The process that becomes the program.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::str::FromStr;

use landlock::{CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setpriority_process, setrlimit,
    setsid,
};

/// The unit of the memory that a process may reserve, in bytes.
const PART: u64 = 64 << 20;

/// Becomes the program; returns only on failure, with the status that shells use for it.
pub(super) fn run(arguments: Vec<OsString>) -> u8 {
    let mut arguments = arguments.into_iter();
    let (Some(supervisor), Some(memory), Some(priority), Some(program)) =
        (number(arguments.next()), number(arguments.next()), number(arguments.next()), arguments.next())
    else {
        return super::usage();
    };
    if let Err(error) = bound(supervisor, memory, priority) {
        eprintln!("{} cannot be started within its limits: {error}", program.display());
        return 126;
    }
    let error = Command::new(&program).args(arguments).exec();
    eprintln!("{} cannot be started: {error}{}", program.display(), advice(&error));
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

fn number<T: FromStr>(argument: Option<OsString>) -> Option<T> {
    argument?.to_str()?.parse().ok()
}

/// 1. A session of its own: no terminal, and one group that can be ended at once.
/// 2. Dies with its supervisor.
/// 3. Takes the priority of the worker, not that of the supervisor.
/// 4. Writes no core file, reserves at most twice the memory that it may use, and is the first to be killed when the
///    system is short of memory.
/// 5. Can signal and trace only processes that it starts itself, if the system supports that.
fn bound(supervisor: i32, memory: u64, priority: i32) -> Result<(), Box<dyn Error>> {
    setsid()?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().map(Pid::as_raw_pid) != Some(supervisor) {
        return Err("its supervisor is gone".into());
    }
    setpriority_process(None, priority)?;
    let limit = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, limit(0))?;
    setrlimit(Resource::Data, limit(reservable(memory)))?;
    // Systems without this file work without it.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    confine()?;
    Ok(())
}

/// Returns the memory that a process may reserve if it may use `memory` bytes: at least twice that. Chromium reserves
/// it in whole units, and its pages crash if the limit is not a multiple of one.
fn reservable(memory: u64) -> u64 {
    memory.saturating_mul(2).div_ceil(PART).saturating_mul(PART)
}

/// Puts this process and all that it starts into a Landlock domain, which no signal and no ptrace(2) can leave: they
/// cannot reach the supervisor, which enforces the limits, the worker, or the programs of other tasks. Setuid programs
/// no longer gain rights. Older systems support a part of that, or nothing.
fn confine() -> Result<(), RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    ruleset.scope(Scope::Signal)?.create()?.restrict_self()?;
    Ok(())
}

/// Whether the system can prevent programs from signalling their supervisors.
pub(super) fn can_confine() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal).and_then(Ruleset::create).is_ok()
}

fn advice(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => ": does its first line name an interpreter that is not there?",
        Some(Errno::TOOBIG) => ": the arguments in `run` are too long",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_may_reserve_is_twice_its_memory_in_whole_parts() {
        assert_eq!(reservable(1_000_000_000), 30 * PART);
        assert_eq!(reservable(1 << 30), 2 << 30);
        assert_eq!(reservable(1), PART);
        assert_eq!(reservable(u64::MAX), u64::MAX);
    }
}
