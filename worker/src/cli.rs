//! The command `worker`: runs until it is asked to stop.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;
use trawl_backends::fleet;
use trawl_backends::webhooks::{SpiderWebhooks, Webhooks};
use trawl_cli::{Fail, Global, Outcome, Signals, metrics, trace};
use trawl_common::exit::Exit;
use trawl_common::health::Health;
use trawl_common::names::WorkerId;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;

use crate::{RunError, run};

/// A worker's own flags.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Fetch N pages at once
    #[arg(long, value_name = "N")]
    concurrency: Option<u16>,
}

/// Take URLs from the queues, fetch and extract them, and run jobs, until asked to stop
#[derive(Parser)]
#[command(name = "worker", version, long_version = trawl_cli::version())]
struct Program {
    #[command(flatten)]
    args: Args,
    #[command(flatten)]
    global: Global,
}

/// The main function of the program `worker`; `trawl worker` is the same.
pub fn main() -> ExitCode {
    let Program { args, global } = Program::parse();
    trawl_cli::main("worker", global.color, args.run(global))
}

impl Args {
    /// Reads the settings, connects, and works until SIGINT or SIGTERM, or until the worker is drained.
    pub async fn run(self, global: Global) -> Outcome {
        let mut source = global.source();
        if let Some(concurrency) = self.concurrency {
            source.set("worker.concurrency", concurrency);
        }
        let settings = global.load(&source)?;
        advise(&settings);
        let signals = Signals::listen().map_err(Fail::run)?;
        let health = Arc::<Health>::default();
        let is_connected = Arc::new(AtomicBool::new(false));
        let (of_worker, may_begin) = (Arc::clone(&health), Arc::clone(&is_connected));
        let trouble = move || match may_begin.load(Ordering::Relaxed) {
            true => of_worker.trouble(),
            false => Some("connecting to the servers".to_owned()),
        };
        let _metrics = metrics::serve(&settings.metrics, trouble).await?;
        let _traces = trace::start(&settings.tracing, "trawl-worker")?;
        let webhooks = Webhooks::new(&settings)?;
        let id = WorkerId::of_this_machine();
        let ports = tokio::select! {
            () = signals.stop().cancelled() => return Ok(Exit::Ok),
            connected = fleet::connect(&settings, &id) => connected?,
        };
        is_connected.store(true, Ordering::Relaxed);
        let folder = Folder::new(&settings);
        let stop = signals.stop().child_token();
        let (jobs_settings, jobs_folder) = (Arc::new(settings.clone()), folder.clone());
        let jobs = trawl_jobs::run(ports.clone(), jobs_settings, jobs_folder, id.clone(), stop.clone());
        let jobs = AbortOnDropHandle::new(tokio::spawn(jobs));
        let of_spiders = SpiderWebhooks::new(&settings, ports.stats.clone(), folder.clone())?;
        let stopping = stop.clone();
        let webhooks = async move {
            let of_settings = async {
                if let Some(webhooks) = webhooks {
                    webhooks.run(stopping.clone()).await;
                }
            };
            tokio::join!(of_settings, of_spiders.run(stopping.clone()))
        };
        let webhooks = AbortOnDropHandle::new(tokio::spawn(webhooks));
        let ended = run(ports, settings, folder, id, health, stop.clone()).await;
        stop.cancel();
        // A panic in either was logged, and does not affect the work on URLs.
        let _ = tokio::join!(jobs, webhooks);
        ended?;
        Ok(Exit::Ok)
    }
}

/// Warns about missing settings. Producers leave this to workers: one started by cron is silent unless
/// something is wrong.
fn advise(settings: &Settings) {
    for warning in settings.anonymous().into_iter().chain(settings.unsigned()) {
        warn!("{warning}");
    }
}

impl From<RunError> for Fail {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Port(error) => error.into(),
            RunError::Spider(_) => Self::usage(error),
            RunError::Threads(_) => Self::run(error),
        }
    }
}
