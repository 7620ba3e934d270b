//! The frontier, the host schedules, the response cache and the page history on Redis.
//!
//! Every transition is one Lua script, bounded to 500 URLs, whose keys share one slot. All clocks are
//! the server's.

mod budget;
mod cache;
mod claim;
mod clock;
mod connect;
mod control;
mod corrupt;
mod crawl_stats;
mod durability;
mod eviction;
mod fields;
mod foreign;
mod forgetting;
mod frontier;
mod full;
mod host_calls;
mod host_control;
mod host_news;
mod hosts;
mod jobs;
mod journal;
mod journal_restore;
mod keys;
mod lanes;
mod link;
mod logs;
mod look;
mod named;
mod news;
mod opening;
mod orders;
mod packing;
mod pages;
mod places;
mod readers;
mod records;
mod restore;
mod robots;
mod round;
mod schedules;
mod schema;
mod script_calls;
mod scripts;
mod second_home;
mod seen;
mod spider_store;
mod standings;
mod stats;
mod sweep;
mod tasks;
mod urgent;
mod url_state;
mod workers;

pub use cache::RedisCache;
pub use connect::{connect, evicts, warn_of_eviction};
pub use hosts::RedisHosts;
pub use jobs::RedisJobs;
pub use journal::RedisJournal;
pub use link::Link;
pub use logs::RedisLogs;
pub use packing::{Packing, spiders};
pub use pages::RedisPages;
pub use readers::Readers;
pub use records::RedisRecords;
use redis::{RedisError, ServerError, ServerErrorKind};
pub use schedules::RedisSchedules;
pub use schema::check_schema;
pub use spider_store::RedisSpiderStore;
use trawl_common::ports::{Error, ErrorKind};

use crate::tls;

fn kind(error: &RedisError) -> ErrorKind {
    match error.kind() {
        redis::ErrorKind::AuthenticationFailed | redis::ErrorKind::InvalidClientConfig => ErrorKind::Refused,
        redis::ErrorKind::UnexpectedReturnType => ErrorKind::Corrupt,
        redis::ErrorKind::Server(ServerErrorKind::NoPerm) => ErrorKind::Refused,
        _ if has_code(error, "OOM") => ErrorKind::Full,
        _ if has_code(error, "WRONGTYPE") || has_code(error, "CORRUPT") || is_misread(error) => {
            ErrorKind::Corrupt
        }
        _ if tls::is_refusal(error) => ErrorKind::Refused,
        _ => ErrorKind::Unavailable,
    }
}

/// Returns whether the server refused a command, or one of a pipeline, with this code: `WRONGTYPE` if a key has
/// another type than trawl gives it, `CORRUPT` if a script says so of its data, `OOM` if there is no memory left.
fn has_code(error: &RedisError, code: &str) -> bool {
    has_error(error, |error| error.code() == code)
}

/// Returns whether a script failed on data of the wrong kind, such as a word in place of a number. Redis has no
/// code for that.
fn is_misread(error: &RedisError) -> bool {
    const SIGNS: [&str; 3] = ["attempt to perform", "attempt to compare", "is not an integer"];
    has_error(error, |error| {
        let reply = error.details().filter(|reply| reply.contains("user_script"));
        reply.is_some_and(|reply| SIGNS.iter().any(|sign| reply.contains(sign)))
    })
}

fn has_error(error: &RedisError, is_it: impl Fn(&ServerError) -> bool) -> bool {
    let errors = error.clone().into_server_errors();
    errors.is_some_and(|errors| errors.iter().any(|(_, error)| is_it(error)))
}

fn failed(error: RedisError) -> Error {
    match kind(&error) {
        ErrorKind::Full => Error::full(),
        kind => Error::caused_by(kind, "redis", &error),
    }
}

#[cfg(test)]
mod tests;
