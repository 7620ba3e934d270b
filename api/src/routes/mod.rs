//! The handlers, by what they are about.

pub(crate) mod crawls;
pub(crate) mod dead_letters;
pub(crate) mod events;
pub(crate) mod hosts;
pub(crate) mod meta;
pub(crate) mod urls;
pub(crate) mod workers;
