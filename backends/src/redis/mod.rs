//! The records, jobs, host schedules, sessions, page histories, response cache, log and runners on Redis.
//!
//! Every transition is one Lua script, bounded to 500 URLs, whose keys share one slot. All clocks are
//! the server's.

mod admission;
mod claim;
mod crawls;
mod fields;
mod hosts;
mod jobs;
mod journal;
mod keys;
mod pages;
mod projects;
mod records;
mod recovery;
mod runners;
mod script_calls;
mod scripts;
mod seen;
mod server;
mod sessions;
mod settle;
mod workers;

pub use hosts::RedisHosts;
pub use jobs::RedisJobs;
pub use jobs::schedules::RedisSchedules;
pub use jobs::spider_store::RedisSpiderStore;
pub use journal::RedisJournal;
pub use pages::RedisPages;
pub use pages::cache::RedisCache;
pub use projects::RedisProjects;
pub use records::RedisRecords;
use redis::{RedisError, ServerError, ServerErrorKind};
pub use runners::RedisRunners;
pub use seen::packing::{Packing, spiders};
pub use server::connect::{connect, evicts};
pub use server::examine::examine;
pub(crate) use server::examine::warn_of_eviction;
pub use server::link::Link;
pub use server::schema::check_schema;
pub use sessions::RedisSessions;
use trawl_common::ports::{Error, ErrorKind};
pub use workers::logs::RedisLogs;
pub use workers::readers::Readers;

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
