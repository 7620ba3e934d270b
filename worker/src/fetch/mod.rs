//! From the permission to ask a host to the yield of its page.

pub(crate) mod dispatcher;
pub(crate) mod known_links;
pub(crate) mod page;
