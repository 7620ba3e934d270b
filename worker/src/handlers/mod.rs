//! The programs of spiders: those that read pages, and those that do tasks.

mod logs;
mod page;

use std::path::PathBuf;
use std::sync::Arc;

use trawl_common::names::ProjectName;
use trawl_common::spider::{Mode, Spider};
use trawl_common::task::TaskView;
use trawl_handlers::{CannotRun, Ended, Program, Stream, Supervisor, Work, once};

pub(crate) use self::page::{PageAbout, Reading, Unread, read_page};

/// The program of a spider, ready to be asked.
pub(crate) enum Running {
    /// One that is started for each task.
    Once(Box<Program>),
    /// One that lives.
    Stream(Stream),
}

impl Running {
    /// The program that a spider has, if it has one: it runs in `folder`.
    pub(crate) fn of(spider: &Spider, folder: PathBuf) -> Result<Option<Self>, CannotRun> {
        let Some(handler) = spider.handler.clone() else { return Ok(None) };
        let (mode, project) = (handler.mode, ProjectName::default());
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let supervisor = Supervisor::default();
        let program = Program { project, spider: spider.name.clone(), handler, folder, supervisor };
        program.file()?;
        Ok(Some(match mode {
            Mode::Once => Self::Once(Box::new(program)),
            Mode::Stream => Self::Stream(Stream::new(Arc::new(program))),
        }))
    }

    /// Has it do a task.
    pub(crate) async fn task(&self, task: TaskView) -> Ended {
        match self {
            Self::Once(program) => once(program, &task).await,
            Self::Stream(stream) => stream.ask(Work::Task(task)).await,
        }
    }

    /// The program that reads pages, if this one does.
    pub(crate) fn reader(&self) -> Option<&Stream> {
        match self {
            Self::Once(_) => None,
            Self::Stream(stream) => Some(stream),
        }
    }
}
