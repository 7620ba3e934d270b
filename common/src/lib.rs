//! The parts that all of trawl shares: the vocabulary, the pure policy, the ports, the settings.
//!
//! No I/O client lives here. The ports in [`ports`] are the traits that the adapters of `trawl-backends`
//! implement; except for the web, `trawl-producer` and `trawl-worker` reach the outside only through them.

mod as_text;
pub mod backoff;
pub mod batching;
pub mod cancel;
pub mod cell;
pub mod clock;
pub mod clock_check;
pub mod dead_letters;
pub mod duration;
mod escape;
pub mod events;
pub mod exit;
pub mod explain;
pub mod fleet_log;
pub mod format;
pub mod frontier;
pub mod handler;
pub mod history;
pub mod host_schedules;
pub mod jobs;
pub mod json_object;
pub mod list;
pub mod logs;
pub mod metrics;
pub mod mistake;
pub mod names;
pub mod nearest;
pub mod open_files;
pub mod politeness;
pub mod ports;
pub mod priority;
pub mod request;
pub mod schedule;
pub mod settings;
mod small_file;
pub mod spider;
pub mod task;
pub mod task_report;
pub mod telemetry;
pub mod text;
pub mod time;
pub mod timetable;
pub mod trace;
pub mod web;

pub use ports::health;
