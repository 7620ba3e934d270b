//! The callers of the API, and their rights.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::limits::Caller;
use crate::problem::{Kind, Problem};

/// An authenticated caller and their role. Only [`Access`](crate::Access) makes one, so a request that carries one has
/// been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    caller: Caller,
    role: Role,
}

impl Identity {
    pub(crate) fn new(caller: Caller, role: Role) -> Self {
        Self { caller, role }
    }

    /// Returns the name of the token's holder, or the address of a caller without a token.
    pub fn name(&self) -> String {
        self.caller.to_string()
    }

    /// Returns the caller under which the requests are counted.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether they may change things.
    pub fn is_operator(&self) -> bool {
        self.role == Role::Operator
    }
}

/// The permissions of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// May read.
    Viewer,
    /// May also change things.
    Operator,
}

/// Handlers are reached only through `guard`, which adds the identity.
impl<S: Send + Sync> FromRequestParts<S> for Identity {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let nobody = || Problem::new(Kind::Unauthorized, "nobody has said who calls");
        parts.extensions.get().cloned().ok_or_else(nobody)
    }
}
