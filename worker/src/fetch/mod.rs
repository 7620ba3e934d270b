//! Fetching one URL over HTTP, within limits of time, size and address.

mod body;
mod failure;
mod guard;
mod redirect;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderValue};
use trawl_common::outcome::{Class, Failure};
use trawl_common::ports::Response;
use trawl_common::settings;
use trawl_common::url::{CanonicalUrl, literal_address};

use self::guard::Guard;
use self::redirect::Trail;

/// Connections kept open to one host: politeness needs no more.
const IDLE_PER_HOST: usize = 2;
/// How long an idle connection is kept. There is no limit over all hosts, so time must be one.
const IDLE_TIME: Duration = Duration::from_secs(15);

/// Fetches pages, and keeps the connections that the next ones can use.
#[derive(Debug)]
pub struct Fetcher {
    client: reqwest::Client,
    guard: Guard,
    timeout: Duration,
    max_body: u64,
}

impl Fetcher {
    /// A fetcher with these settings. The process must have a default rustls crypto provider. Settings that
    /// no client can be made of, such as a user agent with a line break, are an error.
    pub fn new(settings: &settings::Fetch) -> Result<Self, reqwest::Error> {
        let guard = Guard { allow_private: settings.allow_private };
        let client = reqwest::Client::builder()
            .user_agent(settings.user_agent_line())
            .default_headers(preferences())
            .connect_timeout(settings.connect_timeout)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_idle_timeout(IDLE_TIME)
            .tcp_nodelay(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .dns_resolver(Arc::new(guard))
            .build()?;
        let max_body = settings.max_body.as_u64();
        Ok(Self { client, guard, timeout: settings.timeout, max_body })
    }

    /// Asks for `url` and reads the answer, following redirects. An answer whose status is not a success
    /// is a [`Failure`], as is one that takes longer, or has a larger body, than settings allow.
    pub async fn fetch(&self, url: &CanonicalUrl) -> Result<Response, Failure> {
        tokio::time::timeout(self.timeout, self.follow(url)).await.unwrap_or_else(|_| {
            let limit = self.timeout;
            Err(Failure::new(
                Class::Timeout,
                format_args!("no complete answer within {limit:?} (`fetch.timeout`)"),
            ))
        })
    }

    async fn follow(&self, url: &CanonicalUrl) -> Result<Response, Failure> {
        let mut trail = Trail::new(url.clone());
        loop {
            let response = self.ask(trail.last()).await?;
            if !trail.follow(&response)? {
                return self.read(response, trail.into_target()).await;
            }
        }
    }

    async fn ask(&self, url: &CanonicalUrl) -> Result<reqwest::Response, Failure> {
        let url = url.to_url();
        if let Some(address) = literal_address(&url) {
            self.guard.check(address).map_err(|refused| Failure::new(Class::Forbidden, refused))?;
        }
        self.client.get(url).send().await.map_err(|error| failure::no_answer(&error))
    }

    async fn read(
        &self,
        response: reqwest::Response,
        redirected_to: Option<CanonicalUrl>,
    ) -> Result<Response, Failure> {
        if !response.status().is_success() {
            return Err(failure::status(&response));
        }
        let status = response.status().as_u16();
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = body::read(response, self.max_body).await?;
        Ok(Response { status, content_type, redirected_to, body })
    }
}

/// Pages rather than data, in English where there is a choice, and anything rather than nothing.
fn preferences() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml,*/*;q=0.8")),
        (ACCEPT_LANGUAGE, HeaderValue::from_static("en,*;q=0.5")),
    ])
}
