//! The fleet's log: reading it, and writing to it beside the work ([`LogWriter`]). Its entries are those of
//! [`logs`](crate::logs).

mod reading;
mod writer;

pub use reading::{LogPage, newer, newest};
pub use writer::{LogTargets, LogWriter};
