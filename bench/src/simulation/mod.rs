//! A fleet on a large web, in virtual time: where URLs wait, how often they travel, and when a crawl ends.
//!
//! What decides is trawl's own: the schedule of each host ([`trawl_common::politeness::gcra`]), where a URL waits
//! ([`trawl_common::politeness::waiting`]) and the ladder ([`trawl_common::frontier::ladder`]). What is built here after `trawl-worker` and
//! RabbitMQ is the way between them:
//!
//! 1. the producer admits URLs while the backlog is below its limit; each goes into the bulk queue (`broker`);
//! 2. the broker hands messages to workers in turn, each as many of a queue as its prefetch allows;
//! 3. a worker's intake takes them in batches, those that were parked first, and asks each one's host (`worker`);
//! 4. whose turn it is waits for a fetch permit, whose turn is near waits aside, all others go to a rung of the ladder and
//!    come back through the due queue;
//! 5. a fetch takes as long as the host takes to answer (`web`), and then the URL has ended.
//!
//! Left out: `robots.txt`, failures, redirects, links, the cache, the time of servers and network, and workers that
//! die. Servers are as fast as workers need them to be: what they would have to carry is what is counted (`report`).

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
