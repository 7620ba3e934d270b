//! Decisions that need no I/O: when a host may be requested, and when a cron schedule is due.

pub mod politeness;
pub mod schedule;
