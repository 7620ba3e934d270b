//! trawl

pub mod extract;
pub mod fetch;
