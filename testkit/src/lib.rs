//! For trawl's tests: real servers, a site that logs what it is asked, and one conformance suite for each port.

pub mod cluster;
pub mod conformance;
pub mod servers;
pub mod site;
