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
    /// Returns the program of a spider of a project, if it has one. It runs in `folder`, and makes requests through a
    /// proxy if `proxy` is given. `shows_stderr` says whether its standard error is shown on this process's own.
    pub(crate) fn new(
        spider: &Spider,
        project: ProjectName,
        folder: PathBuf,
        proxy: Option<Arc<dyn ProxyAccess>>,
        shows_stderr: bool,
    ) -> Result<Option<Self>, CannotRun> {
        let Some(handler) = spider.handler.clone() else { return Ok(None) };
        let mode = handler.mode;
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let supervisor = Supervisor::default();
        let spider = spider.name.clone();
        let program = Program { project, spider, handler, folder, supervisor, proxy, shows_stderr };
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

    /// Returns the reason why it can be given nothing now, if one is known.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.reader().and_then(Stream::trouble)
    }

    /// Returns the number of pages and tasks that wait for it because it is the limit.
    pub(crate) fn behind(&self) -> Option<usize> {
        self.reader().and_then(Stream::behind)
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

    /// Ends a long-running program, and waits for that.
    pub(crate) async fn end(self) {
        if let Self::Stream(stream) = self {
            stream.end().await;
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
