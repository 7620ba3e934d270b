//! For trawl's tests: real servers, a site that logs what it is asked, one conformance suite
//! for each port, the fault suite, and the list of attacks.

pub mod attacks;
pub mod cluster;
pub mod conformance;
pub mod faults;
pub mod servers;
pub mod site;
