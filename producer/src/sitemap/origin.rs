//! The origin of a source.

use encoding_rs::Encoding;
use trawl_common::web::charset;
use trawl_common::web::response::Response;
use trawl_common::web::url::CanonicalUrl;
use url::Url;

/// Facts about a source beside its content. The default has none, like a file.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The URL of the source, the base of relative links.
    pub url: Option<Url>,
    /// The charset in its header (RFC 7303 3.2).
    pub charset: Option<&'static Encoding>,
}

impl Origin {
    /// Returns the origin of a response to `url` with this `head`.
    pub(crate) fn from_response(url: &CanonicalUrl, head: &Response) -> Self {
        Self {
            url: Some(head.redirected_to.as_ref().unwrap_or(url).to_url()),
            charset: head.content_type().and_then(charset::from_content_type),
        }
    }
}
