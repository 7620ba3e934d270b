//! The HTTP side of calls: addresses, headers, and the meaning of responses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use trawl_common::names::RunnerName;
use trawl_common::ports::{self, Error, ErrorKind, RunnerKey};
use trawl_common::relay::{Call, MAX_BODY_BYTES, NUMBER, PATH, POLL, RUNNER, Reply, SESSION};
use trawl_common::text::{printable, with_causes};
use url::Url;

/// Time limit for a call: longer than the API waits for work.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of calls in a row that fail before the next address is used.
const FAILURES: usize = 3;

const _: () = assert!(TIMEOUT.as_secs() > POLL.as_secs());

/// The API at one or several addresses, as one runner calls it.
pub struct Api {
    client: reqwest::Client,
    addresses: Vec<Url>,
    /// The number of failed calls in a row, which also determines the address.
    failures: AtomicUsize,
    name: RunnerName,
    key: RunnerKey,
}

/// The error for an address at which no API can be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// There is none.
    #[error("name the API, such as https://trawl.example")]
    None,
    /// It is no URL of a server.
    #[error("`{0}` is no address of an API: write https://trawl.example")]
    Url(String),
    /// The key of the runner would be sent where others can read it.
    #[error("`{0}`: others could read the runner's key on its way: use https://, or a local address")]
    Plain(String),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The API is away, or overloaded: try again.
    Away(String),
    /// The API does not know the session.
    NoSession,
    /// The runner has no access, or no longer.
    NotAllowed(String),
    /// The call failed.
    Failed(Error),
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Away(why) => Self::new(ErrorKind::Unavailable, why),
            CallError::NoSession => {
                Self::new(ErrorKind::Unavailable, "the API has lost the session: joining anew")
            }
            CallError::NotAllowed(why) => Self::new(ErrorKind::Refused, why),
            CallError::Failed(error) => error,
        }
    }
}

impl Api {
    /// Returns the API at these addresses, for the runner with this name and this key.
    ///
    /// # Errors
    /// Fails if an address is no URL, or would have the key sent in the clear to another machine.
    pub fn new(addresses: &[String], name: RunnerName, key: RunnerKey) -> Result<Self, BadAddress> {
        let addresses = addresses.iter().map(|text| address(text)).collect::<Result<Vec<_>, _>>()?;
        if addresses.is_empty() {
            return Err(BadAddress::None);
        }
        let client = reqwest::Client::builder()
            .user_agent(concat!("trawl-runner/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let client = client.map_err(|error| BadAddress::Client(with_causes(&error)))?;
        Ok(Self { client, addresses, failures: AtomicUsize::new(0), name, key })
    }

    /// Returns the name of the runner.
    pub fn name(&self) -> &RunnerName {
        &self.name
    }

    /// Returns the digits by which people tell this runner from another of its name.
    pub fn fingerprint(&self) -> String {
        self.key.digest().fingerprint()
    }

    /// Makes a call, in a session unless it begins one. A `number` makes repeated calls one.
    ///
    /// # Errors
    /// Returns why there is no result.
    pub async fn call<C: Call>(
        &self,
        call: &C,
        session: Option<&str>,
        number: Option<u64>,
    ) -> Result<C::Reply, CallError> {
        let body = serde_json::to_vec(call).map_err(|error| refused(error.to_string()))?;
        let mut request = self
            .client
            .post(self.url(C::NAME))
            .bearer_auth(self.key.reveal())
            .header(RUNNER, self.name.as_str())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        if let Some(number) = number {
            request = request.header(NUMBER, number);
        }
        let answered = self.read(request).await;
        match &answered {
            Err(CallError::Away(_)) => self.failures.fetch_add(1, Ordering::Relaxed),
            // The address that answers stays.
            _ => self
                .failures
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |failures| {
                    Some(failures - failures % FAILURES)
                })
                .unwrap_or_default(),
        };
        let body = answered?;
        let reply: Reply<C::Reply> = serde_json::from_slice(&body)
            .map_err(|error| refused(format!("its response cannot be read: {error}")))?;
        ports::Result::from(reply).map_err(CallError::Failed)
    }

    /// Returns the URL of a call at the address in use.
    fn url(&self, name: &str) -> Url {
        let at = self.failures.load(Ordering::Relaxed) / FAILURES % self.addresses.len();
        let mut url = self.addresses[at].clone();
        url.set_path(&format!("{}{PATH}/{name}", url.path().trim_end_matches('/')));
        url
    }

    /// Sends a request, and returns the body of the response if the call was carried out.
    async fn read(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>, CallError> {
        // The URL is known, and may have a password.
        let away =
            |error: reqwest::Error| CallError::Away(printable(&with_causes(&error.without_url()), 300));
        let mut response = request.send().await.map_err(away)?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(away)? {
            if body.len() + part.len() > MAX_BODY_BYTES {
                return Err(refused("its response is too large".to_owned()));
            }
            body.extend_from_slice(&part);
        }
        match status {
            StatusCode::OK => Ok(body),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(CallError::NotAllowed(detail(&body))),
            StatusCode::CONFLICT => Err(CallError::NoSession),
            StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::NOT_FOUND => {
                Err(refused(detail(&body)))
            }
            _ => Err(CallError::Away(format!("it answered {status}: {}", detail(&body)))),
        }
    }
}

fn refused(why: String) -> CallError {
    CallError::Failed(Error::new(ErrorKind::Refused, format_args!("the API: {why}")))
}

/// Returns the text of a problem (RFC 9457).
fn detail(body: &[u8]) -> String {
    let problem: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
    printable(detail.unwrap_or("it gives no reason"), 500)
}

fn address(text: &str) -> Result<Url, BadAddress> {
    let url = Url::parse(text).ok().filter(|url| url.has_host() && matches!(url.scheme(), "http" | "https"));
    let url = url.ok_or_else(|| BadAddress::Url(printable(text, 200)))?;
    let is_local = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if url.scheme() == "http" && !is_local {
        return Err(BadAddress::Plain(printable(text, 200)));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_sent_in_the_clear_to_this_machine_alone() {
        for fit in
            ["https://trawl.example", "http://127.0.0.1:8080", "http://localhost:1/", "http://[::1]:8080"]
        {
            assert!(address(fit).is_ok(), "{fit}");
        }
        for plain in ["http://trawl.example", "http://10.0.0.7:8080"] {
            assert!(matches!(address(plain), Err(BadAddress::Plain(_))), "{plain}");
        }
        for wrong in ["trawl.example", "ftp://trawl.example", "", "data:text/plain,x"] {
            assert!(matches!(address(wrong), Err(BadAddress::Url(_))), "{wrong}");
        }
    }
}
