//! Measurements of trawl, and the baselines for them.
//!
//! - [`simulation`]: a fleet and its queues on a web of a million hosts, in virtual time (`src/bin/simulate.rs`);
//! - `benches/`: single functions, on [`samples`], by `cargo bench -p trawl-bench`.

pub mod samples;
pub mod simulation;
