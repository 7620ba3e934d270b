//! The programs of spiders: those that read pages, and those that do tasks.

mod logs;
mod page;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Once};

use tokio::sync::Semaphore;
use tracing::info;
use trawl_common::names::ProjectName;
use trawl_common::spider::{Mode, Spider};
use trawl_common::task::TaskView;
use trawl_handlers::{CannotRun, Ended, Program, ProxyAccess, Stream, Supervisor, Work, exec, once};

pub(crate) use self::logs::{log, say_refused};
pub(crate) use self::page::{Came, PageAbout, Reading, Unread, read_page, said_so};
pub(crate) use self::watch::Watch;

/// The program of a spider, ready for work.
pub(crate) enum Running {
    /// A program that is started for each task, with a limit on how many run at once.
    Once(Box<Program>, Semaphore),
    /// A long-running program.
    Stream(Stream),
}

impl Running {
    /// Returns the program of a spider, if it has one. It runs in `folder`, and makes requests through a
    /// proxy if `proxy` is given.
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

    /// Runs a task.
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

    /// Returns the program if it reads pages.
    pub(crate) fn reader(&self) -> Option<&Stream> {
        match self {
            Self::Once(..) => None,
            Self::Stream(stream) => Some(stream),
        }
    }
}
