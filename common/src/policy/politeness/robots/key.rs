//! The key under which a robots.txt is stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::as_text::text;
use crate::web::url::Origin;

/// The key of everything that one robots.txt applies to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RobotsKey(Arc<str>);

text!(RobotsKey);

impl RobotsKey {
    /// Returns the key of one origin, as in RFC 9309 (2.3): `https://example.com:8443`.
    pub fn origin(origin: &Origin) -> Self {
        Self(origin.as_str().into())
    }

    /// Returns the key of a host's usual ports, `example.com`, or of all its others, `example.com:*`: a server on
    /// another port has no say about the site itself.
    pub fn host(origin: &Origin) -> Self {
        let host = origin.host();
        Self(if origin.has_usual_port() { host.as_str().into() } else { format!("{host}:*").into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::url::CanonicalUrl;

    #[test]
    fn all_ports_of_a_host_but_the_usual_ones_have_one_key_and_these_another() {
        let key = |url: &str| RobotsKey::host(&CanonicalUrl::parse(url).unwrap().origin()).to_string();
        for site in ["http://a.example/x", "https://a.example/", "https://a.example:443/"] {
            assert_eq!(key(site), "a.example");
        }
        for beside in ["http://a.example:81/x", "https://a.example:80/", "http://a.example:443/"] {
            assert_eq!(key(beside), "a.example:*");
        }
        assert_eq!([key("http://[::1]/"), key("http://[::1]:8080/")], ["[::1]", "[::1]:*"]);
        assert_eq!(key("http://www.a.example/"), "www.a.example");
    }
}
