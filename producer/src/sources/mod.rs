//! Reads the named sources and turns them into findings: which ones to request, when, and their contents.

pub(crate) mod asking;
pub(crate) mod csv_rows;
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
