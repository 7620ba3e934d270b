//! Parts that run over the ports: permits for requests, the fleet's log, traces and metrics, and what commands, the
//! HTTP API and the console do alike.

pub mod batching;
pub mod cancel;
pub mod clock_check;
pub mod crawl_end;
pub mod dead_letters;
pub mod elsewhere;
pub mod ended_tasks;
pub mod exit;
pub mod explain;
pub mod fleet_log;
pub mod host_schedules;
pub mod metrics;
pub mod open_files;
pub mod project_work;
pub mod projects;
pub mod published;
pub mod relay;
pub mod task_report;
pub mod telemetry;
pub mod timetable;
pub mod trace;
