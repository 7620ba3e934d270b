//! One delivery: a signed request.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::CONTENT_TYPE;
use sha2::Sha256;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::{self, ServerUrl};
use trawl_common::text::{printable, with_causes};
use trawl_web::Guard;
use url::Url;

use crate::tls;

/// Time limit for an answer; after it, the event counts as not taken.
const TIMEOUT: Duration = Duration::from_secs(10);

/// An HTTP client that follows no redirect.
pub(crate) struct Client {
    client: reqwest::Client,
    /// The guard that has to allow addresses; without it, any is allowed.
    guard: Option<Guard>,
}

impl Client {
    /// Creates a client for addresses that the operator has named, which may be private ones.
    pub(crate) fn new() -> Result<Self> {
        Self::with(reqwest::Client::builder(), None)
    }

    /// Creates a client for the addresses at which requests for pages are allowed.
    pub(super) fn guarded(settings: &settings::Fetch) -> Result<Self> {
        Self::behind(Guard::from_settings(settings.clone()))
    }

    /// Creates a client for the addresses that `guard` allows.
    pub(crate) fn behind(guard: Guard) -> Result<Self> {
        Self::with(reqwest::Client::builder().dns_resolver(Arc::new(guard.clone())), Some(guard))
    }

    fn with(client: reqwest::ClientBuilder, guard: Option<Guard>) -> Result<Self> {
        let client = client
            .tls_backend_preconfigured(tls::client(None))
            .user_agent(concat!("trawl/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .no_proxy()
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            .build();
        match client {
            Ok(client) => Ok(Self { client, guard }),
            Err(error) => Err(Error::caused_by(ErrorKind::Refused, "webhooks", &error)),
        }
    }

    /// Posts JSON, the event or delivery `id`. Fails with a reason unless the answer is that it was taken.
    pub(crate) async fn post(
        &self,
        address: &Address,
        id: &str,
        body: &[u8],
        timestamp: u64,
    ) -> std::result::Result<(), String> {
        if let Some(guard) = &self.guard {
            let url = Url::parse(address.url.reveal()).map_err(|error| error.to_string())?;
            guard.may_ask(&url).map_err(|failure| failure.to_string())?;
        }
        let request = self
            .client
            .post(address.url.reveal())
            .header(CONTENT_TYPE, "application/json")
            .header("X-Trawl-Delivery", id)
            .header("X-Trawl-Timestamp", timestamp)
            .header("X-Trawl-Signature", address.signature(timestamp, body))
            .body(body.to_vec());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("it answered {}", answer.status())),
            // The URL may have a password.
            Err(error) => Err(printable(&with_causes(&error.without_url()), 300)),
        }
    }
}

/// The URL to post to, and the key to sign with.
pub(crate) struct Address {
    url: ServerUrl,
    key: Hmac<Sha256>,
}

impl Address {
    pub(crate) fn new(url: ServerUrl, secret: &str) -> Result<Self> {
        // HMAC accepts a key of any length.
        let key = Hmac::new_from_slice(secret.as_bytes())
            .map_err(|error| Error::caused_by(ErrorKind::Refused, format_args!("webhook {url}"), &error))?;
        Ok(Self { url, key })
    }

    /// Signs the timestamp, a dot and the body, so that nobody can send an old request again as a new one.
    fn signature(&self, timestamp: u64, body: &[u8]) -> String {
        let mut digest = self.key.clone();
        digest.update(timestamp.to_string().as_bytes());
        digest.update(b".");
        digest.update(body);
        format!("sha256={}", HEXLOWER.encode(&digest.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_pages_may_not_have_for_an_address_no_spiders_webhook_has() {
        let client = Client::guarded(&settings::Fetch::default()).unwrap();
        for url in ["http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/", "http://localhost/"] {
            let address = Address::new(ServerUrl::new(url), "key").unwrap();
            let why = client.post(&address, "c1.finished", b"{}", 0).await.unwrap_err();
            assert!(why.contains("fetch.allow_private"), "{url}: {why}");
        }
    }

    /// `printf '1700000000.{}' | openssl dgst -sha256 -hmac key`
    #[test]
    fn the_signature_is_the_one_that_openssl_makes_of_timestamp_dot_body() {
        let address = Address::new(ServerUrl::new("http://a.example/"), "key").unwrap();
        assert_eq!(
            address.signature(1_700_000_000, b"{}"),
            "sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae"
        );
    }
}
