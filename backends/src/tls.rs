//! TLS: the certificates to trust, and recognising refusals.

use std::error::Error as StdError;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use trawl_common::ports::{Error, ErrorKind, Result};

/// The certificates of a PEM file, to trust in place of the system's.
#[derive(Clone)]
pub(crate) struct Authority {
    pub(crate) pem: Vec<u8>,
    pub(crate) certificates: Vec<CertificateDer<'static>>,
}

impl Authority {
    /// Reads the file at `path`. Fails with [`ErrorKind::Refused`] if it cannot be used; `key` names the setting.
    pub(crate) fn read(key: &str, path: &Path) -> Result<Self> {
        let refused =
            |why: &str| Error::new(ErrorKind::Refused, format!("settings: {key}: {}: {why}", path.display()));
        let pem = std::fs::read(path).map_err(|error| refused(&error.to_string()))?;
        let certificates = CertificateDer::pem_slice_iter(&pem).collect::<std::result::Result<Vec<_>, _>>();
        match certificates {
            Err(error) => Err(refused(&format!("not PEM: {error}"))),
            Ok(certificates) if certificates.is_empty() => Err(refused("holds no certificate")),
            Ok(certificates) => Ok(Self { pem, certificates }),
        }
    }
}

/// Returns the TLS configuration that trusts the certificates of `authority`, or else those of the system.
pub(crate) fn client(authority: Option<&Authority>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(match authority {
        Some(authority) => authority.certificates.clone(),
        None => rustls_native_certs::load_native_certs().certs,
    });
    ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

/// Returns whether TLS itself failed: the server is up, and trying again changes nothing.
pub(crate) fn is_refusal(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        // Both types hide their inner error from `source`.
        next = if let Some(error) = error.downcast_ref::<io::Error>() {
            error.get_ref().map(|inner| inner as &(dyn StdError + 'static))
        } else if let Some(error) = error.downcast_ref::<Arc<dyn StdError + Send + Sync>>() {
            Some(&**error as &(dyn StdError + 'static))
        } else {
            error.source()
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_no_use_is_named_with_its_setting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let complaint = || Authority::read("redis.ca", &path).err().unwrap().to_string();
        let message = complaint();
        assert!(
            message.contains("redis.ca") && message.contains("ca.pem") && message.contains("No such file"),
            "{message}"
        );
        std::fs::write(&path, "no certificate").unwrap();
        assert!(complaint().contains("holds no certificate"));
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n").unwrap();
        assert!(complaint().contains("not PEM"));
    }
}
