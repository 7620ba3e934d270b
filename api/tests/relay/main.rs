//! Runners: the engine behind the API keeps its promises, and believes nothing that a runner says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod conformance;
mod fixture;
mod lies;
mod lost;
mod secrets;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "the tests of the API use the rest")]
mod support;
mod tt;
