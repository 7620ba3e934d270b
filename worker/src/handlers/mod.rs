//! The programs of spiders: those that read pages, and those that do tasks.

mod failure;
mod logs;
mod page;
mod task;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::Duration;

use tokio::sync::Semaphore;
use tracing::info;
use trawl_common::frontier::message::Message;
use trawl_common::frontier::outcome::Outcome;
use trawl_common::names::ProjectName;
use trawl_common::ports::{Error, ErrorKind};
use trawl_common::spider::{Mode, Spider};
use trawl_common::task::TaskView;
use trawl_handlers::{CannotRun, Ended, Program, ProxyAccess, Stream, Supervisor, Work, exec, once};

pub(crate) use self::failure::NoPage;
pub(crate) use self::logs::log_warning;
pub(crate) use self::page::{Came, PageAbout, Reading, Unread, read_page};
pub(crate) use self::task::Programs;
pub(crate) use self::watch::Watch;
use crate::shared::Shared;
use crate::spiders::Loaded;

/// That a program cannot be run is shown for so long after it was tried.
const TROUBLE: Duration = Duration::from_secs(60);

/// What becomes of what a program cannot be run for: another worker may be able to.
pub(crate) fn not_run(shared: &Shared, spider: &Loaded, message: &Message, why: String) -> Outcome {
    let outcome = shared.standstill.leave_to_others(message, &why);
    let what = format!("spider {}: running its program", spider.spider.name);
    shared.health.fails_lately(&what, &Error::new(ErrorKind::Unavailable, why), TROUBLE);
    outcome
}

/// The program of a spider, ready to be asked.
pub(crate) enum Running {
    /// One that is started for each task, at most so many at once.
    Once(Box<Program>, Semaphore),
    /// One that lives.
    Stream(Stream),
}

impl Running {
    /// The program that a spider has, if it has one: it runs in `folder`, and asks the web through a proxy if `proxy` lets it.
    pub(crate) fn of(
        spider: &Spider,
        folder: PathBuf,
        proxy: Option<Arc<dyn ProxyAccess>>,
    ) -> Result<Option<Self>, CannotRun> {
        let Some(handler) = spider.handler.clone() else { return Ok(None) };
        let (mode, project) = (handler.mode, ProjectName::default());
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let supervisor = Supervisor::default();
        let program = Program { project, spider: spider.name.clone(), handler, folder, supervisor, proxy };
        program.file()?;
        static SAID: Once = Once::new();
        if !exec::can_confine() {
            SAID.call_once(|| {
                info!("programs can signal what bounds them on this system: Linux 6.12 keeps them from it")
            });
        }
        Ok(Some(match mode {
            Mode::Once => {
                let most = program.handler.concurrency.map_or(Semaphore::MAX_PERMITS, usize::from);
                Self::Once(Box::new(program), Semaphore::new(most.min(Semaphore::MAX_PERMITS)))
            }
            Mode::Stream => Self::Stream(Stream::new(Arc::new(program))),
        }))
    }

    /// Has it do a task.
    pub(crate) async fn task(&self, task: TaskView) -> Ended {
        match self {
            Self::Once(program, at_once) => {
                // Never closed.
                let _permit = at_once.acquire().await;
                once(program, &task).await
            }
            Self::Stream(stream) => stream.ask(Work::Task(task)).await,
        }
    }

    /// The program that reads pages, if this one does.
    pub(crate) fn reader(&self) -> Option<&Stream> {
        match self {
            Self::Once(..) => None,
            Self::Stream(stream) => Some(stream),
        }
    }
}
