//! One delivery: a signed request.

use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::CONTENT_TYPE;
use sha2::Sha256;
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::ServerUrl;
use trawl_common::text::{printable, with_causes};

use crate::tls;

/// An address that has not answered by then has not taken it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Posts, and follows no redirect. The operator has named the address, so it may be a private one.
pub(super) struct Client(reqwest::Client);

impl Client {
    pub(super) fn new() -> Result<Self> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::client(None))
            .user_agent(concat!("trawl/", env!("CARGO_PKG_VERSION")))
            .timeout(TIMEOUT)
            .no_proxy()
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            .build();
        client.map(Self).map_err(|error| Error::caused_by(ErrorKind::Refused, "webhooks", &error))
    }

    /// Posts the event `id`. Fails, saying why, unless the answer is that it is taken.
    pub(super) async fn post(
        &self,
        address: &Address,
        id: &str,
        body: &[u8],
        timestamp: u64,
    ) -> std::result::Result<(), String> {
        let request = self
            .0
            .post(address.url.reveal())
            .header(CONTENT_TYPE, "application/json")
            .header("X-Trawl-Delivery", id)
            .header("X-Trawl-Timestamp", timestamp)
            .header("X-Trawl-Signature", address.signature(timestamp, body))
            .body(body.to_vec());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("it answered {}", answer.status())),
            // Its URL may hold a password.
            Err(error) => Err(printable(&with_causes(&error.without_url()), 300)),
        }
    }
}

/// Where to post, and what to sign with.
pub(super) struct Address {
    url: ServerUrl,
    key: Hmac<Sha256>,
}

impl Address {
    pub(super) fn new(url: ServerUrl, secret: &str) -> Result<Self> {
        // Of HMAC, any length is a key's.
        let key = Hmac::new_from_slice(secret.as_bytes())
            .map_err(|error| Error::caused_by(ErrorKind::Refused, format_args!("webhook {url}"), &error))?;
        Ok(Self { url, key })
    }

    /// Of the timestamp, a dot and the body: nobody can send an old request again as a new one.
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
