//! The ports: what the producer and the worker ask of the world. Each is small and has two real
//! adapters, one on servers and one embedded, that pass one conformance suite.

mod cache;
mod control;
mod error;
mod frontier;
mod hosts;
mod pages;
mod queue;
mod sink;

use std::sync::Arc;

pub use cache::{Cache, Response};
pub use control::{Control, FailedPage};
pub use error::{Error, ErrorKind, Result};
pub use frontier::{
    Backlog, Claim, Discovery, Finish, Frontier, Heard, Heartbeat, Linked, Linking, MAX_INVALID, MAX_STARTS,
    Mark, NewUrl, Parking, Probe, Start, Sweep, Taken, Terms, WorkerState,
};
pub use hosts::{
    Ask, Ended, HostBackoff, HostControl, HostState, Hosts, Refusal, RobotsEntry, RobotsFile, Visit,
};
pub use pages::{Pages, Walk};
pub use queue::{Consumer, Content, Delivery, Parked, Queue, Receipt, Unproven, Wake};
pub use sink::{Outlets, Page, Sink};

/// One set of adapters: all that `producer::run` and `worker::run` are given.
#[derive(Clone)]
pub struct Ports {
    /// Messages.
    pub queue: Arc<dyn Queue>,
    /// Records and books.
    pub frontier: Arc<dyn Frontier>,
    /// Politeness.
    pub hosts: Arc<dyn Hosts>,
    /// Responses.
    pub cache: Arc<dyn Cache>,
    /// What is remembered of pages.
    pub pages: Arc<dyn Pages>,
    /// Where items go.
    pub outlets: Arc<dyn Outlets>,
}
