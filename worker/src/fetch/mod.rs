//! From leave to ask a host to what its page yields.

pub(crate) mod apart;
pub(crate) mod backoff;
pub(crate) mod blameless;
pub(crate) mod dispatcher;
pub(crate) mod domains;
mod page;
