//! Forwards requests of other programs, which use this process as their proxy.

use std::fmt::Display;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Request, Response, StatusCode, Version};
use trawl_common::frontier::outcome::{Class, Failure, is_refusal};
use trawl_common::settings;
use trawl_common::web::url::{CanonicalUrl, Host};
use url::Url;

use super::exits::Exits;
use super::guard::Guard;
use super::proxy::Proxy;
use super::threads::Threads;
use super::time_limit::within;
use super::{blame, failure};

/// Fields that concern one connection (RFC 9110 7.6.1). `Expect` is among them because the proxy itself has asked for
/// the body, and `Host` because it is derived from the URL again (RFC 9112 3.2.2).
const OF_ONE_HOP: [HeaderName; 11] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
    HOST,
];

/// The body of a response, as received.
pub type PassedBody = reqwest::Body;

/// Forwards requests of other programs. It adds only what the connection needs, and a user agent if the request has
/// none. Responses are returned unchanged: redirects, any status, the body in its coding.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Passages through several proxies, one of which takes each request in place of this one.
    pub(super) exits: Option<Exits<Passage>>,
    pub(super) client: reqwest::Client,
    pub(super) threads: Option<Threads>,
    pub(super) guard: Guard,
    pub(super) proxy: Option<Proxy>,
    pub(super) settings: Arc<settings::Fetch>,
}

/// A forwarded response.
#[derive(Debug)]
pub struct Passed {
    /// The response, whose body is still to be read.
    pub response: Response<PassedBody>,
    /// The failure that the status stands for, if the host asks for a back-off.
    pub refusal: Option<Failure>,
}

impl Passage {
    /// Checks whether settings allow the host and port of `url`, so that no request waits for a slot in vain.
    /// [`Passage::send`] and [`Passage::connect`] check again.
    ///
    /// # Errors
    /// Fails if the URL is not allowed.
    pub async fn may_ask(&self, url: &CanonicalUrl) -> Result<(), Failure> {
        let exit = self.exits.as_ref().and_then(Exits::first).unwrap_or(self);
        let url = url.to_url();
        exit.guard.check_behind(exit.proxy.as_ref(), &url).await?;
        match exit.proxy {
            Some(_) => Ok(()),
            None => exit.guard.allowed(&url).await.map(drop),
        }
    }

    /// Returns the result of `ask`, which takes the proxy that is to be taken for a host, and notes how that went.
    pub(super) async fn through<'a, T, F: Future<Output = Result<T, Failure>>>(
        &'a self,
        host: &Host,
        ask: impl FnOnce(&'a Self) -> F,
    ) -> Result<T, Failure> {
        let chosen = self.exits.as_ref().and_then(|exits| Some((exits, exits.for_host(host).next()?)));
        let Some((exits, (number, exit))) = chosen else { return ask(self).await };
        let answer = ask(exit).await;
        exits.note(number, host, answer.as_ref().err());
        answer
    }

    /// Sends a request, whose URI must be absolute. The head of the response must arrive within `fetch.timeout`.
    ///
    /// # Errors
    /// Fails if the request is not allowed, or there is no response.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Passed, Failure>
    where
        B: Body<Data = Bytes> + Send + Sync + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let url = CanonicalUrl::parse(&request.uri().to_string()).map_err(no_url)?;
        self.through(&url.host(), |exit| exit.send_itself(request)).await
    }

    async fn send_itself<B>(&self, request: Request<B>) -> Result<Passed, Failure>
    where
        B: Body<Data = Bytes> + Send + Sync + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string()).map_err(no_url)?;
        let (asked, proxy) = (url.clone(), self.proxy.as_ref());
        let answer = within(self.settings.timeout, async {
            self.guard.check_behind(proxy, &url).await?;
            let mut fields = parts.headers;
            remove_hop_by_hop(&mut fields);
            let asking = self.client.request(parts.method, url.clone()).headers(fields);
            let asking = asking.body(reqwest::Body::wrap(body)).send();
            let answer = match &self.threads {
                Some(threads) => threads.run(asking).await,
                None => asking.await,
            };
            passed(answer.map_err(|error| failure::no_answer(&error, &self.guard.known_addresses(&asked)))?)
        });
        match answer.await {
            Err(failure) => Err(blame::assign(failure, proxy, &self.guard, &url).await),
            passed => passed,
        }
    }
}

fn passed(answer: reqwest::Response) -> Result<Passed, Failure> {
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Failure::new(
            Class::Http,
            "101: the host speaks another protocol, which nobody asked for",
        ));
    }
    let refusal = is_refusal(answer.status().as_u16()).then(|| failure::status(&answer));
    let mut response = Response::from(answer);
    *response.version_mut() = Version::HTTP_11;
    remove_hop_by_hop(response.headers_mut());
    Ok(Passed { response, refusal })
}

/// Removes the fields that concern one connection, including those named in `Connection`.
fn remove_hop_by_hop(fields: &mut HeaderMap) {
    let named = fields.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> =
        named.flat_map(|names| names.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    for name in OF_ONE_HOP.iter().chain(&named) {
        fields.remove(name);
    }
}

pub(super) fn no_url(error: impl Display) -> Failure {
    Failure::new(Class::Forbidden, format_args!("not a URL that can be asked: {error}"))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn what_is_about_one_connection_goes_no_further() {
        let fields = [
            ("accept", "a"),
            ("connection", "close, X-Mine"),
            ("x-mine", "b"),
            ("proxy-authorization", "Basic c"),
            ("transfer-encoding", "chunked"),
            ("x-other", "d"),
            ("host", "e"),
        ];
        let pair = |(name, value): (&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut fields: HeaderMap = fields.into_iter().map(pair).collect();
        remove_hop_by_hop(&mut fields);
        let mut left: Vec<&str> = fields.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "x-other"]);
    }
}
