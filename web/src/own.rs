//! The header fields and cookies that a spider sends with its requests, to its own hosts alone. A redirect to another
//! host carries neither.

use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use trawl_common::spider::{Home, Spider};
use trawl_common::web::url::CanonicalUrl;

use super::unusable::Unusable;

/// The header fields of a spider, and the hosts they are sent to.
#[derive(Clone, Debug)]
pub(super) struct Own {
    home: Home,
    fields: HeaderMap,
}

impl Own {
    pub(super) fn new(spider: &Spider) -> Result<Self, Unusable> {
        let mut fields = HeaderMap::new();
        for (name, value) in &spider.request.headers {
            let key = HeaderName::try_from(name).map_err(|_| Unusable::Field(name.clone()))?;
            fields.append(key, secret(name, value.reveal())?);
        }
        let cookies = &spider.request.cookies;
        if !cookies.is_empty() {
            let pairs: Vec<_> =
                cookies.iter().map(|(name, value)| format!("{name}={}", value.reveal())).collect();
            fields.insert(COOKIE, secret("Cookie", &pairs.join("; "))?);
        }
        Ok(Self { home: spider.home(), fields })
    }

    /// Returns the spider's own fields for `url`, beside those sent with every request.
    pub(super) fn fields(&self, url: &CanonicalUrl) -> HeaderMap {
        let is_ours = !self.fields.is_empty() && self.home.has(url);
        if is_ours { self.fields.clone() } else { HeaderMap::new() }
    }
}

/// A value that is kept out of logs.
fn secret(name: &str, value: &str) -> Result<HeaderValue, Unusable> {
    let mut value = HeaderValue::try_from(value).map_err(|_| Unusable::Field(name.to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
