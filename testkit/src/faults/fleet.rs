//! The processes under test: workers that are always replaced, and producers that are run again until they succeed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::clock::Clock;
use super::fate::TIMEOUT;
use super::ledger::ReportedStats;
use super::signal::{Signal, send};
use super::timeline::Timeline;

/// Delay before a process is replaced, as compose restarts a worker and cron a producer.
const RESTART: Duration = Duration::from_millis(300);

/// The programs and their settings.
#[derive(Clone)]
pub struct Programs {
    /// The program `trawl`, which is producer and worker too.
    pub trawl: PathBuf,
    /// Their working directory, with `items/` and `logs/`.
    pub folder: PathBuf,
    /// Their whole environment.
    pub env: Vec<(String, String)>,
    /// The clock of the first worker's machine, if it is to be set.
    pub clock: Option<Clock>,
    /// Another build of `trawl`. The two builds alternate in each index except that of the first worker, so that each
    /// restart is an upgrade or a rollback.
    pub old: Option<PathBuf>,
    /// Further environment variables of the first worker.
    pub first: Vec<(String, String)>,
}

impl Programs {
    /// Returns a command of `trawl`.
    pub fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(&self.trawl);
        let env = self.env.iter().map(|(name, value)| (name, value));
        command.args(words).current_dir(&self.folder).env_clear().envs(env);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Returns the output of `trawl status` for a crawl, or `None` if it fails.
    pub async fn stats(&self, crawl: &str) -> Option<ReportedStats> {
        let status = self.command(["status", crawl, "--json"]).output().await.ok()?;
        serde_json::from_slice(&status.stdout).ok()
    }

    /// Returns the programs with the build that is due in an index where `earlier` processes ran before.
    fn alternate(&self, index: usize, earlier: usize) -> Self {
        let old = self.old.clone().filter(|_| (index + earlier) % 2 == 1);
        Self { trawl: old.unwrap_or_else(|| self.trawl.clone()), ..self.clone() }
    }

    /// Returns the programs with the build of a worker. The first worker always has the current build, for work that
    /// older builds cannot read.
    fn build(&self, index: usize, earlier: usize) -> Self {
        if index == 0 { self.clone() } else { self.alternate(index, earlier) }
    }

    /// Returns the command of the worker in an index where `earlier` workers ran before.
    fn worker(&self, index: usize, earlier: usize) -> Command {
        let mut command = self.build(index, earlier).command(["worker"]);
        command.env("TRAWL__FETCH__TIMEOUT", format!("{}s", TIMEOUT.as_secs()));
        if index == 0 {
            command.envs(self.first.iter().map(|(name, value)| (name, value)));
        }
        if let Some(clock) = self.clock.as_ref().filter(|_| index == 0) {
            command.envs(clock.env());
        }
        command
    }

    /// Starts a command whose output goes to `logs/<name>.log`.
    ///
    /// # Errors
    /// If it does not start.
    pub fn spawn(&self, mut command: Command, name: &str) -> io::Result<Child> {
        let log: PathBuf = self.folder.join("logs").join(OsString::from(format!("{name}.log")));
        let log = File::options().create(true).append(true).open(log)?;
        command.stdout(log.try_clone()?).stderr(log).spawn()
    }
}

/// The id of a running process, and its number among the processes of this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    process: u32,
    /// The number by which workers identify themselves to the site.
    pub number: usize,
}

impl Running {
    /// Sends it a signal.
    pub async fn signal(self, signal: Signal) -> io::Result<()> {
        send(self.process, signal).await
    }
}

/// The running process of each index.
#[derive(Default)]
struct Processes(Mutex<Vec<Option<Running>>>);

/// Workers and producers. All are killed when this is dropped.
pub struct Fleet {
    programs: Programs,
    timeline: Timeline,
    workers: Arc<Processes>,
    producers: Arc<Processes>,
    /// Whether a run of the producer is wanted, by crawl.
    producing: Vec<watch::Sender<bool>>,
    tasks: JoinSet<()>,
}

impl Fleet {
    /// Starts `workers` workers.
    ///
    /// # Errors
    /// If the folder for logs cannot be created.
    pub fn start(programs: Programs, workers: usize, timeline: Timeline) -> io::Result<Self> {
        std::fs::create_dir_all(programs.folder.join("logs"))?;
        let mut fleet = Self {
            programs,
            timeline,
            workers: Arc::default(),
            producers: Arc::default(),
            producing: Vec::new(),
            tasks: JoinSet::new(),
        };
        let numbers = Arc::new(AtomicUsize::new(1));
        *fleet.workers.0.lock() = vec![None; workers];
        for index in 0..workers {
            let supervisor = fleet.supervisor(&fleet.workers, index);
            fleet.tasks.spawn(work(supervisor, Arc::clone(&numbers)));
        }
        Ok(fleet)
    }

    /// Returns the programs that it runs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Runs a producer until a run succeeds, and again whenever [`produce_again`](Self::produce_again) is called.
    pub fn produce(&mut self, words: Vec<String>) {
        let producing = watch::Sender::new(true);
        let supervisor = self.supervisor(&self.producers, self.producing.len());
        self.producers.0.lock().push(None);
        self.producing.push(producing.clone());
        self.tasks.spawn(produce(supervisor, words, producing));
    }

    fn supervisor(&self, processes: &Arc<Processes>, index: usize) -> Supervisor {
        let (programs, timeline) = (self.programs.clone(), self.timeline.clone());
        Supervisor { programs, timeline, processes: Arc::clone(processes), index }
    }

    /// Returns all running workers.
    pub fn workers(&self) -> Vec<Running> {
        self.workers.0.lock().iter().flatten().copied().collect()
    }

    /// Returns a running worker, chosen by `pick`.
    pub fn worker(&self, pick: u64) -> Option<Running> {
        let running = self.workers();
        let index = (pick % running.len().max(1) as u64) as usize;
        running.get(index).copied()
    }

    /// Returns a producer, if one is running.
    pub fn producer(&self) -> Option<Running> {
        self.producers.0.lock().iter().flatten().copied().next()
    }

    /// Whether a run of each producer has succeeded.
    pub fn has_produced(&self) -> bool {
        self.producing.iter().all(|producing| !*producing.borrow())
    }

    /// Sets the clock of the first worker's machine to an offset of less than a minute.
    ///
    /// # Errors
    /// If its file cannot be written.
    pub fn set_clock(&self, pick: u64) -> io::Result<()> {
        self.programs.clock.as_ref().map_or(Ok(()), |clock| clock.set(pick))
    }

    /// Runs every producer once more, as cron would.
    pub fn produce_again(&self) {
        for producing in &self.producing {
            producing.send_replace(true);
        }
    }
}

/// Runs one process after the other in an index.
struct Supervisor {
    programs: Programs,
    timeline: Timeline,
    processes: Arc<Processes>,
    index: usize,
}

impl Supervisor {
    /// Runs a command to its end, registering the process while it runs. Returns how it ended.
    async fn keep(&self, command: Command, name: &str, number: usize) -> String {
        let mut child = match self.programs.spawn(command, name) {
            Ok(child) => child,
            Err(error) => return format!("not started: {error}"),
        };
        self.processes.0.lock()[self.index] = child.id().map(|process| Running { process, number });
        let ended = child.wait().await;
        self.processes.0.lock()[self.index] = None;
        ended.map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

/// Runs workers, each with a number of its own.
async fn work(supervisor: Supervisor, numbers: Arc<AtomicUsize>) {
    for earlier in 0.. {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let name = format!("worker-{number}");
        let mut command = supervisor.programs.worker(supervisor.index, earlier);
        command.env("TRAWL__FETCH__USER_AGENT", &name);
        let ended = supervisor.keep(command, &name, number).await;
        supervisor.timeline.note(format!("{name} ended: {ended}"));
        sleep(RESTART).await;
    }
}

/// Runs producers whenever one is wanted.
async fn produce(supervisor: Supervisor, words: Vec<String>, producing: watch::Sender<bool>) {
    let mut wanted = producing.subscribe();
    let mut before = String::new();
    for number in 1.. {
        let _ = wanted.wait_for(|wanted| *wanted).await;
        let programs = supervisor.programs.alternate(supervisor.index, number - 1);
        let command = programs.command(words.iter().map(String::as_str));
        let name = format!("producer-{}", supervisor.index + 1);
        let ended = supervisor.keep(command, &name, number).await;
        // While another producer's lease lasts, many runs end alike.
        if ended != before {
            supervisor.timeline.note(format!("{name}, run {number}, ended: {ended}"));
        }
        if ended == "exit status: 0" {
            producing.send_replace(false);
        } else {
            sleep(RESTART).await;
        }
        before = ended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_builds_a_worker_of_the_one_under_test_always_runs_and_each_other_restart_changes_the_build() {
        let programs = Programs {
            trawl: "new".into(),
            folder: PathBuf::new(),
            env: Vec::new(),
            clock: None,
            old: Some("old".into()),
            first: Vec::new(),
        };
        let builds = |index| [0, 1, 2].map(|earlier| programs.build(index, earlier).trawl);
        assert_eq!(builds(0), ["new", "new", "new"].map(PathBuf::from));
        assert_eq!(builds(1), ["old", "new", "old"].map(PathBuf::from));
        assert_eq!(builds(2), ["new", "old", "new"].map(PathBuf::from));
    }
}
