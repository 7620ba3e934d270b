//! Runs the programs of spiders. The protocol is in [`trawl_common::handler`].
//!
//! A supervisor stands between a worker and a program: the worker's own executable, started again ([`exec`]). The
//! worker limits time and output, the supervisor limits memory and processes. All processes that a program starts are
//! descendants of the supervisor and end with it, including those that have left its session, and even if the worker is
//! killed.
//!
//! - [`once`]: starts the program for one task;
//! - [`Stream`]: keeps a program alive, and gives it tasks and pages;
//! - [`checkout`]: fetches and sets up the code of programs that comes from Git.
//!
//! A misbehaving program fails one task or page ([`Ended`]); the next one runs.

pub mod checkout;
mod ended;
pub mod exec;
mod items_file;
mod locate;
mod once;
mod output;
mod program;
mod proxy;
mod strays;
mod stream;
mod supervised;
mod usage;
mod version;

pub use ended::Ended;
pub use items_file::{Batch, FilePosition, ItemsFile};
pub use locate::CannotRun;
pub use once::once;
pub use program::{Program, Supervisor, file_of};
pub use proxy::{Admission, ProxyAccess};
pub use stream::{Came, Page, Response, Stream, Work};
pub use supervised::{End, Launch, Supervised};
pub use usage::Usage;
pub use version::ProgramFiles;
