//! Politeness: the schedules of hosts, the rates of addresses and of a process, and where a URL waits meanwhile.

pub mod addresses;
pub mod ceiling;
pub mod gcra;
pub mod rate;
pub mod robots;
pub mod sizing;
pub mod waiting;
