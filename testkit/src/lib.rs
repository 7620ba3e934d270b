//! trawl
pub mod conformance;
