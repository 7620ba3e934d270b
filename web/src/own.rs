//! What a spider sends with its requests: header fields and cookies, to its own hosts alone. A redirect to another host
//! takes neither along.

use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use trawl_common::spider::{Home, Spider};
use trawl_common::web::url::CanonicalUrl;

use super::unusable::Unusable;

/// The header fields of a spider, and whose they are.
#[derive(Clone, Debug)]
pub(super) struct Own {
    home: Home,
    fields: HeaderMap,
}

impl Own {
    pub(super) fn of(spider: &Spider) -> Result<Self, Unusable> {
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

    /// What is sent to `url` besides what is sent to all.
    pub(super) fn fields(&self, url: &CanonicalUrl) -> HeaderMap {
        let is_ours = !self.fields.is_empty() && self.home.has(url);
        if is_ours { self.fields.clone() } else { HeaderMap::new() }
    }
}

/// A value that no log shows.
fn secret(name: &str, value: &str) -> Result<HeaderValue, Unusable> {
    let mut value = HeaderValue::try_from(value).map_err(|_| Unusable::Field(name.to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
