//! trawl
pub mod redis;
pub mod rabbitmq;
