//! The code of projects that comes from Git, in the versions that this worker has taken.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use tracing::{error, info, warn};
use trawl_common::fleet_log::LogWriter;
use trawl_common::logs::LogLevel;
use trawl_common::names::ProjectName;
use trawl_common::ports::Grants;
use trawl_common::project::{Commit, Grant, Machine, VersionReport, VersionResult, Wanted};
use trawl_common::settings;
use trawl_common::time::UnixMs;
use trawl_handlers::Supervisor;
use trawl_handlers::checkout::{Checkouts, NotTaken};

use super::Unready;

/// Time until a version that could not be fetched is fetched again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// The versions of projects on this machine.
pub(super) struct ProjectCode {
    /// None if the settings name no folder for them.
    checkouts: Option<Checkouts>,
    projects: Mutex<HashMap<ProjectName, State>>,
    machine: Machine,
    log: LogWriter,
    /// Wakes whoever waits for the next version to be taken.
    changed: Notify,
}

/// The state of a project whose code comes from Git.
#[derive(Default)]
struct State {
    taken: Option<Arc<Taken>>,
    /// The version that was not taken last.
    refused: Option<Refused>,
    /// The version that is being taken.
    taking: Option<AbortOnDropHandle<()>>,
    /// The latest result, until people are told of it.
    unreported: Option<VersionReport>,
}

/// A version that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) commit: Commit,
    pub(super) folder: PathBuf,
}

struct Refused {
    wanted: Wanted,
    why: String,
    /// When it is tried again; never if its setup has failed.
    again: Option<Instant>,
}

impl ProjectCode {
    pub(super) fn new(settings: &settings::Projects, log: LogWriter) -> Arc<Self> {
        let checkouts = Checkouts::new(settings, Supervisor::default());
        let machine = Machine::of_worker(log.worker());
        Arc::new(Self { checkouts, projects: Mutex::default(), machine, log, changed: Notify::new() })
    }

    /// Returns the version by which a project's spiders work; `None` if their files are those of this machine.
    pub(super) fn of(&self, grant: &Grant) -> Result<Option<Arc<Taken>>, Unready> {
        let Grant { project, wanted: Some(Wanted { commit, .. }), .. } = grant else { return Ok(None) };
        let not_here =
            |why: &str| Err(Unready::Code(format!("the version {commit} of the project {project} {why}")));
        if self.checkouts.is_none() {
            return not_here("comes from Git, and projects.dir of this machine names no folder for it");
        }
        let projects = self.projects.lock();
        let state = projects.get(project);
        match state.and_then(|state| state.taken.clone()) {
            Some(taken) => Ok(Some(taken)),
            None => match state.and_then(|state| state.refused.as_ref()) {
                Some(refused) => not_here(&format!("was not taken: {}", refused.why)),
                None => not_here("is being fetched"),
            },
        }
    }

    /// Waits until a version is taken.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Begins to take versions that are wanted and not taken.
    pub(super) fn tend(self: &Arc<Self>, grants: impl IntoIterator<Item = Grant>) {
        let Some(checkouts) = &self.checkouts else { return };
        let mut projects = self.projects.lock();
        for Grant { project, wanted, .. } in grants {
            let Some(wanted) = wanted else { continue };
            let state = projects.entry(project.clone()).or_default();
            if state.is_settled(&wanted) {
                continue;
            }
            let (code, checkouts) = (Arc::clone(self), checkouts.clone());
            let taking = async move {
                let taken = checkouts.take(&project, &wanted).await;
                code.note(project, wanted, taken);
            };
            state.taking = Some(AbortOnDropHandle::new(tokio::spawn(taking)));
        }
    }

    /// Says what became of versions. A report that nobody takes now is for the next call.
    pub(super) async fn report(&self, port: &dyn Grants) {
        let reports: Vec<VersionReport> =
            self.projects.lock().values().filter_map(|state| state.unreported.clone()).collect();
        for report in reports {
            match port.note_version(&report).await {
                Err(error) if error.is_temporary() => continue,
                Err(error) => warn!(%error, "people cannot be told what became of a version"),
                Ok(()) => {}
            }
            if let Some(state) = self.projects.lock().get_mut(&report.project)
                && state.unreported.as_ref() == Some(&report)
            {
                state.unreported = None;
            }
        }
    }

    /// Notes what became of a version.
    fn note(&self, project: ProjectName, wanted: Wanted, taken: Result<PathBuf, NotTaken>) {
        let commit = wanted.commit.clone();
        let mut projects = self.projects.lock();
        let state = projects.entry(project.clone()).or_default();
        state.taking = None;
        let report = |result| {
            let (wanted, machine) = (wanted.clone(), self.machine.clone());
            Some(VersionReport { project: project.clone(), wanted, machine, at: UnixMs::now(), result })
        };
        match taken {
            Ok(folder) => {
                info!(%project, %commit, "a new version of the project is used");
                let text = format!("the project {project}: its version {commit} is used");
                self.log.write(self.log.entry(LogLevel::Info, text));
                state.unreported = report(VersionResult::Taken);
                (state.taken, state.refused) = (Some(Arc::new(Taken { commit, folder })), None);
                self.changed.notify_one();
            }
            Err(error) => {
                let why = error.to_string();
                if state.refused.as_ref().is_none_or(|before| before.wanted != wanted || before.why != why) {
                    error!(%project, %commit, error = why, "a version of the project is not taken");
                    let text = format!("the project {project}: its version {commit} is not taken: {why}");
                    self.log.write(self.log.entry(LogLevel::Error, text));
                    state.unreported = report(VersionResult::Failed(why.clone().into()));
                }
                let again = matches!(error, NotTaken::Fetch(_)).then(|| Instant::now() + AGAIN_AFTER);
                state.refused = Some(Refused { wanted, why, again });
            }
        }
    }
}

impl State {
    /// Returns whether nothing is to be done about a version now.
    fn is_settled(&self, wanted: &Wanted) -> bool {
        let is_taken = self.taken.as_ref().is_some_and(|taken| taken.commit == wanted.commit);
        let is_refused = self.refused.as_ref().is_some_and(|refused| {
            refused.wanted == *wanted && refused.again.is_none_or(|again| Instant::now() < again)
        });
        is_taken || is_refused || self.taking.is_some()
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use trawl_common::names::{SpiderName, WorkerId};
    use trawl_common::ports::{Error, ErrorKind, Result};

    use super::*;

    /// Takes reports while it is not away.
    #[derive(Default)]
    struct Port {
        is_away: Mutex<bool>,
        told: Mutex<Vec<VersionResult>>,
    }

    #[async_trait]
    impl Grants for Port {
        async fn grants(&self, spiders: &[SpiderName]) -> Result<Vec<Option<Grant>>> {
            Ok(vec![None; spiders.len()])
        }

        async fn note_version(&self, report: &VersionReport) -> Result<()> {
            if *self.is_away.lock() {
                return Err(Error::new(ErrorKind::Unavailable, "it is away"));
            }
            self.told.lock().push(report.result.clone());
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_became_of_a_version_is_said_once_when_somebody_hears_it() {
        let (log, _targets) = LogWriter::new(&WorkerId::of_this_machine(), None, None);
        let (code, port) = (ProjectCode::new(&settings::Projects::default(), log), Port::default());
        let clone_url = "https://git.example/shop.git".parse().unwrap();
        let wanted = Wanted { clone_url, commit: "1".repeat(40).parse().unwrap() };
        let note = |taken| code.note("shop".parse().unwrap(), wanted.clone(), taken);
        *port.is_away.lock() = true;
        note(Err(NotTaken::Fetch("no answer".to_owned())));
        code.report(&port).await;
        note(Err(NotTaken::Setup("ended with status 3:\nno such package".to_owned())));
        code.report(&port).await;
        *port.is_away.lock() = false;
        for _ in 0..2 {
            code.report(&port).await;
        }
        note(Err(NotTaken::Setup("ended with status 3:\nno such package".to_owned())));
        code.report(&port).await;
        note(Ok("/nowhere".into()));
        code.report(&port).await;
        let failed = "its setup ended with status 3:\nno such package".to_owned();
        assert_eq!(*port.told.lock(), [VersionResult::Failed(failed.into()), VersionResult::Taken]);
    }
}
