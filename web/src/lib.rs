//! trawl's HTTP client, the same for pages and for sitemaps: fetching one URL within limits of time, size
//! and address.

mod body;
mod failure;
mod guard;
mod redirect;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderValue};
use trawl_common::outcome::{Class, Failure};
use trawl_common::ports::Response;
use trawl_common::settings;
use trawl_common::url::{CanonicalUrl, literal_address};

use self::guard::Guard;
use self::redirect::Trail;
/// Settings that no client can be made of, such as a user agent with a line break.
pub use reqwest::Error as Unusable;

/// How long an idle connection is kept. There is no limit over all hosts, so time must be one.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// Fetches pages, and keeps the connections that the next ones can use.
#[derive(Debug)]
pub struct Fetcher {
    client: reqwest::Client,
    guard: Guard,
    timeout: Duration,
    max_body: u64,
}

/// INTERIM
pub const MAX_REDIRECTS: usize = 10;
/// INTERIM
#[derive(Debug)]
pub enum Answer {
    /// INTERIM
    Page(Response),
    /// INTERIM
    Redirect(CanonicalUrl),
    /// INTERIM
    Unread {
        /// INTERIM
        content_type: String,
    },
}
/// INTERIM
pub struct Start {
    /// INTERIM
    pub status: u16,
    /// INTERIM
    pub body: Bytes,
    /// INTERIM
    pub retry_after: Option<Duration>,
}

impl Fetcher {
    /// INTERIM
    pub async fn ask(&self, url: &CanonicalUrl) -> Result<Answer, Failure> {
        within(self.timeout, async {
            let mut trail = Trail::new(url.clone());
            let response = self.request(url).await?;
            if trail.follow(&response)? {
                return Ok(Answer::Redirect(trail.last().clone()));
            }
            if !response.status().is_success() {
                return Err(failure::status(&response));
            }
            Ok(Answer::Page(self.read(response, None).await?))
        })
        .await
    }

    /// INTERIM
    pub async fn read_start(
        &self,
        url: &CanonicalUrl,
        most: usize,
        _redirects: usize,
    ) -> Result<Start, Failure> {
        let mut trail = Trail::new(url.clone());
        loop {
            let response = self.request(trail.last()).await?;
            if trail.follow(&response)? {
                continue;
            }
            let failure = failure::status(&response);
            let status = response.status().as_u16();
            let body = self.read(response, None).await?.body;
            let body = body.slice(..body.len().min(most));
            return Ok(Start { status, body, retry_after: failure.retry_after });
        }
    }

    /// A fetcher with these settings. The process must have a default rustls crypto provider.
    pub fn new(settings: &settings::Fetch) -> Result<Self, Unusable> {
        let guard = Guard { allow_private: settings.allow_private };
        let client = reqwest::Client::builder()
            .user_agent(settings.user_agent_line())
            .default_headers(preferences())
            .connect_timeout(settings.connect_timeout)
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
        within(self.timeout, self.follow(url)).await
    }

    /// Asks for `url` and hands on its body as it comes, however large: for sitemaps, whose reader has limits of
    /// its own. The time limit holds for the answer, and anew for each part of the body.
    pub async fn open(
        &self,
        url: &CanonicalUrl,
    ) -> Result<impl Stream<Item = Result<Bytes, Failure>> + Send + use<>, Failure> {
        let (response, _) = within(self.timeout, self.answer(url)).await?;
        let timeout = self.timeout;
        Ok(stream::try_unfold(response, move |mut response| async move {
            let next = async { response.chunk().await.map_err(|error| failure::broken_body(&error)) };
            let chunk = within(timeout, next).await?;
            Ok(chunk.map(|chunk| (chunk, response)))
        }))
    }

    async fn follow(&self, url: &CanonicalUrl) -> Result<Response, Failure> {
        let (response, redirected_to) = self.answer(url).await?;
        self.read(response, redirected_to).await
    }

    /// The answer at the end of the redirects, if its status is a success, and where it came from if
    /// that is another URL.
    async fn answer(&self, url: &CanonicalUrl) -> Result<(reqwest::Response, Option<CanonicalUrl>), Failure> {
        let mut trail = Trail::new(url.clone());
        loop {
            let response = self.request(trail.last()).await?;
            if trail.follow(&response)? {
                continue;
            }
            if !response.status().is_success() {
                return Err(failure::status(&response));
            }
            return Ok((response, trail.into_target()));
        }
    }

    async fn request(&self, url: &CanonicalUrl) -> Result<reqwest::Response, Failure> {
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
        let status = response.status().as_u16();
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = body::read(response, self.max_body).await?;
        Ok(Response { status, content_type, redirected_to, body })
    }
}

/// The result of `call`, or a failure when it takes longer than `limit`.
async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        let detail = format_args!("no complete answer within {limit:?} (`fetch.timeout`)").to_string();
        Err(Failure::new(Class::Timeout, detail))
    })
}

/// Pages rather than data, in English where there is a choice, and anything rather than nothing.
fn preferences() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("text/html,application/xhtml+xml,*/*;q=0.8")),
        (ACCEPT_LANGUAGE, HeaderValue::from_static("en,*;q=0.5")),
    ])
}
