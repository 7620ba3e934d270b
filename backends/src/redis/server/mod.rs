//! The connection to Redis, and what trawl needs of the server: durability, memory, its clock, a version.

pub(crate) mod clock;
mod cluster;
pub(crate) mod connect;
pub(crate) mod durability;
pub(crate) mod eviction;
pub(crate) mod examine;
pub(crate) mod full;
pub(crate) mod link;
pub(crate) mod schema;
mod single;
