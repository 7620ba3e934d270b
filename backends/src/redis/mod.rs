//! The frontier, the host schedules, the response cache and the memory of pages on Redis.
//!
//! Every transition is one Lua script, bounded to 500 URLs, whose keys share one slot. All clocks are
//! the server's.

mod books;
mod cache;
mod clock;
mod connect;
mod control;
mod corrupt;
mod foreign;
mod frontier;
mod hear;
mod host_control;
mod hosts;
mod keys;
mod link;
mod look;
mod opening;
mod packing;
mod pages;
mod readers;
mod restore;
mod robots;
mod schema;
mod scripts;
mod seen;
mod sweep;
mod workers;

pub use cache::RedisCache;
pub use connect::{connect, warn_of_eviction};
pub use frontier::RedisFrontier;
pub use hosts::RedisHosts;
pub use link::Link;
pub use packing::{Packing, spiders};
pub use pages::RedisPages;
pub use readers::Readers;
use redis::{RedisError, ServerErrorKind};
pub use schema::check_schema;
use trawl_common::ports::{Error, ErrorKind};

use crate::tls;

fn kind(error: &RedisError) -> ErrorKind {
    match error.kind() {
        redis::ErrorKind::AuthenticationFailed | redis::ErrorKind::InvalidClientConfig => ErrorKind::Refused,
        redis::ErrorKind::UnexpectedReturnType => ErrorKind::Corrupt,
        redis::ErrorKind::Server(ServerErrorKind::NoPerm) => ErrorKind::Refused,
        _ if is_of_wrong_type(error) => ErrorKind::Corrupt,
        _ if tls::is_refusal(error) => ErrorKind::Refused,
        _ => ErrorKind::Unavailable,
    }
}

/// Whether the key of a command, or of one of a pipeline, is of another type than trawl makes it.
fn is_of_wrong_type(error: &RedisError) -> bool {
    let errors = error.clone().into_server_errors();
    errors.is_some_and(|errors| errors.iter().any(|(_, error)| error.code() == "WRONGTYPE"))
}

fn failed(error: RedisError) -> Error {
    Error::new(kind(&error), format!("redis: {error}"))
}

#[cfg(test)]
mod tests;
