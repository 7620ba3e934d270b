//! Opening crawls, and admitting URLs to them.

pub(crate) mod opening;
