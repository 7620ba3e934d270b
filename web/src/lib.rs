//! trawl's HTTP client, the same for pages, sitemaps and `robots.txt`: one request within limits of time, size, address
//! and port, whatever the server sends. `tests/attacks.md` lists the attacks that were tried.

mod address;
mod answer;
mod archived;
mod blame;
mod body;
mod client;
mod coding;
mod conditions;
mod exits;
mod failure;
mod fetcher;
mod file;
mod guard;
mod gzip;
mod kind;
mod lenient;
mod limited;
mod machine;
mod memory;
mod odd;
mod own;
mod passage;
mod proxy;
mod redirect;
mod resolver;
mod robots;
mod rules;
mod sent;
mod session;
mod shared_robots;
#[cfg(test)]
mod tests;
mod threads;
mod time_limit;
mod trust;
mod tunnel;
mod unusable;

pub use self::answer::{Answer, Opened};
pub use self::archived::read_archived;
pub use self::failure::refusal;
pub use self::fetcher::Fetcher;
pub use self::file::{FileBody, OpenedFile};
pub use self::guard::Guard;
pub use self::memory::{MemoryBudget, MemoryShare};
pub use self::passage::{Passage, Passed, PassedBody};
pub use self::redirect::{MAX_REDIRECTS, Redirect, Trail};
pub use self::robots::{NoRobots, Robots, RobotsWay};
pub use self::rules::{NoPage, ban};
pub use self::session::Session;
pub use self::shared_robots::shared_robots;
pub use self::threads::Threads;
pub use self::unusable::Unusable;
