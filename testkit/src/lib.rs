//! Support for trawl's tests: real servers, a site and a web of many hosts that log their requests, one conformance
//! suite for each port, the fault suite, and the list of attacks.

pub mod attacks;
pub mod changing_site;
pub mod cluster;
pub mod conformance;
pub mod echo_site;
pub mod faults;
pub mod gate;
pub mod hostile;
pub mod many_hosts;
pub mod own_redis;
pub mod politeness;
pub mod portal_site;
pub mod ports;
pub mod sample_sites;
pub mod script_site;
pub mod servers;
pub mod shard;
pub mod shop_site;
pub mod site;
pub mod stand_ins;
