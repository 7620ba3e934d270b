//! A page that was tried.

use std::time::Duration;

use trawl_common::ports::Response;
use trawl_common::web::url::CanonicalUrl;
use trawl_extract::Extraction;

/// A page, and what was made of it.
pub(super) struct Tried {
    pub(super) url: CanonicalUrl,
    pub(super) response: Response,
    pub(super) took: Duration,
    pub(super) extraction: Extraction,
    /// The links, and whether each is followed.
    pub(super) links: Vec<(CanonicalUrl, bool)>,
}
