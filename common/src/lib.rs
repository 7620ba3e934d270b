//! The parts that all of trawl shares, in layers: a module imports from its own layer and those before it in this list,
//! as `scripts/circles` checks.
//!
//! - `model`: the vocabulary, and the life of a URL in a crawl;
//! - `policy`: when a host may be requested, and when a cron schedule is due;
//! - [`settings`], from `trawl.toml`;
//! - [`spider`], from the files of spiders;
//! - [`jobs`], which are crawls that are submitted before anyone runs them;
//! - [`ports`], the traits through which `trawl-producer` and `trawl-worker` reach everything outside but the web;
//! - `runtime`: parts that run over the ports.
//!
//! No I/O client lives here: the adapters of the ports are in `trawl-backends`. The modules of `model`, `policy` and
//! `runtime` are imported by their own names, such as `trawl_common::frontier`.

pub mod jobs;
mod model;
mod policy;
pub mod ports;
mod runtime;
pub mod settings;
pub mod spider;

pub(crate) use model::{as_text, base64, escape, recorded, small_file, toml_value};
pub use model::{
    cell, clock, csv, duration, events, finding, format, frontier, handler, history, json_object, list, logs,
    mistake, names, nearest, priority, project, request, session, task, text, time, web,
};
pub use policy::{politeness, schedule};
pub use ports::{backoff, health};
pub use runtime::{
    batching, cancel, clock_check, crawl_end, dead_letters, elsewhere, ended_tasks, exit, explain, fleet_log,
    host_schedules, metrics, open_files, project_work, projects, published, relay, task_report, telemetry,
    timetable, trace,
};
