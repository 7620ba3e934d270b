//! trawl's producer: reads sitemaps and lists, and puts each new URL into its queue.
//!
//! One run, from start to end:
//!
//! 1. [`run`] opens a session of the crawl, which takes a lease of its spider, so that everyone who reads
//!    sources at once does so for one crawl.
//! 2. `sources` reads the given sources, and the sitemaps that they name, with [`sitemap`].
//! 3. Each entry becomes a canonical URL and is routed; bundles of them take URLs of all hosts in round
//!    robin.
//! 4. `admission` leaves out URLs that are not due for a recrawl, and admits the rest while the backlog is
//!    below its limit.
//! 5. The lease is released. When the last one is, discovery has ended.

mod admission;
#[cfg(feature = "cli")]
pub mod cli;
mod finding;
mod rate_warning;
mod report;
mod run;
#[cfg(feature = "cli")]
mod running;
mod sources;

pub mod sitemap;

pub use self::finding::{Candidate, Finding};
pub use self::report::{Counters, Progress, Report};
pub use self::run::{Html, RunError, RunPlan, preview, run};
pub use self::sources::source::{InvalidSource, Source};
pub use self::sources::start::{NoStart, RunStart};
