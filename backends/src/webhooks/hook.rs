//! One webhook: which events go where.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use trawl_common::ports::{Error, ErrorKind, Result};
use trawl_common::settings::Webhook;

use super::post::Address;

pub(super) struct Hook {
    /// The same for the same address.
    pub(super) id: String,
    pub(super) settings: Webhook,
    pub(super) address: Address,
}

impl Hook {
    /// Reads the secret. `Refused` if that cannot be had.
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

/// What a webhook is called in queues and messages: its URL may hold a password.
pub(super) fn id(settings: &Webhook) -> String {
    HEXLOWER.encode(&Sha256::digest(settings.url.reveal())[..6])
}
