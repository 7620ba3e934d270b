//! From the permission to ask a host to the yield of its page.

pub(crate) mod dispatcher;
pub(crate) mod known_links;
mod page;

use std::sync::Arc;

use trawl_common::ports::{Cache, Frontier, LastVisits};
use trawl_web::Threads;

use self::known_links::KnownLinks;
use crate::context::Context;
use crate::parse::Parser;
use crate::programs::Watch;
use crate::render::Renderer;
use crate::schedule::Scheduling;
use crate::schedule::sessions::Sessions;
use crate::spiders::Spiders;
use crate::telemetry::latencies::Latencies;
use crate::telemetry::url_log::UrlLog;

/// The state by which pages are fetched and read.
pub(crate) struct Fetching {
    pub(crate) context: Arc<Context>,
    /// For redirects, and for hosts that want to be left alone.
    pub(crate) scheduling: Arc<Scheduling>,
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) spiders: Arc<Spiders>,
    /// The page history.
    pub(crate) pages: Arc<dyn LastVisits>,
    pub(crate) cache: Arc<dyn Cache>,
    pub(crate) parser: Arc<Parser>,
    pub(crate) sessions: Arc<Sessions>,
    /// The threads for fetches that may keep them busy.
    pub(crate) threads: Threads,
    /// Renders the pages of spiders that want it.
    pub(crate) renderer: Renderer,
    pub(crate) latencies: Arc<Latencies>,
    pub(crate) known_links: Arc<KnownLinks>,
    pub(crate) url_log: Arc<UrlLog>,
    /// The work that programs are doing.
    pub(crate) watch: Arc<Watch>,
}
