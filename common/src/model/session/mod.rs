//! A session of a spider at a site: its cookies, what its log-in gave, and who logs in.

mod id;
mod state;
#[cfg(test)]
mod tests;

pub use self::id::{SessionId, SessionOwner};
pub use self::state::{BeginLogin, LEASE, LoginResult, SessionState};
