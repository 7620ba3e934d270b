//! From the sources that a person names to findings: what is asked for, when, and what it says.

pub(crate) mod asking;
pub(crate) mod discovery;
mod download;
pub(crate) mod page;
pub(crate) mod read;
pub(crate) mod read_error;
pub(crate) mod revisit;
mod sitemap_queue;
pub(crate) mod sorter;
pub(crate) mod source;
pub(crate) mod start;
