//! The process that stays with a program until all processes that it started have ended.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitStatus, getpid, getppid, getpriority_process, kill_process_group,
    set_child_subreaper, set_dumpable_behavior, setpriority_process,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::disk;
use super::order::Received;
use super::processes::{Reaped, of_machine, reap, signal_all, usage};
use super::{GRACE, MAX_FILES, MAX_PROCESSES, NAME, Report, START};

/// Time between checks of the worker, the processes and the memory.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Minimum time between checks of the program's folder. A check takes longer the more files there are, and checks take
/// no more than a tenth of the time.
const MIN_DISK_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum time between two checks of a program's folder, however slow the disk is.
const MAX_DISK_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// An increase of the machine's processes between two checks that may be a fork bomb.
const FORK_BOMB: usize = MAX_PROCESSES / 4;

/// Priority of the supervisor, above the program's if the system allows it: the program may have hundreds of processes.
const PRIORITY: i32 = -10;

/// Number of processes that are reaped between checks: there may be no end of them.
const REAP_BATCH: usize = 64;

/// Time after which a killed process is taken to be stuck in the kernel, and left behind.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// Supervises one run, and reports how it ended. Removes the program's folder at the end.
pub(super) fn run(arguments: Vec<OsString>) -> u8 {
    let Some(order) = Received::from_arguments(arguments) else { return super::usage() };
    // The program has the same user, and gets its own limits and secrets from here. This call cannot fail.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(whole_run(&order)),
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        say(&order, &Report::NotStarted(error.to_string()));
    }
    let _ = fs::remove_dir_all(&order.folder);
    0
}

/// 1. Runs the program until it ends, or has to end.
/// 2. Kills the processes left behind, and reports how the program ended.
/// 3. Waits until the worker has taken its files from the program's folder.
///
/// Fails only if the program was not started, for example because the system can start no further process.
async fn whole_run(order: &Received) -> io::Result<()> {
    let mut watch = Watch::begin(order)?;
    let program = start(order)?;
    let report = supervise(program, &mut watch).await;
    kill_all();
    say(order, &report);
    if report != Report::Stopped {
        watch.until_asked_to_end().await;
    }
    Ok(())
}

/// Reports how the program ended, and closes standard error.
fn say(order: &Received, report: &Report) {
    // Written in one piece. There may be no reader left.
    let _ = io::stderr().write_all(report.to_line(&order.token).as_bytes());
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = dup2_stderr(null);
    }
}

/// Waits until the program ends, or has to end.
async fn supervise(program: Pid, watch: &mut Watch<'_>) -> Report {
    let report = watch.until_end(program).await;
    if report == Report::Stopped {
        watch.end_gently().await;
    }
    report
}

/// Starts the program, and gives up this process' copies of its input and output, so that the other ends notice when
/// the program closes them.
fn start(order: &Received) -> io::Result<Pid> {
    set_child_subreaper(Some(getpid()))?;
    let priority = getpriority_process(None)?;
    // Needs a privilege that this process may not have.
    let _ = setpriority_process(None, PRIORITY);
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let child = Command::new("/proc/self/exe")
        .args([
            NAME,
            START,
            &getpid().as_raw_pid().to_string(),
            &order.memory.to_string(),
            &priority.to_string(),
        ])
        .args(&order.run)
        .spawn()?;
    // Cannot fail: all three are open.
    let _ = (dup2_stdin(&nothing), dup2_stdout(&nothing));
    // Not waited for through this handle: all processes are reaped in one place.
    Ok(Pid::from_child(&child))
}

/// The state of the periodic checks.
struct Watch<'a> {
    order: &'a Received,
    asked_to_end: Signals,
    something_ended: Signals,
    look: Interval,
    /// Number of processes on the machine at the last check.
    of_machine: usize,
    /// When the program's folder is to be checked next.
    disk: Instant,
}

impl<'a> Watch<'a> {
    fn begin(order: &'a Received) -> io::Result<Self> {
        let mut look = interval(CHECK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (asked_to_end, something_ended) =
            (signal(SignalKind::terminate())?, signal(SignalKind::child())?);
        let (of_machine, disk) = (of_machine(), Instant::now());
        Ok(Self { order, asked_to_end, something_ended, look, of_machine, disk })
    }

    /// Waits until the program has ended, or has to end. Checks take place on time even if processes end faster than
    /// they are reaped.
    async fn until_end(&mut self, program: Pid) -> Report {
        let mut last_look = Instant::now();
        loop {
            match reap_some(program) {
                Progress::Ended(status) => return report(status),
                Progress::More => tokio::task::yield_now().await,
                Progress::NoMore => tokio::select! {
                    _ = self.something_ended.recv() => {}
                    _ = self.asked_to_end.recv() => return Report::Stopped,
                    _ = self.look.tick() => {}
                },
            }
            if last_look.elapsed() >= CHECK_INTERVAL {
                if let Some(report) = self.must_end(program) {
                    return report;
                }
                last_look = Instant::now();
            }
        }
    }

    /// Waits until the worker asks for the end, or is gone.
    async fn until_asked_to_end(&mut self) {
        while !self.is_abandoned() {
            tokio::select! {
                _ = self.asked_to_end.recv() => return,
                _ = self.look.tick() => {}
            }
        }
    }

    /// Whether the worker is gone.
    fn is_abandoned(&self) -> bool {
        getppid().map(Pid::as_raw_pid) != Some(self.order.parent)
    }

    /// Returns why the program has to end, if it has to. If the number of processes on the machine has jumped since the
    /// last check, the program may be a fork bomb, which could outrun the check: it is stopped meanwhile.
    fn must_end(&mut self, program: Pid) -> Option<Report> {
        if self.is_abandoned() {
            return Some(Report::Stopped);
        }
        let of_machine = of_machine();
        let may_be_bomb = of_machine > self.of_machine + FORK_BOMB;
        self.of_machine = of_machine;
        if may_be_bomb {
            let _ = kill_process_group(program, Signal::STOP);
        }
        let report = self.exceeded();
        if may_be_bomb && report.is_none() {
            let _ = kill_process_group(program, Signal::CONT);
        }
        report
    }

    /// Returns the limit that is exceeded, if one is.
    fn exceeded(&mut self) -> Option<Report> {
        let usage = usage();
        if usage.processes > MAX_PROCESSES {
            Some(Report::Processes)
        } else if usage.memory > self.order.memory {
            Some(Report::Memory)
        } else if self.fills_disk() {
            Some(Report::Disk)
        } else {
            None
        }
    }

    /// Whether the program's folder exceeds its limits; `false` if the next check is not due yet.
    fn fills_disk(&mut self) -> bool {
        let begun = Instant::now();
        if begun < self.disk {
            return false;
        }
        let has_more = disk::has_more(&self.order.folder, self.order.disk, MAX_FILES);
        self.disk =
            Instant::now() + (10 * begun.elapsed()).clamp(MIN_DISK_CHECK_INTERVAL, MAX_DISK_CHECK_INTERVAL);
        has_more
    }

    /// Asks all processes to end, and waits up to [`GRACE`] until they have.
    async fn end_gently(&mut self) {
        signal_all(Signal::TERM);
        signal_all(Signal::CONT);
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline {
            match reap() {
                Reaped::One(..) => {}
                Reaped::NoneLeft => return,
                Reaped::NoneYet => tokio::select! {
                    _ = self.something_ended.recv() => {}
                    _ = self.look.tick() => {}
                },
            }
        }
    }
}

/// The result of reaping some processes.
enum Progress {
    /// The program has ended.
    Ended(WaitStatus),
    /// More processes may have ended.
    More,
    /// No more have ended, for now.
    NoMore,
}

/// Reaps some of the processes that have ended, orphans included.
fn reap_some(program: Pid) -> Progress {
    for _ in 0..REAP_BATCH {
        match reap() {
            Reaped::One(pid, status) if pid == program => return Progress::Ended(status),
            Reaped::One(..) => {}
            Reaped::NoneYet | Reaped::NoneLeft => return Progress::NoMore,
        }
    }
    Progress::More
}

fn report(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => Report::Exited(status),
        (None, Some(signal)) => Report::Killed(signal),
        (None, None) => Report::Unsupervised(format!("it ended in an unknown way ({status:?})")),
    }
}

/// Kills all processes left below this one until there are none, for at most [`KILL_TIMEOUT`].
fn kill_all() {
    let deadline = Instant::now() + KILL_TIMEOUT;
    while Instant::now() < deadline {
        signal_all(Signal::KILL);
        for _ in 0..REAP_BATCH {
            match reap() {
                Reaped::One(..) => {}
                Reaped::NoneLeft => return,
                Reaped::NoneYet => {
                    sleep(Duration::from_millis(1));
                    break;
                }
            }
        }
    }
}
