//! The certificates of a page's hosts as its browser sees them. All are for one key, which is made at the start and
//! never leaves this process; the browsers of this process trust that key, and nothing else does.

use std::sync::Arc;

use data_encoding::BASE64;
use moka::sync::Cache;
use rcgen::{CertificateParams, KeyPair, PublicKeyData};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

/// Maximum number of hosts whose certificates are kept.
const MAX_HOSTS: u64 = 10_000;

/// Makes certificates for hosts.
pub(crate) struct Certificates {
    key: KeyPair,
    by_host: Cache<String, Arc<ServerConfig>>,
}

/// The reason why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoCertificate {
    #[error(transparent)]
    Made(#[from] rcgen::Error),
    #[error(transparent)]
    Used(#[from] rustls::Error),
}

impl Certificates {
    /// Makes a key.
    ///
    /// # Panics
    /// If the system gives no random numbers.
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().expect("the system gives random numbers");
        Self { key, by_host: Cache::new(MAX_HOSTS) }
    }

    /// Returns the SHA-256 hash of the key (RFC 7469 2.4), by which Chromium is told to trust it.
    pub(crate) fn spki(&self) -> String {
        BASE64.encode(&Sha256::digest(self.key.subject_public_key_info()))
    }

    /// Returns the configuration of a server that is this host.
    pub(super) fn of_host(&self, host: &str) -> Result<Arc<ServerConfig>, NoCertificate> {
        if let Some(known) = self.by_host.get(host) {
            return Ok(known);
        }
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let certificate = CertificateParams::new([host.to_owned()])?.self_signed(&self.key)?;
        let key = PrivateKeyDer::try_from(self.key.serialize_der())
            .map_err(|error| rustls::Error::General(error.to_owned()))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate)], key)?;
        let config = Arc::new(config);
        self.by_host.insert(host.to_owned(), Arc::clone(&config));
        Ok(config)
    }
}
