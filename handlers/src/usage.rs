//! The memory and the processor time of a run, for operators. Its limits are its supervisor's own.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

use crate::exec::processes::{Process, below};

/// The memory and the processor time of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory in bytes, in which what processes share counts once (PSS).
    pub memory: u64,
    /// Processor time so far, with that of processes that have ended.
    pub cpu: Duration,
}

impl Usage {
    /// Returns the usage of the run with this supervisor. Reads files of the system, so it blocks.
    pub(crate) fn of_run(supervisor: Pid) -> Self {
        let own = Self { memory: 0, cpu: cpu(supervisor) };
        let processes = below(supervisor).into_iter();
        processes.fold(own, |sum, Process { pid, .. }| Self {
            memory: sum.memory + memory(pid),
            cpu: sum.cpu + cpu(pid),
        })
    }
}

/// Returns the memory of a process; without what it shares, if the system does not say with how many.
fn memory(pid: Pid) -> u64 {
    let read = |file| fs::read_to_string(format!("/proc/{}/{file}", pid.as_raw_pid())).unwrap_or_default();
    pss(&read("smaps_rollup")).unwrap_or_else(|| private(&read("statm")))
}

/// Returns the proportional memory that `/proc/<pid>/smaps_rollup` names, in bytes.
fn pss(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the memory that `/proc/<pid>/statm` names and that is not shared, in bytes.
fn private(statm: &str) -> u64 {
    let mut pages = statm.split(' ').skip(1).map_while(|pages| pages.parse::<u64>().ok());
    let (resident, shared) = (pages.next().unwrap_or_default(), pages.next().unwrap_or_default());
    resident.saturating_sub(shared) * rustix::param::page_size() as u64
}

/// Returns the processor time of a process and of its children that have ended.
fn cpu(pid: Pid) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap_or_default();
    let ticks = ticks(&stat) as f64 / rustix::param::clock_ticks_per_second() as f64;
    Duration::from_secs_f64(ticks)
}

/// Returns the processor time that `/proc/<pid>/stat` names, in ticks of the clock.
fn ticks(stat: &str) -> u64 {
    // The name of the program, which may have any character, ends with the last bracket.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_ascii_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_of_a_process_is_read() {
        assert_eq!(pss("55d0-7ffd ---p 0 00:00 0 [rollup]\nRss:  2000 kB\nPss:  1200 kB\n"), Some(1_228_800));
        assert_eq!((pss(""), private("")), (None, 0));
        let page = rustix::param::page_size() as u64;
        assert_eq!(private("900 500 200 1 0 300 0\n"), 300 * page);
        assert_eq!(ticks("7 (odd ) (name) S 1 7 7 0 -1 0 1 2 3 4 10 20 3 4 20 0 1 0\n"), 37);
        assert_eq!(ticks(""), 0);
    }
}
