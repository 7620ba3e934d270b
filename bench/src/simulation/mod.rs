//! A fleet on a large web, in virtual time: where URLs wait, how often they travel, and when a crawl ends.
//!
//! Decisions are made by trawl's own code: the schedule of each host ([`trawl_common::politeness::gcra`]), where a URL
//! waits ([`trawl_common::politeness::waiting`]) and the ladder ([`trawl_common::frontier::ladder`]). The path between
//! them is modelled here after `trawl-worker` and RabbitMQ:
//!
//! 1. the producer admits URLs while the backlog is below its limit; each goes into the bulk queue (`broker`);
//! 2. the broker delivers to workers in round robin, to each as many messages of a queue as its prefetch allows;
//! 3. a worker's intake takes them in batches, first those that were parked, and requests a slot of each one's host
//!    (`worker`);
//! 4. a URL that may be sent waits for a fetch permit; one whose slot is near waits in the worker; all others go to a
//!    rung of the ladder and come back through the due queue;
//! 5. a fetch takes as long as the host takes to answer (`web`), and then the URL has ended.
//!
//! Left out: `robots.txt`, failures, redirects, links, the cache, the time of servers and network, and the death of
//! workers. Servers are as fast as workers need; the load on them is counted (`report`).

mod broker;
mod fleet;
mod report;
mod scenario;
mod seen;
mod web;
mod worker;

#[cfg(test)]
mod tests;

pub use self::fleet::run;
pub use self::report::{Report, Tail};
pub use self::scenario::{Order, Scenario};
pub use self::seen::Seen;
pub use self::web::capacity;
