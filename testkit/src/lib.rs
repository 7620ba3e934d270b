//! For trawl's tests: real servers, and one conformance suite for each port.

pub mod conformance;
pub mod servers;
