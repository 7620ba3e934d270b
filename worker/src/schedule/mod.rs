//! Decides when each URL may be fetched: after its host's `robots.txt` is known, with a fetch permit of this
//! worker, in a slot of its host.

pub(crate) mod apart;
pub(crate) mod backoff;
pub(crate) mod blameless;
pub(crate) mod domains;
mod due;
pub(crate) mod exchange;
mod fetch_permits;
pub(crate) mod polite;
mod ready;
mod request;
mod robots;
pub(crate) mod robots_memory;
mod scheduler;
mod scheduling;
pub(crate) mod sessions;
mod unknown_robots;
mod wanting;

pub(crate) use ready::{Next, Permits, Ready};
pub(crate) use request::ask;
pub(crate) use scheduler::{Exits, Scheduler};
pub(crate) use scheduling::Scheduling;
