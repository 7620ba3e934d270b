//! Handing out records to workers.

pub(crate) mod claiming;
pub(crate) mod dispatch;
