//! The work of a runner: it asks for access, waits to be approved, and works until it is asked to stop.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use trawl_cli::{Fail, Global, Outcome, Signals, counted};
use trawl_common::exit::Exit;
use trawl_common::health::Health;
use trawl_common::names::{RunnerName, WorkerId};
use trawl_common::ports::ErrorKind;
use trawl_common::relay::{Registered, Shared};
use trawl_common::settings::{Fetch, Settings};
use trawl_common::spider::folder::Folder;
use trawl_runner::{Api, CallError, KeyFile, Link};
use trawl_worker::RunError;

/// Interval at which a runner asks whether it is approved.
const ASK_INTERVAL: Duration = Duration::from_secs(5);

/// The name of the file with the key, in the folder in which a runner is started.
const KEY_FILE: &str = "runner.key";

/// Number of URLs that a runner holds for each page that it fetches at once.
const HELD_PER_CONTEXT: u16 = 4;

/// The command-line arguments of a runner that works.
#[derive(clap::Args)]
pub(super) struct Work {
    /// The URL of the API; named again, the next one takes over where one is away
    #[arg(long, value_name = "URL", env = "TRAWL_API")]
    api: Vec<String>,
    /// The name of this machine among the runners
    #[arg(long, value_name = "ALIAS")]
    name: Option<RunnerName>,
    /// Fetch N pages, and do N tasks, at once
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=256))]
    contexts: u16,
    /// The folder with the programs of spiders, and the files that name them [default: spiders_dir of the settings]
    #[arg(long, value_name = "FOLDER")]
    spiders: Option<PathBuf>,
    /// Run code that projects have in Git, and keep its versions in FOLDER [default: projects.dir of the settings]
    #[arg(long, value_name = "FOLDER")]
    projects: Option<PathBuf>,
    /// Keep the key of this machine in FILE [default: runner.key]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl Work {
    pub(super) async fn run(self, global: Global) -> Outcome {
        let Some(name) = self.name else {
            return Err(Fail::usage("say what this machine is called: --name ALIAS"));
        };
        let mut source = global.source();
        if let Some(folder) = &self.spiders {
            source.set("spiders_dir", folder.display().to_string());
        }
        if let Some(folder) = &self.projects {
            source.set("projects.dir", folder.display().to_string());
        }
        let settings = global.load(&source)?;
        let key = KeyFile::open(&self.key.unwrap_or_else(|| KEY_FILE.into())).map_err(Fail::run)?;
        let runner = Runner {
            settings,
            contexts: self.contexts,
            signals: Signals::listen().map_err(Fail::run)?,
            api: self.api,
            name,
            key,
            global,
        };
        runner.work().await
    }
}

/// A runner that works whenever it may.
struct Runner {
    settings: Settings,
    contexts: u16,
    signals: Signals,
    api: Vec<String>,
    name: RunnerName,
    key: trawl_common::ports::RunnerKey,
    global: Global,
}

impl Runner {
    /// Works as long as it has access, and waits for access whenever it has none.
    async fn work(self) -> Outcome {
        let stop = self.signals.stop().clone();
        loop {
            let api = Api::new(&self.api, self.name.clone(), self.key.clone()).map_err(Fail::usage)?;
            let link = Arc::new(Link::new(api));
            let Some(shared) = stop.run_until_cancelled(self.approved(&link)).await.transpose()? else {
                break;
            };
            self.say(format_args!("starting {}", counted(self.contexts.into(), "context")));
            // Otherwise it was asked to end.
            if !self.run(&link, shared, stop.child_token()).await? {
                break;
            }
            self.say(link.why_revoked().unwrap_or_else(|| "access was taken back".to_owned()));
            if stop.run_until_cancelled(sleep(ASK_INTERVAL)).await.is_none() {
                break;
            }
        }
        Ok(Exit::Ok)
    }

    /// Asks for access until there is some, and returns the settings to work by.
    async fn approved(&self, link: &Link) -> Result<Shared, Fail> {
        let (mut is_said, mut away) = (false, None);
        loop {
            match link.register().await {
                Ok(Registered { projects, shared, assigned }) => {
                    away = None;
                    if let Some(shared) = shared {
                        let names: Vec<String> = assigned.iter().map(ToString::to_string).collect();
                        self.say(format_args!("has access to {}", names.join(", ")));
                        return Ok(shared);
                    }
                    if !std::mem::replace(&mut is_said, true) {
                        let Self { name, .. } = self;
                        let fingerprint = link.api().fingerprint();
                        self.say(format_args!(
                            "requesting access to {} as {name} ({fingerprint})",
                            counted(projects as u64, "project")
                        ));
                        self.say(format_args!("waiting to be approved: trawl runner approve {name}"));
                    }
                }
                // It may be overloaded, or started later.
                Err(CallError::Away(why)) => {
                    if away.as_ref() != Some(&why) {
                        self.say(format_args!("the API is away, trying again: {why}"));
                        away = Some(why);
                    }
                }
                Err(CallError::NoSession) => {}
                Err(CallError::NotAllowed(why)) => return Err(Fail::run(why)),
                Err(CallError::Failed(error)) => return Err(error.into()),
            }
            sleep(ASK_INTERVAL).await;
        }
    }

    /// Works until `stop`, until it is drained, or until access is taken back. Returns whether that was so.
    async fn run(&self, link: &Arc<Link>, shared: Shared, stop: CancellationToken) -> Result<bool, Fail> {
        let mut settings = with_shared(self.settings.clone(), shared);
        settings.worker.concurrency = self.contexts;
        settings.worker.handlers = self.contexts;
        settings.worker.prefetch = self.contexts.saturating_mul(HELD_PER_CONTEXT);
        let folder = Folder::new(&settings);
        let (id, health) = (WorkerId::of_runner(&self.name), Arc::<Health>::default());
        let ports = trawl_runner::ports(Arc::clone(link));
        let idle = async {
            loop {
                link.idle().await;
                self.say("no tasks, waiting");
                link.busy().await;
            }
        };
        let working = trawl_worker::run(ports, settings, folder, id, health, stop);
        let ended = tokio::select! {
            ended = working => ended,
            never = idle => never,
        };
        match ended {
            // The worker ends by an error then.
            Err(_) if link.is_revoked() => Ok(true),
            // A part of it was taken back.
            Err(RunError::Port(error)) if error.kind == ErrorKind::Stale => Ok(true),
            ended => Ok(ended.map(|()| link.is_revoked())?),
        }
    }

    fn say(&self, what: impl std::fmt::Display) {
        self.global.say(what);
    }
}

/// Returns the settings of this machine with those that it has in common with the fleet. Which addresses may be asked,
/// through which proxy and how fast, is for the owner of the machine.
fn with_shared(own: Settings, shared: Shared) -> Settings {
    let Shared { politeness, urls, retry, items, route, fetch } = shared;
    let Fetch { allow_private, allow_networks, ports, proxy, max_rate, .. } = own.fetch.clone();
    let fetch = Fetch { allow_private, allow_networks, ports, proxy, max_rate, ..fetch };
    Settings { politeness, urls, retry, items, route, fetch, ..own }
}
