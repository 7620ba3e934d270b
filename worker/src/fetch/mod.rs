//! From the permission to ask a host to the yield of its page.

pub(crate) mod apart;
pub(crate) mod backoff;
pub(crate) mod blameless;
pub(crate) mod dispatcher;
pub(crate) mod domains;
mod page;
