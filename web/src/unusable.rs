//! Errors of settings and spiders that cannot be used.

/// Settings that no client can be made with.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The client refused them, for example a user agent with a line break.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    /// The system has no root certificates for TLS.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A header field of a spider cannot be sent.
    #[error("the header field `{0}` cannot be sent as it is written")]
    Field(String),
}
