//! The origin of a request: an address and a connection.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::http::Extensions;
use trawl_common::web::newcomers::Newcomer;

use crate::permits::Permit;

/// The origin of a request.
#[derive(Clone)]
pub struct Peer {
    pub(crate) address: IpAddr,
    pub(crate) connection: Arc<Connection>,
}

impl Peer {
    /// Returns the address from which the request with these extensions came.
    pub fn of(extensions: &Extensions) -> IpAddr {
        extensions.get::<Self>().map_or(IpAddr::from([0; 4]), |peer| peer.address)
    }

    /// Marks the caller of the request with these extensions as authenticated: their connection will not be
    /// closed in favour of another.
    pub fn note_known(extensions: &Extensions) {
        if let Some(Self { connection, .. }) = extensions.get()
            && let Some(permit) = connection.newcomer.leave()
        {
            let _ = connection.permit.set(permit);
        }
    }
}

/// A connection, and its permit once its caller is authenticated.
pub(crate) struct Connection {
    pub(crate) newcomer: Newcomer<Permit>,
    pub(crate) permit: OnceLock<Permit>,
}
