//! trawl's worker: takes URLs from a queue, fetches them politely, extracts, stores, settles.
//!
//! A URL passes through these, in order:
//!
//! 1. `claim`: takes the URLs that the engine hands out, and finds each one's spider.
//! 2. `schedule`: waits for everything that a fetch needs: the host's `robots.txt`, a fetch permit, a slot of
//!    the host, one of the host's address, and a place among slow pages if its domain may be slow.
//! 3. `fetch::dispatcher`: counts the start, and runs the page.
//! 4. `fetch::page`: the page's `history`, the response cache or a fetch ([`trawl_web`]), on separate threads
//!    (`schedule::apart`) if it may keep them busy; `render`, if a browser is to run its scripts; then `parse` calls
//!    [`trawl_extract`].
//! 5. `store`: puts the page's items into the sinks of its spider.
//! 6. `settle`: stores how pages ended in the history (`page_ends`), and passes their outcomes and links to
//!    the engine, which makes these permanent. Whether a failure is retried was decided where it was met, by
//!    `trawl_common::frontier::retry`; `settle::retries` may delay it.
//!
//! A port's error that no waiting resolves stops the whole worker ([`Health::fatal`]), except for that of a sink, for
//! which only its spider waits.
//!
//! Each stage has a folder. Modules use only those before them in this list:
//!
//! - `context`: the worker's id, settings, health and log, which every part has.
//! - `parse`: the threads that parse pages.
//! - `programs`: the programs of spiders, their output and their end.
//! - `spiders`: the files of spiders, loaded and reloaded, with their sinks, secrets and code.
//! - `claimed`: one claimed URL, its output, and its settlement.
//! - `telemetry`: heartbeats, logs, counts, and the reason if no URL ends.
//! - `claim`, `schedule`: stages 1 and 2. `schedule::polite` asks hosts for what is outside a crawl's own schedule,
//!   `schedule::sessions` logs in.
//! - `proxy`: the way of programs and browsers to the web.
//! - `render`: pages in a browser.
//! - `fetch`, `store`, `settle`: stages 3 to 6.
//! - `tasks`: claims, starts and runs tasks, which are stored and settled as pages are.
//! - `trial`: fetches and reads one page for trying a spider, in no crawl and by the same rules.
//! - `worker`: builds, runs and stops all of them.

mod claim;
mod claimed;
#[cfg(feature = "cli")]
pub mod cli;
mod context;
mod fetch;
mod parse;
mod programs;
mod proxy;
mod render;
mod schedule;
mod settle;
mod spiders;
mod store;
mod tasks;
mod telemetry;
#[cfg(test)]
mod tests;
mod trial;
mod worker;

use std::sync::Arc;

pub use proxy::HandlerProxy;
pub use render::RenderReport;
pub use spiders::Unready;
use tasks::{Programs, TaskRunner};
use tokio_util::sync::CancellationToken;
use trawl_common::health::Health;
use trawl_common::names::WorkerId;
use trawl_common::ports::WorkerPorts;
use trawl_common::settings::Settings;
use trawl_common::spider::folder::Folder;
pub use trial::{PageReader, PageRenderer, TaskTrial, TrialSession, Trials};
pub use worker::RunError;
use worker::Worker;

/// Works until `stop`, using the spider files in `folder`; then finishes started work within
/// `worker.shutdown_timeout` and releases the rest. Reports problems to `health`. Cancels `stop` itself when
/// the worker is drained.
pub async fn run(
    ports: impl Into<WorkerPorts>,
    settings: Settings,
    folder: Folder,
    id: WorkerId,
    health: Arc<Health>,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let (runner, at_once): (Arc<dyn TaskRunner>, _) = (Arc::new(Programs), settings.worker.handlers);
    let tasks = (at_once > 0).then_some((runner, at_once));
    Worker::build(ports.into(), settings, folder, id, health, stop, tasks)?.run().await
}
