//! One webhook: its events and its address.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::Webhook;

use super::post::Address;

pub(super) struct Hook {
    /// The id, which depends only on the address.
    pub(super) id: String,
    pub(super) settings: Webhook,
    pub(super) address: Address,
}

impl Hook {
    /// Reads the secret. Fails with `Refused` if it is not available.
    pub(super) fn new(settings: &Webhook) -> Result<Self> {
        let url = &settings.url;
        let refused =
            |error| Error::new(ErrorKind::Refused, format_args!("webhooks: {url}: secret: {error}"));
        let secret = settings.secret.reveal(|name| std::env::var(name).ok()).map_err(refused)?;
        Ok(Self {
            id: id(settings),
            address: Address::new(url.clone(), &secret)?,
            settings: settings.clone(),
        })
    }
}

/// Returns the id of a webhook in queues and messages, because its URL may have a password.
pub(super) fn id(settings: &Webhook) -> String {
    HEXLOWER.encode(&Sha256::digest(settings.url.reveal())[..6])
}
