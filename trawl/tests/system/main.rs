//! The programs as their users run them: processes, on the embedded engine or on a real RabbitMQ and a real Redis.
//!
//! One program for all of them, as each more would be linked by itself. Those that need more than the servers of
//! `scripts/test`, or are also run alone, are separate.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod addresses;
mod cli;
mod control;
mod downloads;
mod drain;
mod embedded;
mod events;
mod examples;
mod faults_embedded;
mod fleet;
mod freshness;
mod handed;
mod handlers;
mod history;
mod hosts;
mod jobs;
mod journal;
mod kinds;
mod logs;
mod metrics;
mod open_files;
mod outcomes;
mod pages;
mod politeness;
mod projects;
mod proxies;
mod recovery;
mod render;
mod requests;
mod robots;
mod schedules;
mod sessions;
mod sources;
mod spider;
mod spiders;
mod support;
mod traces;
