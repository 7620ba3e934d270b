//! The fault suite: a fleet of real processes on private servers crawls a synthetic site, while workers, producer,
//! Redis and RabbitMQ are killed, stopped, cut off and emptied; and at the end every URL is accounted for.
//!
//! - [`plan`] draws from a seed which of the [`kind`]s of fault comes when. A seed repeats a run as far as a race can
//!   be repeated: the same faults, on the same page, each for as long.
//! - A [`scenario`] says what is crawled: sitemaps or links, with limits or without, by one spider or several; pages, tasks or
//!   requests ([`units`]). What tasks and requests say is in `recipes`, their spiders' programs in `programs`.
//! - [`layout`] draws the pages of a site, and [`web`] serves it. Each page has a fate: most are good, some are missing,
//!   redirect, never answer, fail at first or fail always. It logs who asked for what and when, and keeps the crawl in
//!   step with the plan, so that it lasts for every fault.
//! - [`store`] and [`broker`] are the servers, at fixed addresses; a [`proxy`] stands before each. A [`database`] is one
//!   of the sinks.
//! - [`fleet`] runs the processes: a worker that ends is replaced, as compose would, and a producer that fails is run
//!   again with the same crawl, as cron would.
//! - [`operator`] is who pauses crawls, blocks hosts, sends dead letters again, and has crawls run [`beside`]: one that is
//!   cancelled, one whose sink takes nothing for a while, one whose disk is full.
//! - [`mod@clock`] is that of a machine that is not set right; [`replies`] are lost.
//! - [`environment`] is a scenario on all of that, [`inject`] carries a fault out, [`run`] takes a scenario through many.
//! - [`ledger`] judges, by the site's log, what is [`stored`] in each sink, what came out of `failed_urls` and `events`
//!   ([`dead_letters`]), and what `trawl status` says at the end.
//!
//! What the ledger demands:
//!
//! 1. Every URL that sitemaps, links or redirects lead to has its right end: an item in each sink, with what its page
//!    shows, or a dead letter with the right reason. A dead letter, and an item in the stream, may only be missing if it was in
//!    RabbitMQ when that lost its disk. Where a redirect led counts as fetched with it.
//! 2. Every copy of an item has one id, and no two URLs share one.
//! 3. Each fetch beyond those that a page needs repeats one that a fault hit between its request and its settlement;
//!    after Redis was emptied, any fetch before that. What waits for PostgreSQL stays in hand, and is not repeated.
//! 4. The crawl ends, once, and no page is asked for after its end.
//! 5. Its counters count every page, each by its right end, and the event of the end says the same. They may lack only what
//!    Redis was made to forget and nobody asked for again. A limit is reached exactly, and what it leaves out is counted.
//! 6. No page is asked for while the crawl is paused or the host blocked, and none of a crawl that was cancelled. Each
//!    dead letter that is sent again is a fetch, unless Redis has forgotten the order.
//!
//! 7. Tasks and requests are pages by another name, and all of this holds for them: each page is what one task's program asks for, or the
//!    answer to one request. A task arrives with its own recipe, priority and id, a request with its own method, body, header field and
//!    data, however often they are sent again.
//!
//! Either server may lose everything, not both at once. Redis may while a worker dies, but then what that was fetching for
//! the early lane may be lost with it: one kind does this, and the ledger lets it pass. So before a fault that must
//! not meet an earlier one the plan gives the fleet twice its `recovery.lost_after` to mend that; and where the other
//! server is to lose data, what was on its way at the first loss must have arrived.
//!
//! The embedded engine has its own short course in [`embedded`]: kills, judged by the same ledger. More of what
//! comes of a full or a read-only [`disk`] is in trawl's tests.

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
