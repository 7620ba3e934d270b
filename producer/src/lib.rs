//! trawl's producer: reads sitemaps and lists, and puts each URL that is new into its queue.
//!
//! One run, from top to bottom:
//!
//! 1. [`run`] opens a session of the crawl, which takes a lease of its spider, so that all who read sources at once do so for one crawl;
//! 2. `sources` reads what a person named, and the sitemaps that they name, with [`sitemap`];
//! 3. each entry becomes a canonical URL and is routed; bundles of them take URLs of all hosts in round robin;
//! 4. `admission` leaves out what is not due for a recrawl, and admits the rest while the backlog is below its limit;
//! 5. the lease is released. When the last one is, discovery has ended.

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
pub use self::run::{Html, Job, RunError, preview, run};
pub use self::sources::source::{InvalidSource, Source};
pub use self::sources::start::{NoStart, Start};
