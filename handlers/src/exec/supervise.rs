//! The process that stays with a program until all that it started has ended.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
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

/// How often the worker, the processes and the memory are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How often the program's folder is looked at. A look takes longer the more is in it, and never more than a tenth of the time.
const LOOK_AT_DISK: Duration = Duration::from_millis(250);

/// A machine that has so many more processes than a look ago may have a fork bomb.
const MANY: usize = MAX_PROCESSES / 4;

/// Before the program, where the system lets it: it may have hundreds of processes.
const PRIORITY: i32 = -10;

/// So many processes are reaped before others are looked at: a storm of them may never end.
const REAPED_AT_ONCE: usize = 64;

/// What does not die within so long is stuck in the kernel, and is left to it.
const DEATH: Duration = Duration::from_secs(10);

/// Supervises one run, and says how it ended. The program's folder goes with this process.
pub(super) fn run(arguments: Vec<OsString>) -> u8 {
    let Some(order) = Received::of(arguments) else { return super::usage() };
    // The program is of the same user, and has its own limits and secrets from here. This fails nowhere.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(whole_run(&order)),
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        kill_all();
        say(&order, &Report::Unsupervised(error.to_string()));
    }
    let _ = fs::remove_dir_all(&order.folder);
    0
}

/// 1. Runs the program until it ends, or is to end.
/// 2. Kills what it left behind, and says how it ended.
/// 3. Waits until the worker has taken from the program's folder what it wants.
async fn whole_run(order: &Received) -> io::Result<()> {
    let mut watch = Watch::begin(order)?;
    let report = supervise(order, &mut watch).await?;
    kill_all();
    say(order, &report);
    if report != Report::Stopped {
        watch.until_asked_to_end().await;
    }
    Ok(())
}

/// Says how the program ended, which is the last that is said.
fn say(order: &Received, report: &Report) {
    // In one piece. Nobody may be left to read it.
    let _ = io::stderr().write_all(report.to_line(&order.token).as_bytes());
    if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = dup2_stderr(null);
    }
}

/// Runs the program until it ends, or is to end.
async fn supervise(order: &Received, watch: &mut Watch<'_>) -> io::Result<Report> {
    set_child_subreaper(Some(getpid()))?;
    let priority = getpriority_process(None)?;
    // Only some may.
    let _ = setpriority_process(None, PRIORITY);
    let program = start(order, priority)?;
    let report = watch.until_end(program).await;
    if report == Report::Stopped {
        watch.end_gently().await;
    }
    Ok(report)
}

/// Starts the program, and leaves its input and output to it alone: whoever writes or reads there is to notice when it closes them.
fn start(order: &Received, priority: i32) -> io::Result<Pid> {
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
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(OpenOptions::new().write(true).open("/dev/null")?)?;
    // Not waited for by this handle: all that ends below is reaped in one place.
    Ok(Pid::from_child(&child))
}

/// What a supervisor looks at.
struct Watch<'a> {
    order: &'a Received,
    asked_to_end: Signals,
    something_ended: Signals,
    look: Interval,
    /// How many processes the machine had at the last look.
    of_machine: usize,
    /// When the program's folder is to be looked at.
    disk: Instant,
}

impl<'a> Watch<'a> {
    fn begin(order: &'a Received) -> io::Result<Self> {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (asked_to_end, something_ended) =
            (signal(SignalKind::terminate())?, signal(SignalKind::child())?);
        let (of_machine, disk) = (of_machine(), Instant::now());
        Ok(Self { order, asked_to_end, something_ended, look, of_machine, disk })
    }

    /// Waits until the program has ended, or has to. It is looked at in its time also where processes end faster than they are reaped.
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
            if last_look.elapsed() >= LOOK {
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

    /// Why the program has to end, if it has to. Where the machine has many more processes than at the last look the program may be
    /// a fork bomb, with which nothing could keep up: it stands still while it is looked at.
    fn must_end(&mut self, program: Pid) -> Option<Report> {
        if self.is_abandoned() {
            return Some(Report::Stopped);
        }
        let of_machine = of_machine();
        let may_be_bomb = of_machine > self.of_machine + MANY;
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

    /// Which limit is exceeded, if one is.
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

    /// Whether the program's folder has more than it may, if that is to be looked at again.
    fn fills_disk(&mut self) -> bool {
        let begun = Instant::now();
        if begun < self.disk {
            return false;
        }
        let has_more = disk::has_more(&self.order.folder, self.order.disk, MAX_FILES);
        self.disk = Instant::now() + LOOK_AT_DISK.max(10 * begun.elapsed());
        has_more
    }

    /// Asks all processes to end, and waits for a while until they have.
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

/// What reaping has found.
enum Progress {
    /// The program has ended.
    Ended(WaitStatus),
    /// More processes may have ended.
    More,
    /// No more have, for now.
    NoMore,
}

/// Reaps some of what has ended, orphans included.
fn reap_some(program: Pid) -> Progress {
    for _ in 0..REAPED_AT_ONCE {
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

/// Kills all that is left below, until nothing is.
fn kill_all() {
    let deadline = Instant::now() + DEATH;
    while Instant::now() < deadline {
        signal_all(Signal::KILL);
        for _ in 0..REAPED_AT_ONCE {
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
