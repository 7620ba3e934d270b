//! The key under which a robots.txt is stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::as_text::text;
use crate::web::url::{CanonicalUrl, Host, Origin};

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

    /// Returns the host whose robots.txt it is; `None` for a text that is no key.
    pub fn to_host(&self) -> Option<Host> {
        let authority = self.0.split_once("://").map_or(&*self.0, |(_, authority)| authority);
        let name = authority.strip_suffix(":*").unwrap_or(authority);
        Some(CanonicalUrl::parse(&format!("http://{name}/")).ok()?.host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_key_says_whose_file_it_is() {
        for url in ["http://a.example/x", "https://a.example:8443/", "http://[::1]:8080/", "http://10.1.2.3/"]
        {
            let url = CanonicalUrl::parse(url).unwrap();
            for key in [RobotsKey::origin(&url.origin()), RobotsKey::host(&url.origin())] {
                assert_eq!(key.to_host(), Some(url.host()), "{key}");
            }
        }
        assert_eq!(RobotsKey("no host".into()).to_host(), None);
    }
}
