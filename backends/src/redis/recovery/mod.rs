//! The sweep, and restoring what a server has lost or others have overwritten.

pub(crate) mod broker_backup;
pub(crate) mod corrupt;
pub(crate) mod named;
pub(crate) mod restore;
pub(crate) mod sweep;
pub(crate) mod sweep_position;
pub(crate) mod sweeper;
pub(crate) mod wrong_type;
