//! The sweep, and restoring what a server has lost or others have overwritten.

pub(crate) mod corrupt;
pub(crate) mod foreign;
pub(crate) mod look;
pub(crate) mod named;
pub(crate) mod restore;
pub(crate) mod round;
pub(crate) mod second_home;
pub(crate) mod sweep;
