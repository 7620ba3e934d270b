//! Processes left by a program whose supervisor was killed. They have its id in their environment.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The variable with the id of one run of a program.
pub(crate) const ID: &str = "TRAWL_HANDLER_ID";

/// Maximum number of searches: each may miss a process that is just being started.
const MAX_SEARCHES: u32 = 20;

/// Kills the processes that have the id `token` in their environment. Blocks.
pub(crate) fn kill(token: &str) {
    for _ in 0..MAX_SEARCHES {
        let strays = find(token);
        if strays.is_empty() {
            return;
        }
        for stray in strays {
            // Errors mean that it is gone, or was killed before.
            let _ = kill_process(stray, Signal::KILL);
        }
        sleep(Duration::from_millis(5));
    }
}

fn find(token: &str) -> Vec<Pid> {
    let wanted = format!("{ID}={token}");
    let has_token = |pid: &Pid| {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(has_token).collect()
}
