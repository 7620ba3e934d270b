//! What the console promises to those who look at it, over real servers and real connections.

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
mod schedules;
mod spiders;
mod tasks;
