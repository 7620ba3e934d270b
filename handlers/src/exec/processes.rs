//! The processes below one.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait};

/// A process below another.
pub(crate) struct Process {
    pub(crate) pid: Pid,
    threads: usize,
}

/// The resource usage of all processes below this one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Number of processes and threads.
    pub(super) processes: usize,
    /// Resident memory in bytes. Shared memory counts once for each process.
    pub(super) memory: u64,
}

/// Returns the resource usage of all processes below this one.
pub(super) fn usage() -> Usage {
    let page = rustix::param::page_size() as u64;
    let mut usage = Usage::default();
    for Process { pid, threads } in below(getpid()) {
        usage.processes += threads;
        usage.memory += resident_pages(pid) * page;
    }
    usage
}

/// Returns the number of processes and threads on the machine, at a cost that does not grow with it. 0 if unknown.
pub(super) fn of_machine() -> usize {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let total =
        load.split(' ').nth(3).and_then(|counts| counts.split_once('/')).map(|(_, total)| total.parse());
    total.and_then(Result::ok).unwrap_or_default()
}

/// Sends a signal to all processes below this one, and to the groups that they lead: a whole group gets it at once, and
/// cannot grow meanwhile.
pub(super) fn signal_all(signal: Signal) {
    for Process { pid, .. } in below(getpid()) {
        // Errors mean that it is gone by now, or leads no group.
        let _ = kill_process_group(pid, signal);
        let _ = kill_process(pid, signal);
    }
}

/// The result of reaping a process below this one.
pub(super) enum Reaped {
    /// This process has ended.
    One(Pid, WaitStatus),
    /// None has ended, for now.
    NoneYet,
    /// There are no processes below.
    NoneLeft,
}

/// Reaps one process that has ended.
pub(super) fn reap() -> Reaped {
    match wait(WaitOptions::NOHANG) {
        Ok(Some((pid, status))) => Reaped::One(pid, status),
        Ok(None) => Reaped::NoneYet,
        Err(_) => Reaped::NoneLeft,
    }
}

/// Returns all processes below `top`. A process that is just being started may be missing.
pub(crate) fn below(top: Pid) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut to_look_at = vec![top];
    while let Some(pid) = to_look_at.pop() {
        let (threads, children) = look_at(pid);
        to_look_at.extend(children);
        if pid != top {
            found.push(Process { pid, threads });
        }
    }
    found
}

/// Returns the number of threads of a process, and the children of all of them.
fn look_at(pid: Pid) -> (usize, Vec<Pid>) {
    let raw = pid.as_raw_pid();
    let threads: Vec<_> = fs::read_dir(format!("/proc/{raw}/task")).into_iter().flatten().flatten().collect();
    let mut children = Vec::new();
    for thread in &threads {
        let listed = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(listed.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    (threads.len(), children)
}

fn resident_pages(pid: Pid) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_pid())).unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default()
}
