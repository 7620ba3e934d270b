//! The promises of the HTTP API, tested with both engines over real connections.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
mod fixture;
mod access;
mod crawls;
mod dead_letters;
mod delivered;
mod document;
mod events;
mod hook;
mod hostile;
mod hosts;
mod items;
mod logs;
mod new_crawls;
mod project_work;
mod projects;
mod schedules;
mod scrapyd;
mod spiders;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
mod trial;
mod url;
