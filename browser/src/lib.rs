//! Renders pages in Chromium.
//!
//! - [`Chromium`]: the program on this machine;
//! - [`Pool`]: starts browsers, leases a place in one for each page, and replaces those that are old, or have died;
//! - [`Counts`]: the numbers of a pool, for operators;
//! - [`Tab`]: one page, in a context of its own: no cookie, no cache and no connection is shared with another.
//!
//! A browser is driven over a pipe (`connection`), never over a port, and runs under the supervisor of programs
//! (`trawl_handlers`), which bounds its memory, ends all its processes with it, and ends it with this process. It has
//! no way to the network but the proxy that each page is opened with (`arguments`), and has to show that before it gets
//! pages (`self_test`).
//!
//! Nothing waits for a browser without a limit. A page that fails fails alone ([`PageError`]); a browser that dies, or
//! answers no more, fails all its pages with [`PageError::Lost`], and none of them is to blame.

mod arguments;
mod browser;
mod chromium;
mod connection;
mod counts;
mod deaths;
mod lease;
mod pool;
mod self_test;
mod tab;

pub use chromium::{Chromium, NoBrowser};
pub use counts::Counts;
pub use lease::Lease;
pub use pool::{NoLease, Pool, examine};
pub use tab::{Attempt, Document, PageError, Tab};
