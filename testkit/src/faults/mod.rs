//! The fault suite: a fleet of real processes on private servers crawls a synthetic site, while workers, producer,
//! Redis and RabbitMQ are killed, stopped, cut off and emptied. At the end every URL is accounted for.
//!
//! - [`plan`] draws from a seed which [`kind`] of fault comes when. A seed repeats a run as far as races allow: the
//!   same faults, at the same page, for the same time.
//! - A [`scenario`] defines the crawls: sitemaps or links, with or without limits, by one spider or several; pages,
//!   tasks or requests ([`units`]). The contents of tasks and requests are in `recipes`, their spiders' programs in
//!   `programs`.
//! - [`layout`] draws the pages of a site, and [`web`] serves it. Each page has a fate: most are good, some are
//!   missing, redirect, never answer, fail at first or fail always. The site logs who requested which page when, and
//!   keeps the crawl in step with the plan, so that it lasts for every fault.
//! - [`store`] and [`broker`] are the servers, at fixed addresses, each behind a [`proxy`]. A [`database`] is one of
//!   the sinks.
//! - [`fleet`] runs the processes: a worker that ends is replaced, as by compose, and a producer that fails is run
//!   again with the same crawl, as by cron.
//! - [`operator`] pauses crawls, blocks hosts, replays dead letters, and runs crawls [`beside`]: one that is cancelled,
//!   one whose sink takes nothing for a while, one whose disk is full.
//! - [`mod@clock`] sets the clock of a machine wrong; [`replies`] loses replies.
//! - [`environment`] is a scenario on all of these, [`inject`] injects a fault, [`run`] takes a scenario through many.
//! - [`ledger`] judges by the site's log, the items [`stored`] in each sink, the messages from `failed_urls` and
//!   `events` ([`dead_letters`]), and the output of `trawl status` at the end.
//!
//! The ledger's demands:
//!
//! 1. Every URL that sitemaps, links or redirects lead to has its right end: an item in each sink, with the contents of
//!    its page, or a dead letter with the right reason. A dead letter, and an item in the stream, may only be missing
//!    if it was in RabbitMQ when that lost its disk. The target of a redirect counts as fetched with it.
//! 2. All copies of an item have the same id, and no two URLs share one.
//! 3. Each fetch beyond those that a page needs repeats one that a fault hit between its request and its settlement, or
//!    any fetch before Redis was emptied. URLs that wait for PostgreSQL stay in hand, and are not fetched again.
//! 4. The crawl ends, once, and no page is requested after its end.
//! 5. Its counters count every page, each by its right end, and the event of the end has the same counters. They may
//!    lack only pages that Redis was made to forget and that were not requested again. A limit is reached exactly, and
//!    the URLs that it leaves out are counted.
//! 6. No page is requested while the crawl is paused or the host blocked, nor after its crawl was cancelled. Each
//!    replayed dead letter is fetched, unless Redis has forgotten the order.
//! 7. All of this holds for tasks and requests as well: each stands for a page, which a task's program requests, or
//!    which answers a request. A task arrives with its own recipe, priority and id, a request with its own method,
//!    body, header field and data, however often they are published.
//!
//! Either server may lose everything, but not both at once. Redis may while a worker dies, but then URLs that the
//! worker was fetching for the early lane may be lost with it: one kind does this, and the ledger accepts it. Before a
//! fault that must not meet an earlier one the plan therefore gives the fleet twice its `recovery.lost_after` to
//! recover; and if the other server is to lose data, all pages that were on their way at the first loss must have
//! arrived.
//!
//! The embedded engine has its own short suite in [`embedded`]: kills, judged by the same ledger. More tests of a full
//! or a read-only [`disk`] are among trawl's own.

pub mod beside;
pub mod broker;
pub mod clock;
pub mod database;
pub mod dead_letters;
pub mod disk;
pub mod embedded;
pub mod end;
pub mod environment;
pub mod fate;
pub mod fleet;
pub mod inject;
pub mod kind;
pub mod layout;
pub mod ledger;
pub mod named;
pub mod operator;
pub mod options;
mod order;
pub mod outcome;
pub mod plan;
pub mod private;
mod process;
pub mod proxy;
mod recipes;
pub mod replies;
pub mod report;
pub mod run;
pub mod scenario;
pub mod signal;
pub mod store;
pub mod stored;
pub mod timeline;
pub mod units;
pub mod web;
