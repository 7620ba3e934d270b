//! Authentication and authorisation: tokens and roles, and protection against requests forged through
//! browsers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64;
use tracing::info;
use trawl_common::settings;
use trawl_common::text::printable;

use crate::holders::{Credentials, Holders};
use crate::identity::{Identity, Role};
use crate::limits::{Caller, Rates};
use crate::peer::Peer;
use crate::problem::{Kind, Problem};

/// Paths open to everyone: they reveal nothing about crawls.
const PUBLIC: [&str; 2] = ["/healthz", "/api/v1/openapi.json"];

/// The known callers and the limits on their requests.
pub struct Access {
    holders: Holders,
    requests: Rates,
}

/// The error for an address at which anyone could do anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} can be reached from other machines, and no caller needs a token: name one in api.operators (docs/api.md), or \
     listen on 127.0.0.1"
)]
pub struct Unprotected(SocketAddr);

impl Access {
    /// Returns the access rules of the settings, for an API that listens on `listen`.
    ///
    /// # Errors
    ///
    /// Fails if no token is set and `listen` can be reached from other machines.
    pub fn new(settings: &settings::Api, listen: SocketAddr) -> Result<Self, Unprotected> {
        let holders = Holders::new(&settings.viewers, &settings.operators);
        if holders.is_empty() && !listen.ip().is_loopback() {
            return Err(Unprotected(listen));
        }
        Ok(Self { holders, requests: Rates::of_requests() })
    }

    /// Returns the holder of a token with which someone at `peer` logs in. The rate of attempts is limited.
    pub async fn log_in(&self, peer: IpAddr, token: &str) -> Result<Identity, Problem> {
        let credentials = Credentials { name: None, token: token.to_owned() };
        let holder = self.holders.log_in(peer, credentials).await?;
        let holder = holder.ok_or_else(|| Problem::new(Kind::Unauthorized, "nobody has this token"))?;
        Ok(holder.identity())
    }

    /// Returns the identity of a caller from `peer` if no tokens are set; `None` if there are tokens. A
    /// request without a token whose `Host` is not this machine is a problem: another site may have pointed
    /// its own name here.
    pub fn anyone(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Option<Identity>, Problem> {
        if !self.holders.is_empty() {
            return Ok(None);
        }
        if !names_this_machine(headers) {
            let detail = "without tokens, the API answers only to localhost, 127.0.0.1 and [::1]";
            return Err(Problem::new(Kind::Misdirected, detail));
        }
        Ok(Some(Identity::new(Caller::Address(peer), Role::Operator)))
    }

    /// Authenticates a request, or fails if it may not be answered at all.
    async fn check(&self, head: &Parts) -> Result<Identity, Problem> {
        let headers = &head.headers;
        let peer = Peer::of(&head.extensions);
        if is_cross_site(headers) {
            let detail =
                "a page of another site has sent this: only programs, and pages of this address, may";
            return Err(Problem::new(Kind::Forbidden, detail));
        }
        if let Some(known) = head.extensions.get::<Identity>() {
            self.requests.check(known.caller())?;
            return Ok(known.clone());
        }
        if PUBLIC.contains(&head.uri.path()) {
            let caller = Caller::Address(peer);
            self.requests.check(&caller)?;
            return Ok(Identity::new(caller, Role::Viewer));
        }
        if self.holders.is_empty() {
            self.requests.check(&Caller::Address(peer))?;
        }
        if let Some(anyone) = self.anyone(headers, peer)? {
            return Ok(anyone);
        }
        let holder = match credentials(headers) {
            Some(credentials) => self.holders.find(peer, credentials).await?,
            None => None,
        };
        let Some(holder) = holder else {
            self.requests.check(&Caller::Address(peer))?;
            let detail = "send `Authorization: Bearer <token>`, with a token of api.viewers or api.operators";
            return Err(Problem::new(Kind::Unauthorized, detail));
        };
        let identity = holder.identity();
        self.requests.check(identity.caller())?;
        Ok(identity)
    }
}

/// Lets a request pass or rejects it. Requests that change something are logged with their caller.
pub(crate) async fn guard(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let identity = match access.check(&head).await {
        Ok(known) => known,
        Err(problem) => return problem.into_response(),
    };
    if !PUBLIC.contains(&head.uri.path()) {
        Peer::note_known(&head.extensions);
    }
    let caller = identity.name();
    let may_change = identity.is_operator();
    let mut request = Request::from_parts(head, body);
    request.extensions_mut().insert(identity);
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    if !may_change {
        let detail = format!("{caller} may only look: changes need a token of api.operators");
        return Problem::new(Kind::Forbidden, detail).into_response();
    }
    let (method, path) = (request.method().clone(), printable(request.uri().path(), 1024));
    let response = next.run(request).await;
    info!(caller, %method, path, status = response.status().as_u16(), "called");
    response
}

/// Returns the credentials in a request: `Bearer <token>`, or, from clients of Scrapyd, `Basic` with the
/// holder's name and the token as the password.
fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let (scheme, sent) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let sent = sent.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Credentials { name: None, token: sent.to_owned() });
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let sent = String::from_utf8(BASE64.decode(sent.as_bytes()).ok()?).ok()?;
    let (name, token) = sent.split_once(':')?;
    Some(Credentials { name: Some(name.to_owned()), token: token.to_owned() })
}

/// Whether a browser sends this request for a page of another site, according to Fetch Metadata or its
/// `Origin`.
pub fn is_cross_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text("host").unwrap_or_default();
    let is_other_origin = |origin: &str| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_none_or(|authority| !authority.eq_ignore_ascii_case(host))
    };
    text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"))
        || text("origin").is_some_and(is_other_origin)
}

/// Whether a request is addressed to this machine by a name that no DNS server can point elsewhere.
pub fn names_this_machine(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    // If there are two, a proxy in front of this server may have used the other one.
    let only = hosts.next().filter(|_| hosts.next().is_none());
    only.and_then(|host| Authority::try_from(host.as_bytes()).ok()).is_some_and(|authority| {
        let host = authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn with(headers: &[(&'static str, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn an_address_that_others_can_reach_needs_a_token() {
        let settings = settings::Api::default();
        for local in ["127.0.0.1:1", "[::1]:1"] {
            assert!(Access::new(&settings, local.parse().unwrap()).is_ok());
        }
        for reachable in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
            let error = Access::new(&settings, reachable.parse().unwrap()).err().unwrap().to_string();
            assert!(error.starts_with(reachable) && error.contains("api.operators"), "{error}");
        }
    }

    #[test]
    fn a_token_is_sent_alone_or_as_the_password_of_its_holder() {
        let sent = |text| credentials(&with(&[("authorization", text)]));
        let token =
            |name: Option<&str>| Credentials { name: name.map(str::to_owned), token: "t:0k".to_owned() };
        assert_eq!(sent("Bearer t:0k"), Some(token(None)));
        assert_eq!(sent("basic YW5uYTp0OjBr"), Some(token(Some("anna"))));
        for bad in ["Bearer", "Basic !", "Basic YW5uYQ==", "Basic /w==", "Digest t", ""] {
            assert_eq!(sent(bad), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn who_asks_too_often_is_told_when_to_ask_again() {
        let access = Access::new(&settings::Api::default(), "127.0.0.1:1".parse().unwrap()).unwrap();
        let request = Request::builder().header("host", "localhost").body(Body::empty()).unwrap();
        let (head, _) = request.into_parts();
        let mut refused = None;
        for _ in 0..5_000 {
            refused = refused.or(access.check(&head).await.err());
        }
        let refused = refused.unwrap().into_response();
        assert_eq!(refused.status(), 429);
        assert!(refused.headers().contains_key("retry-after"));
    }

    #[test]
    fn a_page_of_another_site_is_told_from_a_program_and_from_a_page_of_this_address() {
        let host = ("host", "127.0.0.1:8080");
        let cross = |more: &[(&'static str, &str)]| is_cross_site(&with(&[&[host], more].concat()));
        assert!(!cross(&[]), "a program");
        assert!(!cross(&[("origin", "http://127.0.0.1:8080"), ("sec-fetch-site", "same-origin")]));
        assert!(!cross(&[("sec-fetch-site", "none")]), "typed by a person");
        for site in ["cross-site", "same-site", "x"] {
            assert!(cross(&[("sec-fetch-site", site)]), "{site}");
        }
        for origin in ["http://evil.example", "http://127.0.0.1:3000", "null", ""] {
            assert!(cross(&[("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn a_name_that_a_dns_server_could_point_here_is_not_this_machine() {
        let local = |host| names_this_machine(&with(&[("host", host)]));
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "127.0.0.2", "[::1]:8080"] {
            assert!(local(host), "{host}");
        }
        for host in
            ["evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0", "", "::1"]
        {
            assert!(!local(host), "{host}");
        }
        assert!(!names_this_machine(&HeaderMap::new()));
        let mut two = with(&[("host", "localhost")]);
        two.append("host", "evil.example".parse().unwrap());
        assert!(!names_this_machine(&two));
    }
}
