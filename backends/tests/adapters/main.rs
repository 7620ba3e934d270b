//! Each adapter keeps every promise of its port: on files, and on a real RabbitMQ, Redis and PostgreSQL.
//!
//! One program for all of them, as each more would be linked by itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
mod support;

mod embedded;
mod fleet;
mod history;
mod jobs;
mod logs;
mod packed;
mod projects;
mod replies;
mod runners;
mod schedules;
mod server_sinks;
mod sinks;
mod spider_store;
mod unreadable_jobs;
