//! Access to pages: for logged-in visitors, or for anyone on this machine if no token is needed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use trawl_api::{Peer, is_cross_site};

use crate::Console;
use crate::address::address;
use crate::failure::Failure;
use crate::page;
use crate::sessions;
use crate::visitor::{Visitor, ended};

impl Console {
    /// Returns the visitor who sent a request; `None` if a log-in is needed first.
    pub(crate) fn visitor(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Option<Visitor>, Failure> {
        if let Some(identity) = self.access.anyone(headers, peer)? {
            let csrf = self.open_csrf.clone();
            return Ok(Some(Visitor { identity, csrf, has_session: false }));
        }
        let now = Instant::now();
        let session = sessions::names(headers).find_map(|name| self.sessions.find(name, now));
        Ok(session.map(|session| Visitor {
            identity: session.identity,
            csrf: session.csrf,
            has_session: true,
        }))
    }
}

/// Lets a request pass, redirects to the log-in, or rejects it. Failures of the handlers become pages.
pub(crate) async fn guard(State(console): State<Arc<Console>>, mut request: Request, next: Next) -> Response {
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD);
    if is_change && is_cross_site(request.headers()) {
        return page::of_failure(&Failure::forged("a page of another site has sent this"), None);
    }
    let visitor = match console.visitor(request.headers(), Peer::of(request.extensions())) {
        Ok(Some(visitor)) => {
            Peer::note_known(request.extensions());
            visitor
        }
        Ok(None) if is_change => return page::of_failure(&ended(), None),
        Ok(None) => return to_log_in(&request).into_response(),
        Err(failure) => return page::of_failure(&failure, None),
    };
    request.extensions_mut().insert(visitor.clone());
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<Failure>() {
        Some(failure) => page::of_failure(&failure, Some(visitor)),
        None => response,
    }
}

/// Lets only operators pass. Others do not even see the forms, since they could not send them.
pub(crate) async fn operators(visitor: Visitor, request: Request, next: Next) -> Response {
    if visitor.is_operator() {
        return next.run(request).await;
    }
    let name = visitor.identity.name();
    let detail = format!(
        "{name} is a viewer, and this takes an operator: log in with a token of api.operators, or ask somebody who has one"
    );
    Failure::new(StatusCode::FORBIDDEN, "You may look, but change nothing", detail).into_response()
}

fn to_log_in(request: &Request) -> Redirect {
    let wanted = request.uri().path_and_query().map_or("/", |wanted| wanted.as_str());
    Redirect::to(&address("/log-in", [("next", wanted)]))
}
