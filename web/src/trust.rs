//! TLS with the root certificates that the system trusts.

use std::sync::OnceLock;

use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_platform_verifier::ConfigVerifierExt;

/// The TLS configuration of a client. The system's roots are hundreds of files, so they are read once for the clients
/// of all spiders.
pub(super) fn tls() -> Result<ClientConfig, rustls::Error> {
    static COMMON: OnceLock<ClientConfig> = OnceLock::new();
    let common = match COMMON.get() {
        Some(common) => common,
        None => {
            let mut config = ClientConfig::with_platform_verifier()?;
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            COMMON.get_or_init(|| config)
        }
    };
    let mut config = common.clone();
    // Otherwise a server could recognise a spider by the ticket it gave to another.
    config.resumption = Resumption::default();
    Ok(config)
}
