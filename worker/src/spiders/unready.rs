//! The reasons why spiders and tasks cannot be taken.

use std::path::PathBuf;

use trawl_browser::NoBrowser;
use trawl_common::elsewhere::MAX_ELSEWHERE;
use trawl_common::mistake::Mistake;
use trawl_common::names::SpiderName;
use trawl_common::ports;
use trawl_common::spider::folder::Unusable;
use trawl_handlers::CannotRun;

/// The reason why a spider cannot work.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    /// Its file cannot be used.
    #[error(transparent)]
    File(#[from] Unusable),
    /// Its file existed and is gone.
    #[error("its file is gone")]
    Gone,
    /// The settings that replace a file are invalid.
    #[error("settings: {}", listed(.0))]
    Mistaken(Vec<Mistake>),
    /// The HTTP client refused its settings.
    #[error("[fetch]: {0}")]
    Fetch(#[from] trawl_web::Unusable),
    /// Its program cannot be run here.
    #[error("[handler] run: {0}")]
    Program(#[from] CannotRun),
    /// The secret of its project cannot be given to its program here.
    #[error("{0}")]
    Secret(String),
    /// The code of its project is not here.
    #[error("{0}")]
    Code(String),
    /// A crawl brings a program that the files of this machine do not have.
    #[error("its [handler] is not that of {}, and a worker runs only what its own files say: a crawl that was opened before that was changed has to be cancelled", .0.display())]
    ForeignProgram(PathBuf),
    /// Its pages are rendered, and no browser can be run here.
    #[error("`render`: {0}")]
    Browser(#[from] NoBrowser),
    /// A sink cannot be opened with its settings.
    #[error(transparent)]
    Sink(#[from] ports::Error),
}

/// The error of a task for a spider that is not here, beyond the limit on such names.
#[derive(Debug, thiserror::Error)]
#[error(
    "a task for {0}: that spider has no file here, as {MAX_ELSEWHERE} others that got tasks of this program before"
)]
pub(crate) struct TooManyNames(pub(super) SpiderName);

fn listed(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("; ")
}
