//! The third engine: the ports of a worker over the HTTP API, which relays each call to its own engine
//! ([`trawl_common::relay`]). So a runner is the same worker on a machine that reaches nothing but the API.
//!
//! - [`Api`] sends calls, to the next of its addresses if one is away;
//! - [`Link`] keeps the session in which they are made, and knows what was handed out in it;
//! - [`ports`] returns the worker's ports over a link;
//! - [`KeyFile`] holds the key by which the API knows the runner.
//!
//! While the API is away, every call is repeated, as with any other engine. When it has lost the session, the runner joins
//! anew: what it held is no longer its own, and is handed out again.

mod api;
mod frontier;
mod key_file;
mod link;
mod ports;
mod sinks;

pub use api::{Api, BadAddress, CallError};
pub use key_file::{KeyFile, NoKeyFile};
pub use link::Link;
pub use ports::ports;
