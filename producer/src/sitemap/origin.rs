//! Where a source comes from.

use encoding_rs::Encoding;
use trawl_common::ports::Response;
use trawl_common::web::charset;
use trawl_common::web::url::CanonicalUrl;
use url::Url;

/// What is known of a source beside its content. By default it is nothing, as of a file.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Its URL, by which relative links are resolved.
    pub url: Option<Url>,
    /// The charset that its header names (RFC 7303 3.2).
    pub charset: Option<&'static Encoding>,
}

impl Origin {
    /// The origin of the body that was sent with `head` when `url` was asked for.
    pub fn from_response(url: &CanonicalUrl, head: &Response) -> Self {
        Self {
            url: Some(head.redirected_to.as_ref().unwrap_or(url).to_url()),
            charset: head.content_type().and_then(charset::from_content_type),
        }
    }
}
