//! Runs the programs of spiders ([`trawl_common::handler`] is what is said to them and what they answer).
//!
//! Between a worker and a program stands a supervisor: the same file as the worker, started again ([`exec`]). The worker bounds time
//! and output, the supervisor memory and processes. All that a program starts is the supervisor's descendant and ends with it, also
//! what has left its session, and also where the worker is killed.
//!
//! - [`once`]: starts the program for one task;
//! - [`Stream`]: keeps a program alive, and gives it tasks and pages.
//!
//! Whatever a program does, one task or page has failed, and the next one runs ([`Ended`]).

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

pub use ended::Ended;
pub use items_file::{Batch, ItemsFile, Place};
pub use locate::CannotRun;
pub use once::once;
pub use program::{Program, Supervisor, file_of};
pub use proxy::{Admission, ProxyAccess};
pub use stream::{Came, Page, Response, Stream, Work};
