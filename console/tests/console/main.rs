//! The promises of the console to its users, tested with real servers over real connections.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod crawls;
mod dead_letters;
mod fixture;
mod hostile;
mod hosts;
mod log_in;
mod logs;
mod new_crawls;
mod pages;
mod runners;
mod schedules;
mod spiders;
#[path = "../../../api/tests/support/mod.rs"]
mod support;
mod tasks;
